"""The reconciliation as one page that opens offline and prints on A4, delivered text escaped.

Its content security policy allows only its one style and one script, by their hashes.
"""

import hashlib
from base64 import b64encode
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

import polars as pl
from jinja2 import Template
from markupsafe import Markup

from flows.report.reconciled import after, chart, first_page, tables
from flows.report.reconciled.grid import MOST as TABLE_LINES
from flows.report.reconciled.grid import chains, grid, idle, look, statements, ties
from flows.report.reconciled.pools import pooled_causes
from flows.report.reconciled.table import ColumnKind
from flows.report.reconciled.text import display_text
from flows.report.reconciled.words import (
    NOT_READABLE,
    STATES,
    amount_text,
    code_title,
    currency_label,
    side_text,
    sources,
    values_of_break,
    verdict_of,
    with_unreadable,
)
from flows.report.spelling import digits, record_title, visible
from flows.report.template import template
from flows.steps.breaks.ageing import BUCKETS, AgeingLine
from flows.steps.breaks.money import largest_first
from flows.steps.frames.beyond import exact_sum
from flows.steps.reconcile.report import VERDICTS, ReconciliationReport
from flows.steps.reconcile.reported_breaks import BreakLine, Breaks
from schemas.breaks import BREAKS, STATUSES
from schemas.life import OPEN, BreakState

MOST = 1_000
"""Most breaks on the page; all of them are in the data files."""
VALUE = 200
"""Most characters of a delivered value."""
POLICY = (
    "default-src 'none'; script-src 'sha256-{script}'; style-src 'sha256-{style}'; "
    "base-uri 'none'; form-action 'none'"
)


class Listed(NamedTuple):
    line: BreakLine
    expected: str | None
    found: str | None
    ranks: str
    """The line's place in every order that the list can be sorted in."""


def render_html(report: ReconciliationReport) -> str:
    """Render the page; equal reports give equal bytes."""
    style, script = _style(report), _text("script.js")
    open_causes = pooled_causes(report)["open"]
    first_breaks, counts = report.breaks[:MOST], report.breaks.counts("state")
    return _template().render(
        report=report,
        cover=report.cover,
        verdict=verdict_of(report),
        policy=POLICY.format(style=_hash(style), script=_hash(script)),
        style=Markup(style),  # noqa: S704 -- Our own file.
        script=Markup(script),  # noqa: S704
        facts=list(tables.facts(report)),
        grids={table.name: grid(table) for table in tables.tables(report)},
        ties=ties(report),
        chains=chains(report),
        statements=statements(report),
        idle=idle(report),
        nothing_compared=tables.nothing_compared(report),
        nothing_between=tables.NOTHING_BETWEEN,
        status_bars=_status_bars(report),
        statuses=_status_legend(report),
        classes=chart.by_class(report.breaks),
        ages=list(zip(BUCKETS, chart.AGES, strict=True)),
        ageing=_ageing(report),
        exact_sum=exact_sum,
        first={table.name: grid(table) for table in first_page.parts(report)},
        to_sign=first_page.to_sign(report),
        as_signed=first_page.as_signed(report.sign_off) if report.sign_off else "",
        notes=first_page.NOTES,
        after_note=after.NOTE,
        breaks=_listed(first_breaks),
        causes={one.id: one for one in report.causes[:TABLE_LINES]},
        filters=_filters(report, tuple(first_breaks)),
        codes=_codes(report),
        states={state: meaning for state, meaning in STATES.items() if state in counts},
        counts=counts,
        opened=sum(counts[state] for state in OPEN),
        accepted=counts[BreakState.ACCEPTED],
        records=sum(one.rows for one in report.statuses),
        chart=chart,
        currency=lambda key: currency_label(report, key),
        open_of=lambda one: open_causes[one.id].breaks if one.id in open_causes else 0,
        not_readable=NOT_READABLE,
        with_unreadable=with_unreadable,
        most=MOST,
    )


@cache
def _template() -> Template:
    return template(
        "reconciled/page.html.jinja",
        signed=lambda value: digits(value, signed=True),
        amount_text=amount_text,
        look=look,
        side_text=side_text,
        title_of=record_title,
        code_title=code_title,
        source=sources,
        display=lambda value: display_text(value, ColumnKind.TEXT),
        moment=first_page.moment,
    )


