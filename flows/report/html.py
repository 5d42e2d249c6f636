"""The batch report as one HTML file without script or network, all delivered text escaped."""

from collections.abc import Mapping
from functools import cache, partial
from typing import NamedTuple

from jinja2 import Template
from markupsafe import Markup

from flows.report.chart import colour_of, stacked_bar, state_parts
from flows.report.spelling import NARROW, digits, record_title, shortened
from flows.report.template import template
from flows.report.text import (
    PLANNED,
    VERDICTS,
    Figure,
    currency_label,
    differences,
    end_states,
    figures,
    refusal,
    row_place,
    state_word,
    verdict_of,
)
from flows.steps.batch_report import MOST_NOTES, BatchReport, Chain
from flows.steps.totals import Totals, add
from schemas.tables import INSERT_BATCH_DATA

LONGEST = 500
"""Most characters of a delivered value on the page; longer values are cut and their length given.
"""
MOST = MOST_NOTES
"""Most lines of a list on the page, which says how many it leaves out."""

ROOM = 18
"""Most characters of a number that fit a column of the widest table."""

STATES: Mapping[str, str] = {
    "rejected": "The row breaks a rule of its record; it is kept with its reasons, not applied.",
    "conflict": "The row contradicts another of the same key, or the database refused it.",
    "corrected": "The row was in error; its repair was taken in with a later batch.",
    "superseded": "Another row of this delivery with the same key counts in its place.",
    "excluded": "The feed profile leaves such rows out; the notes say which and why.",
    "stale": "The database already has a newer version of the record.",
    "inserted": "A record that the database did not have.",
    "updated": "A record that the database had with other content.",
    "unchanged": "A record that the database had with exactly this content.",
    "listed": "Read from the service to be compared; it changes nothing of ours.",
    "pending": "Not decided: the batch is held, was discarded, or has not come this far.",
}
MERGED = {**STATES, "superseded": "The row says of itself that it was merged before."}
"""Meanings of states for insert-batch data, whose rows have no key."""
PUSHED: Mapping[str, str] = {
    "acknowledged": "The service has it: it said so and repeated exactly what was sent.",
    "refused": "The service refused it and said why; it is in the database only.",
    "differs": "The service took it, but what it repeated is not what was sent.",
    "in_doubt": "Sent, and the answer is lost: nobody knows whether the service has it.",
    "abandoned": "Somebody decided that it is not to be sent.",
    "superseded": "A later batch has written the record since; an older version is never sent.",
    "sending": "On its way, or left behind by a run that died.",
    "unsent": "Still to be sent.",
}
STAGES: Mapping[str, str] = {
    "read": "what the reader counted in the files",
    "staged": "what was kept of it, row for row",
    "without errors": "rows that break no rule",
    "applied": "rows the database was to hold afterwards",
    "written": "rows that made a difference: inserted or updated",
    "in the database": "the written rows, found again by key in the database and added up there",
}


ROW_WORDS: Mapping[str, str] = {
    "heading": "What became of every row",
    "state": "End state",
    "sum": "Sum of the end states",
    "whole": "Read from the files",
    "money": "Money by end state",
}
PUSH_WORDS: Mapping[str, str] = {
    "heading": "What the service has",
    "state": "State at the service",
    "sum": "Sum of the states",
    "whole": PLANNED.capitalize(),
    "money": "Money by state at the service",
}


class ChainPage(NamedTuple):
    """One record kind, with the values computed for the page."""

    chain: Chain
    bar: Markup
    total: Totals
    """Sum of the end states."""
    read: Totals
    """The totals that the end states have to add up to."""
    names: tuple[str, ...]
    """The amount fields."""
    currencies: tuple[str, ...]
    meanings: Mapping[str, str]
    """State -> its meaning."""
    unreadable: tuple[str, ...]
    """Sentences about amounts of rejected rows that are in no sum."""

    def money(self, currency: str) -> list[Figure]:
        return [Figure(name, currency) for name in self.names]

    def with_money(self, currency: str) -> list[tuple[str, Totals]]:
        """The end states that have money in a currency."""
        money = self.money(currency)
        states = end_states(self.chain).items()
        return [one for one in states if any(figure.of(one[1]) for figure in money)]

    def adds_up(self, currency: str) -> bool:
        """Whether the end states add up to the money that was read in a currency."""
        return all(one.of(self.total) == one.of(self.read) for one in self.money(currency))


def render_html(report: BatchReport) -> str:
    """Render the page; equal reports give equal bytes."""
    return _template().render(
        report=report,
        verdict=verdict_of(report),
        badge=report.verdict if report.verdict in VERDICTS else "under_way",
        pages=[_page(report, chain, place) for place, chain in enumerate(report.chains)],
        pushed=[
            _page(report, one.chain, len(report.chains) + place, PUSHED)
            for place, one in enumerate(report.pushed)
        ],
        row_words=ROW_WORDS,
        push_words=PUSH_WORDS,
        refused=[line for line in report.files if line.refused is not None],
        footer=_footer(report),
        stage_words=STAGES,
        most=MOST,
        colour_of=colour_of,
        currency_label=partial(currency_label, report),
        differences=partial(differences, report),
        end_states=end_states,
        state_word=state_word,
        figures=figures,
        share=_share,
        title_of=record_title,
        refusal=refusal,
        row_place=row_place,
    )


@cache
def _template() -> Template:
    return template(
        "template.html.jinja",
        breakable=_breakable,
        signed=lambda value: digits(value, signed=True),
        value=lambda text: shortened(text, LONGEST),
    )


def _page(
    report: BatchReport, chain: Chain, place: int, meanings: Mapping[str, str] = STATES
) -> ChainPage:
    title, pushed = f"{chain.title}: rows by end state", meanings is PUSHED
    # The amount fields and the currencies in the order of the figures.
    money = [(one.name, one.currency) for one in figures(chain) if one.currency is not None]
    return ChainPage(
        chain=chain,
        bar=stacked_bar(state_parts(chain), title=title, name=f"bar-{place}"),
        total=add(chain.states.values()),
        read=chain.lines[0].totals if chain.lines else Totals(),
        names=tuple(dict.fromkeys(name for name, _ in money)) or chain.amounts,
        currencies=tuple(dict.fromkeys(currency for _, currency in money)),
        meanings=meanings if pushed or chain.record != INSERT_BATCH_DATA.name else MERGED,
        unreadable=() if pushed else report.unreadable(chain),
    )


def _breakable(text: str) -> str | Markup:
    """Allow a number that is too long for a column to break between its groups."""
    if len(text) <= ROOM:
        return text
    return Markup("{}<wbr>").format(NARROW).join(text.split(NARROW))


def _share(part: int, whole: int) -> str:
    """Percentage with one decimal, never rounded to 0 or 100."""
    if part in (0, whole):
        return "100 %" if part else "0 %"
    tenths = (2000 * part + whole) // (2 * whole)
    if tenths in (0, 1000):
        return "> 99.9 %" if tenths else "< 0.1 %"
    return f"{tenths // 10}.{tenths % 10} %"


def _footer(report: BatchReport) -> str:
    """The text at the foot of a printed page; only digits of a hash may enter a style sheet."""
    short = report.content_id[:12]
    return short if short.isascii() and short.isalnum() else ""
