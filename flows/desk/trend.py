"""Pictures of open breaks and their money from run to run."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from functools import partial

from markupsafe import Markup

from connectors.errors import SignatureRefused
from connectors.postgres.runs.reconciliations import Reconciliation
from flows.desk.formats import day, number
from flows.stages.reconcile.report_files import read_totals
from flows.stages.workspace import Workspace
from schemas.counting import quantity
from schemas.show_as import ShowAs

RUNS = 30
"""The most runs of a picture."""
WIDTH, HEIGHT, GAP = 20, 60, 4
"""Width of a bar with its room, height of the picture, and gap between bars, in units."""
LEAST = 2
"""The smallest bar in units, so that one break in a hundred thousand is visible."""


@dataclass(frozen=True, slots=True)
class TrendPoint:
    """What was open according to a run's report."""

    number: int
    as_of: date
    breaks: int
    money: Mapping[str, Decimal]
    """Differences by CurrenciesId as text."""


def trend_point(place: Workspace, run: Reconciliation) -> TrendPoint | None:
    """The closing lines of a run's roll-forward; None if its totals are unusable or altered."""
    try:
        totals = read_totals(place, run)
        closing = {str(one["currency"]): one["lines"][-1] for one in totals["roll_forward"]}
        return TrendPoint(
            run.id,
            run.as_of,
            sum(int(one["rows"]) for one in closing.values()),
            {of: Decimal(one["amount"]) for of, one in closing.items()},
        )
    except (SignatureRefused, ValueError, TypeError, KeyError, IndexError, ArithmeticError):
        return None


def open_breaks(show: ShowAs, points: Sequence[TrendPoint], scope: int) -> Markup:
    """Bars of the numbers of open breaks; `scope` makes element ids unique on the page."""
    texts = [quantity(one.breaks, "open break", partial(number, show)) for one in points]
    return _bars(
        show, points, [Decimal(one.breaks) for one in points], texts, "Open breaks", f"t{scope}"
    )


def open_money(
    show: ShowAs, points: Sequence[TrendPoint], scope: int, currency: str, label: str
) -> Markup:
    """Bars of the differences that were open in one currency."""
    amounts = [one.money.get(currency, Decimal(0)) for one in points]
    texts = [f"{number(show, amount)} {label}" for amount in amounts]
    return _bars(show, points, amounts, texts, f"Open differences, {label}", f"t{scope}-{currency}")


def _bars(
    show: ShowAs,
    points: Sequence[TrendPoint],
    sizes: Sequence[Decimal],
    texts: Sequence[str],
    title: str,
    name: str,
) -> Markup:
    """A bar for each run, linked to the run, with its value in words."""
    most = max((one.copy_abs() for one in sizes), default=Decimal(0))
    bars = []
    for place, (point, size, words) in enumerate(zip(points, sizes, texts, strict=True)):
        tall = max(LEAST, int(size.copy_abs() * HEIGHT / most)) if size else 0
        bars.append(
            Markup(
                '<a href="/runs/{run}"><title>Run {run}, as of {day}: {words}</title>'
                '<rect class="room" x="{x}" y="0" width="{wide}" height="{high}"/>'
                '<rect class="bar" x="{x}" y="{y}" width="{wide}" height="{tall}"/></a>'
            ).format(
                run=point.number,
                day=day(show, point.as_of),
                words=words,
                x=place * WIDTH,
                wide=WIDTH - GAP,
                high=HEIGHT,
                y=HEIGHT - tall,
                tall=tall,
            )
        )
    first, last = points[0], points[-1]
    return Markup(
        '<svg class="trend" viewBox="0 0 {wide} {high}" role="group" '
        'aria-labelledby="{name}-title {name}-desc"><title id="{name}-title">{title}</title>'
        '<desc id="{name}-desc">{description}</desc>{bars}</svg>'
        "<figcaption>{title}: {last} <small>at the most {most}</small></figcaption>"
    ).format(
        last=texts[-1],
        most=texts[max(range(len(sizes)), key=lambda place: sizes[place].copy_abs())],
        wide=RUNS * WIDTH,
        high=HEIGHT,
        name=name,
        title=title,
        description=f"Run {first.number}: {texts[0]}. Run {last.number}: {texts[-1]}.",
        bars=Markup().join(bars),
    )