@cache
def _text(name: str) -> str:
    return files("flows.report.reconciled").joinpath(name).read_text(encoding="utf-8")


def _style(report: ReconciliationReport) -> str:
    """The style, with the text at the foot of a printed page; no delivered text may enter it."""
    verdict = report.cover.verdict if report.cover.verdict in VERDICTS else "NO VERDICT"
    foot = f"Reconciliation as of {report.cover.as_of.isoformat()}: {verdict.replace('_', ' ')}"
    return _text("style.css").replace("FOOT", foot)


def _hash(text: str) -> str:
    return b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _status_bars(report: ReconciliationReport) -> list[tuple[str, Markup, str]]:
    """A bar per record kind, with its number of records."""
    bars = []
    for record, counts in report.status_counts.items():
        ordered = {status: counts[status] for status in STATUSES if status in counts} | {**counts}
        bars.append((record_title(record), chart.status_bar(ordered), digits(sum(counts.values()))))
    return bars


def _status_legend(report: ReconciliationReport) -> list[tuple[str, str]]:
    """Names and colours of the statuses that occur; exceptions share one colour."""
    there = {one.status for one in report.statuses}
    colours = [(one, chart.STATUS_COLOURS[one]) for one in STATUSES if one in chart.STATUS_COLOURS]
    legend = [(name, colour) for name, colour in colours if name in there]
    exceptions = sorted(there - {name for name, _ in colours})
    return [*legend, (f"exceptions: {', '.join(map(visible, exceptions))}", chart.EXCEPTION)][
        : None if exceptions else -1
    ]


def _ageing(report: ReconciliationReport) -> dict[str, list[AgeingLine]]:
    lines: dict[str, list[AgeingLine]] = {}
    for one in report.ageing:
        lines.setdefault(currency_label(report, one.currency), []).append(one)
    return lines


_ORDERS: Mapping[str, tuple[pl.Expr, ...]] = {
    "largest first": largest_first(),
    "oldest": (-pl.col("age_days"), pl.col("first_seen")),
    "code": (pl.col("code").cast(pl.String),),
    "record and key": tuple(pl.col(name).cast(pl.String) for name in ("record", "key", "field")),
    "file and line": (pl.col("file").cast(pl.String), pl.col("line")),
}
"""Orders of the list in addition to its own, which is most severe and largest first."""


def _listed(breaks: Breaks) -> list[Listed]:
    frame = breaks.frame.with_row_index("place")
    orders = [
        frame.sort(*by, nulls_last=True, maintain_order=True)["place"] for by in _ORDERS.values()
    ]
    ranks = zip(frame["place"], *(order.arg_sort() for order in orders), strict=True)
    return [
        Listed(one, *values_of_break(one, VALUE), " ".join(map(str, of)))
        for one, of in zip(breaks, ranks, strict=True)
    ]


def _filters(report: ReconciliationReport, breaks: Sequence[BreakLine]) -> dict[str, Any]:
    """The filters for the listed breaks, and the orders of the list."""

    def choices(values: Sequence[str], label: Callable[[str], str]) -> tuple[tuple[str, str], ...]:
        counts = Counter(values)
        return tuple((one, f"{label(one)} ({digits(counts[one])})") for one in sorted(counts))

    # Names are those of the table; `class` is the attribute `group` of a line.
    labels: dict[str, Callable[[str], str]] = {
        "class": visible,
        "code": visible,
        "severity": visible,
        "state": visible,
        "record": record_title,
        "currency": lambda key: currency_label(report, key),
    }
    found = {
        name: choices([getattr(one, "group" if name == "class" else name) for one in breaks], label)
        for name, label in labels.items()
    }
    several = {name: there for name, there in found.items() if len(there) > 1}
    return {"choices": several, "orders": ["most severe", *_ORDERS]}


def _codes(report: ReconciliationReport) -> list[tuple[str, str, str, int]]:
    """The codes that occur, with title, action and number of breaks."""
    counts = report.breaks.counts("code")
    return [
        (code, one.title, one.action, counts[code])
        for code, one in BREAKS.items()
        if code in counts
    ]
