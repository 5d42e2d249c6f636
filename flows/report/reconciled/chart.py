"""Charts as inline SVG: bars only, with every figure beside them as text."""

from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import NamedTuple

from markupsafe import Markup

from flows.report.chart import LEAST, LENGTH, lengths
from flows.report.spelling import digits
from flows.steps.breaks.ageing import BUCKETS, bucket
from flows.steps.reconcile.reported_breaks import Breaks
from flows.steps.reconcile.roll_forward import RollForward
from flows.steps.reconcile.totals import Proof
from schemas.breaks import Status
from schemas.life import OPEN

AGES = ("#cfe0ec", "#a9c8dc", "#7fabc8", "#5488ad", "#33678f", "#1f4a6e", "#122f49")
"""Colours of ages from young to old, differing in lightness."""
TOTAL, UP, DOWN = "#1d3b57", "#b4553f", "#4f8a6b"
EXPECTED, FOUND, LEFT_OUT, ZERO = "#1f4a6e", "#7fabc8", "#d5dbe1", "#1b232e"
STATUS_COLOURS: Mapping[str, str] = {
    Status.MATCHED_EXACT: "#1f4a6e",
    Status.MATCHED_TOLERANCE: "#5488ad",
    Status.MATCHED_MANUAL: "#a9c8dc",
    Status.PENDING: "#d8c48a",
    Status.EXCLUDED: "#b9c0c8",
}
"""Colours of statuses that are no exception."""
EXCEPTION = "#b4553f"


class Piece(NamedTuple):
    """One rectangle of a bar, in units of `LENGTH`."""

    start: int
    length: int
    colour: str


class Bar(NamedTuple):
    label: str
    picture: Markup
    figure: int | Decimal


def svg(pieces: Iterable[Piece]) -> Markup:
    """A bar that fills the width it is given; its content is in text beside it."""
    shapes = Markup().join(
        Markup('<rect x="{}" width="{}" height="10" fill="{}"/>').format(*piece)
        for piece in pieces
        if piece.length
    )
    return Markup(
        '<svg class="bar" viewBox="0 0 {} 10" preserveAspectRatio="none" aria-hidden="true">'
        "{}</svg>"
    ).format(LENGTH, shapes)


def swatch(colour: str) -> Markup:
    return Markup(
        '<svg class="swatch" viewBox="0 0 10 10" aria-hidden="true">'
        '<rect width="10" height="10" fill="{}"/></svg>'
    ).format(colour)


def stacked(counts: Sequence[int], colours: Sequence[str], whole: int) -> Markup:
    """Counts side by side on a bar whose length stands for `whole`."""
    pieces, start = [], 0
    for length, colour in zip(lengths(counts, whole), colours, strict=True):
        pieces.append(Piece(start, length, colour))
        start += length
    return svg(pieces)


def by_class(breaks: Breaks) -> list[Bar]:
    """Open breaks by class, each bar divided by age; the class with most breaks first."""
    counts = ages_by_class(breaks)
    whole = max(map(sum, counts.values()), default=0)
    return [Bar(name, stacked(ages, AGES, whole), sum(ages)) for name, ages in counts.items()]


def ages_by_class(breaks: Breaks) -> dict[str, list[int]]:
    """Open breaks of each class by age in BUCKETS; the class with most breaks first."""
    counts: dict[str, list[int]] = {}
    found = breaks.where("state", *OPEN).frame.group_by("group", bucket().alias("bucket")).len()
    for name, place, rows in found.iter_rows():
        counts.setdefault(name, [0] * len(BUCKETS))[place] = rows
    return dict(sorted(counts.items(), key=lambda one: (-sum(one[1]), one[0])))


def waterfall(forward: RollForward) -> list[Markup]:
    """A bar per line: totals start at zero, steps start where the previous line ended."""
    spans: list[tuple[Decimal, Decimal, str]] = []
    reached = Decimal(0)
    for line in forward.lines:
        if line.total:
            reached = line.amount
            spans.append((Decimal(0), reached, TOTAL))
        else:
            after = reached + line.amount
            spans.append((reached, after, UP if line.amount > 0 else DOWN))
            reached = after
    ends = [end for span in spans for end in span[:2]]
    low, high = min(ends, default=Decimal(0)), max(ends, default=Decimal(0))
    return [svg([_between(first, last, low, high, colour)]) for first, last, colour in spans]


def both_sides(proof: Proof) -> tuple[Markup, Markup]:
    """Two bars: the extract, with what is left out of it behind what counts, and the target.

    Both have the same zero, which is drawn if a total is negative.
    """
    if not proof.lines:
        return svg([]), svg([])
    expected, found = proof.lines[0].amount, proof.target.amount
    ground = Decimal(0)
    low, high = min(ground, expected, found), max(ground, expected, found)
    # A left out amount that adds to the total, or exceeds it, cannot be drawn as a part of it.
    is_part = (proof.left_out < 0) == (expected > 0)
    left = min(proof.left_out.copy_abs(), expected.copy_abs()).copy_sign(expected)
    kept = expected - left if is_part else expected
    delivered = [(ground, kept, EXPECTED), (kept, expected, LEFT_OUT)]
    bars = (
        [_between(first, last, low, high, colour) for first, last, colour in pieces]
        for pieces in (delivered, [(ground, found, FOUND)])
    )
    zero: list[Piece] = []
    if low < ground:
        start = min(int(-low * LENGTH / (high - low)), LENGTH - LEAST)
        zero = [Piece(start, LEAST, ZERO)]
    one, other = (svg([*bar, *zero]) for bar in bars)
    return one, other


def status_bar(counts: Mapping[str, int]) -> Markup:
    colours = [STATUS_COLOURS.get(status, EXCEPTION) for status in counts]
    return stacked(list(counts.values()), colours, sum(counts.values()))


def picture(bars: Sequence[tuple[str, Mapping[str, int]]], *, title: str) -> str:
    """Status bars with labels as an `image/svg+xml` data address, for pages that are not ours."""
    height = 26 * len(bars) + 4
    shapes = []
    for line, (label, counts) in enumerate(bars):
        top, whole, start = 26 * line + 4, sum(counts.values()) or 1, Decimal(260)
        shapes.append(
            Markup(
                '<text x="0" y="{}">{}</text><text x="1000" y="{}" text-anchor="end">{}</text>'
            ).format(top + 14, label, top + 14, digits(sum(counts.values())))
        )
        for status, count in counts.items():
            length = (Decimal(620 * count) / whole).quantize(Decimal("0.1"))
            colour = STATUS_COLOURS.get(status, EXCEPTION)
            shapes.append(
                Markup('<rect x="{}" y="{}" width="{}" height="16" fill="{}"/>').format(
                    start, top, length, colour
                )
            )
            start += length
    drawn = Markup(
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1000 {0}" width="1000" '
        'height="{0}" role="img"><title>{1}</title><rect width="1000" height="{0}" '
        'fill="#ffffff"/><g font-family="sans-serif" font-size="14" fill="#1b232e">{2}</g></svg>'
    ).format(height, title, Markup().join(shapes))
    return "data:image/svg+xml;base64," + b64encode(drawn.encode()).decode()


def _between(first: Decimal, last: Decimal, low: Decimal, high: Decimal, colour: str) -> Piece:
    if first == last or high == low:
        return Piece(0, 0, colour)
    start, end = (int((one - low) * LENGTH / (high - low)) for one in sorted((first, last)))
    length = max(LEAST, end - start)
    return Piece(min(start, LENGTH - length), length, colour)
