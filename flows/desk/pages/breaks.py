"""The breaks of a run, found by a filter, page by page, with their totals."""

from collections.abc import Mapping
from typing import Any

import polars as pl
from starlette.responses import Response

from connectors.currencies import read_currencies
from connectors.errors import DecisionRefused
from connectors.postgres.runs.reconciliations import latest_run
from connectors.postgres.runs.signatures import look_at
from flows.desk.filters import NONE, TYPED, WORDS, BreakSearch, has_none
from flows.desk.forms import read_whole, saved_as
from flows.desk.review import POOLS, figures_of
from flows.desk.seen import run_of
from flows.desk.visit import Visit
from flows.report.reconciled.data import breaks_csv
from flows.stages.reconcile.breaks import can_be_decided
from flows.steps.breaks.acceptance import outgrown
from flows.steps.breaks.money import largest_first
from flows.steps.frames.beyond import from_both
from schemas.accounts import MAY_DECIDE
from schemas.breaks import BREAKS, Money
from schemas.life import GONE, BreakState, Choice, Look
from schemas.show_as import Numbers
from schemas.tables import EXTRACTS

ON_A_PAGE = 50
SORTS: Mapping[str, tuple[str, *tuple[pl.Expr, ...]]] = {
    "amount": ("largest first",),
    "age": ("oldest first", -pl.col("age_days")),
    "code": ("by code", pl.col("code")),
}
"""Name -> its label, and the sort key before the amount."""
LISTED = ("code", "record", "currency", "cause", "owner", "proposed_by")
"""Fields whose values can be chosen from a list."""
MOST_LISTED = 100
"""The most values of a field to choose from, the most frequent; others come with a link."""
ALL_ACCEPTED = BreakSearch({"state": "accepted"})
DOWNLOADED = (
    "id", "code", "severity", "state", "record", "tenant", "key", "field", "side", "currency",
    "currency_code", "expected", "found", "delta", "amount", "basis", "counted", "date",
    "first_seen", "age_days", "age_business_days", "cause", "owner", "due", "accepted_by",
    "accepted_until", "accepted_reason", "claimed", "proposed_by", "aside_because", "batch_id",
    "file", "line", "note", "delta_beyond", "amount_beyond", "counted_beyond",
)  # fmt: skip
"""Columns of the download; texts of amounts that no column holds go into the amounts' columns."""


def show(visit: Visit) -> Response:
    """A page of the matching breaks."""
    with visit.place.database.connect() as connection:
        run = run_of(visit, connection)
        breaks = visit.desk.kept.breaks(visit.place, connection, run)
        last = latest_run(connection, run.scope)
        titles = visit.desk.kept.review(visit.place, connection, run).facts.causes
        asked = BreakSearch.read(visit.asked)
        if asked == ALL_ACCEPTED:
            look_at(connection, run.id, Look.ACCEPTED)
    form = {name: asked.in_form(name, visit.show.numbers) for name in TYPED}
    try:
        if visit.asked.get("numbers") in [*Numbers]:
            form = {name: asked[name] for name in TYPED}
            plain = asked.canonical(Numbers(visit.asked["numbers"]))
            return visit.go(
                f"/runs/{run.id}/breaks?{plain.query(sort=visit.asked.get('sort', ''))}"
            )
        fitting = asked.fitting(breaks)
    except DecisionRefused as refused:
        visit, fitting = visit.refusing(str(refused)), breaks.clear()
    sort = _sort(visit)
    pages = max(1, -(-fitting.height // ON_A_PAGE))
    number = min(max(1, read_whole(visit.asked.get("page", "")) or 1), pages)
    decidable = _decidable(visit) if last == run else pl.lit(value=False)
    rows = _sorted(fitting, sort).slice((number - 1) * ON_A_PAGE, ON_A_PAGE)
    return visit.page(
        "breaks.html.jinja",
        run=run,
        last=last,
        may_decide=visit.may(*MAY_DECIDE[Choice.COMMENT]),
        any_decidable=bool(fitting.select(decidable.any()).item()),
        asked=asked,
        form=form,
        sort=sort,
        sorts=SORTS,
        count=fitting.height,
        of=breaks.height,
        figures=figures_of(fitting),
        rows=[
            _row(row)
            for row in rows.with_columns(outgrown(), decidable=decidable).iter_rows(named=True)
        ],
        page=number,
        pages=pages,
        listed={name: _values(breaks, name, asked[name]) for name in LISTED},
        titles=titles,
        records={name: table.title for name, table in EXTRACTS.items()},
        words=WORDS,
        gone=GONE,
        states=[*POOLS, *(one for one in BreakState if one != BreakState.ACCEPTED)],
        names=read_currencies(visit.place.settings.currencies),
    )


def download(visit: Visit) -> Response:
    """All matching breaks as CSV, in the order of the page."""
    with visit.place.database.connect() as connection:
        run = run_of(visit, connection)
        breaks = visit.desk.kept.breaks(visit.place, connection, run)
    fitting = _sorted(BreakSearch.read(visit.asked).fitting(breaks), _sort(visit))
    names = read_currencies(visit.place.settings.currencies)
    code = pl.col("currency").cast(pl.String).replace_strict(names, default=None)
    rows = fitting.with_columns(code.cast(pl.String).alias("currency_code")).select(DOWNLOADED)
    return Response(
        breaks_csv(rows),
        media_type="text/csv; charset=utf-8",
        headers=saved_as(f"breaks-of-run-{run.id}.csv"),
    )


def _decidable(visit: Visit) -> pl.Expr:
    """Which breaks the visitor can decide about in some way, as they are now."""
    return pl.any_horizontal(
        pl.lit(value=False), *(can_be_decided(one, by_id=True) for one in visit.decisions())
    ).fill_null(value=False)


def _sort(visit: Visit) -> str:
    sort = visit.asked.get("sort", "")
    return sort if sort in SORTS else "amount"


def _sorted(breaks: pl.DataFrame, sort: str) -> pl.DataFrame:
    _, *first = SORTS[sort]
    by = (*first, *largest_first(), *map(pl.col, ("code", "record", "key", "id")))
    return breaks.sort(*by, nulls_last=True)


def _values(breaks: pl.DataFrame, name: str, chosen: str) -> list[tuple[str, int]]:
    """The values of a field in the run's breaks -> frequency, including the chosen value."""
    values = pl.when(~has_none(name)).then(pl.col(name).cast(pl.String)).otherwise(pl.lit(NONE))
    counts = breaks.group_by(values.alias(name)).len()
    most = counts.sort(["len", name], descending=[True, False]).head(MOST_LISTED)
    there = dict(most.sort(name).iter_rows())
    if chosen and chosen not in there:
        there[chosen] = 0
    return list(there.items())


def _row(row: dict[str, Any]) -> dict[str, Any]:
    delta = from_both(row["delta"], row["delta_beyond"])
    amount = from_both(row["amount"], row["amount_beyond"])
    gross = row["basis"] == Money.GROSS
    code = BREAKS.get(row["code"])
    added = row["basis"] in (Money.DIFFERENCE, Money.GROSS)
    return row | {
        "title": code.title if code else "",
        "signed": delta is not None and not gross,
        "in_totals": from_both(row["counted"], row["counted_beyond"]) if added else None,
        "money": amount if gross or delta is None else delta,
    }
