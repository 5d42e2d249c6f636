"""Stacked bars as SVG, drawn from counts alone, with a text that says the same."""

from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from markupsafe import Markup

from flows.report.spelling import digits
from flows.report.text import end_states, state_word
from flows.steps.batch_report import Chain
from schemas.counting import quantity

COLOURS: Mapping[str, str] = {
    "rejected": "#a5281b",
    "conflict": "#dd8452",
    "corrected": "#5f9e6e",
    "superseded": "#7d8590",
    "excluded": "#99a1aa",
    "stale": "#b9c0c8",
    "inserted": "#1f5f8b",
    "updated": "#5b97c2",
    "unchanged": "#b5d3e7",
    "listed": "#8f86b8",
    "pending": "#e3bd4f",
}
"""One colour per end state, differing in lightness too, so that a grey print can be read."""
PUSH_COLOURS: Mapping[str, str] = {
    "acknowledged": "#1f5f8b",
    "refused": "#a5281b",
    "differs": "#dd8452",
    "in_doubt": "#e3bd4f",
    "abandoned": "#59616b",
    "superseded": "#7d8590",
    "sending": "#b9c0c8",
    "unsent": "#b5d3e7",
}
"""The same for the states at the service."""
UNKNOWN = "#3c434b"
LENGTH = 1000
"""Units of a whole bar."""
LEAST = 4
"""Fewest units of a part with any row, so that one bad row in a million is seen."""
_LEGEND_COLUMNS, _LEGEND_WIDTH, _LINE = 4, 250, 24


class ChartPart(NamedTuple):
    label: str
    rows: int

    @property
    def word(self) -> str:
        return state_word(self.label)

    @property
    def colour(self) -> str:
        return colour_of(self.label)


def colour_of(state: str) -> str:
    """The fill of a state in the database or at the service."""
    return COLOURS.get(state) or PUSH_COLOURS.get(state, UNKNOWN)


def state_parts(chain: Chain) -> tuple[ChartPart, ...]:
    """The end states of a record kind that have rows."""
    return tuple(
        ChartPart(state, totals.rows) for state, totals in end_states(chain).items() if totals.rows
    )


def stacked_bar(parts: Sequence[ChartPart], *, title: str, name: str) -> Markup:
    """An SVG element for an HTML page; `name` makes its ids unique on the page."""
    return Markup(
        '<svg class="bar" viewBox="0 0 {length} 20" preserveAspectRatio="none" role="img" '
        'aria-labelledby="{name}-title {name}-desc"><title id="{name}-title">{title}</title>'
        '<desc id="{name}-desc">{description}</desc>{pieces}</svg>'
    ).format(
        length=LENGTH,
        name=name,
        title=title,
        description=describe(parts),
        pieces=_pieces(parts),
    )


def picture(parts: Sequence[ChartPart], *, title: str) -> str:
    """The bar with its legend as an `image/svg+xml` data address, for pages without our styles."""
    lines = -(-len(parts) // _LEGEND_COLUMNS)
    svg = Markup(
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {length} {height}" width="{length}" '
        'height="{height}" role="img"><title>{title}</title><desc>{description}</desc>'
        '<rect width="{length}" height="{height}" fill="#ffffff"/>{pieces}'
        '<g font-family="sans-serif" font-size="15" fill="#1c2430">{legend}</g></svg>'
    ).format(
        length=LENGTH,
        height=28 + lines * _LINE,
        title=title,
        description=describe(parts),
        pieces=_pieces(parts),
        legend=_legend(parts),
    )
    return "data:image/svg+xml;base64," + b64encode(svg.encode()).decode()


def describe(parts: Sequence[ChartPart]) -> str:
    """The bar in words, with exact ungrouped counts, which screen readers read as one number."""
    counts = ", ".join(f"{part.word} {part.rows}" for part in parts)
    total = quantity(sum(part.rows for part in parts), "row")
    return f"{counts}; {total} in all" if parts else "no rows"


def lengths(counts: Sequence[int], whole: int | None = None) -> list[int]:
    """Lengths in proportion to counts, in whole units, none under `LEAST`.

    `LENGTH` stands for `whole`, by default the sum of the counts.
    """
    total = sum(counts)
    whole = total if whole is None else whole
    if not total:
        return [0] * len(counts)
    shares = [max(LEAST, count * LENGTH // whole) if count else 0 for count in counts]
    # Parts that were lengthened to be visible take their room from the longest.
    longest = shares.index(max(shares))
    shares[longest] += max(LEAST, total * LENGTH // whole) - sum(shares)
    shares[longest] = max(LEAST, shares[longest])
    return shares


def _pieces(parts: Sequence[ChartPart]) -> Markup:
    pieces = [Markup('<rect width="{}" height="20" fill="#eceff2"/>').format(LENGTH)]
    piece, start = Markup('<rect x="{}" width="{}" height="20" fill="{}"/>'), 0
    for part, length in zip(parts, lengths([part.rows for part in parts]), strict=True):
        pieces.append(piece.format(start, length, part.colour))
        start += length
    return Markup().join(pieces)


def _legend(parts: Iterable[ChartPart]) -> Markup:
    square = Markup('<rect x="{}" y="{}" width="12" height="12" fill="{}"/>')
    words = Markup('<text x="{}" y="{}">{} {}</text>')
    entries = []
    for place, part in enumerate(parts):
        row, column = divmod(place, _LEGEND_COLUMNS)
        left, top = column * _LEGEND_WIDTH, 28 + row * _LINE
        entries.append(square.format(left, top + 5, part.colour))
        entries.append(words.format(left + 18, top + 16, part.word, digits(part.rows)))
    return Markup().join(entries)
