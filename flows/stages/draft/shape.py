"""Lines of a draft about the shape of a file: its separators, its header, and its non-records."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain

from connectors.files.drafting.shape import COMMENT, Shape, numbered
from connectors.files.drafting.text_records import LINE_END, QUOTE, first_lines
from connectors.files.layout.first_record import folded
from connectors.printable import shown
from flows.stages.draft.cells import DraftCells, quoted, unescaped
from schemas.counting import agree, grouped, quantity

APOSTROPHE = "'"
"""The mark that some writers put around cells."""
_BETWEEN = re.compile(r"(?:^|[,;|\t])(['\"])(?:(?!\1).)*\1(?=[,;|\t]|$)")
_ESCAPE = re.compile(r'\\"|(?:^|[,;|\t])\\N(?:[,;|\t]|$)')
"""Escapes that MySQL and PostgreSQL write."""
FEW = 10
"""If at most one in this many cells has blanks around it, the blanks belong to its text."""
_AS_LONG = 2 / 3
"""The share of equally long lines from which on fixed-width columns are likely."""
OTHERS = 3
"""The most lines that are named beside the header."""


def header_lines(cells: DraftCells) -> Iterator[str]:
    shape = cells.shape
    if not shape.headed and shape.names:
        yield "# No line looks like a header. Where files have none, name all their columns:"
        yield f"# ? names = [{', '.join(map(quoted, numbered(len(shape.names))))}]"
        if shape.first_line > 1:
            yield f"# ? first_line = {shape.first_line}"
        return
    if not cells.is_named:
        yield (
            f"# No name of line {shape.header_line} is that of a field, and it may be a record: "
            "names are not shown."
        )
    if shape.more_headers:
        others = ", ".join(map(str, shape.more_headers[:OTHERS]))
        yield (
            f"# ? header_line = {shape.header_line} or {others}  # all of them look like one; "
            "header_lines where names have several rows"
        )
    elif shape.header_line > 1 + shape.stated:
        yield f'header_line = {shape.header_line}  # or "found", where that differs by file'
    for text in shape.of_units[:1]:
        yield f"# ? Above the header: {cells.display(text, 100)}"
        yield "#   where amounts are for so many units, scale or per of the field"
    if shape.unnamed > 0:
        yield f'# ? unnamed_columns = {shape.unnamed}  # with unknown_columns = "ignore"'
        named = len(shape.names) - shape.unnamed
        texts = [row[named:] for row in shape.rows if any(map(str.strip, row[named:]))]
        if texts:
            have = agree(len(texts), "has", "have")
            such = next(cell for cell in texts[0] if cell.strip())
            yield (
                f"#   {quantity(len(texts), 'row', grouped)} {have} a text there, such as "
                f"{cells.display(such, 40)}: it would be left out"
            )
    if shape.like_values:
        such = ", ".join(quoted(shown(name, 40)) for name in shape.like_values[:OTHERS])
        line = shape.header_line
        yield f"# ? Names in line {line} begin as values do: {such}."
        yield f"#   Where it is a record, name all columns (names, first_line = {line})."
    yield from _name_lines(shape)
    if shape.unnamed < 0:
        less = quantity(-shape.unnamed, "cell")
        yield f"# ? Rows have {less} less than the header has names: they would be rejected."


def _name_lines(shape: Shape) -> Iterator[str]:
    """Lines about names of a header that do not identify a column."""
    own = shape.names[: len(shape.names) - max(shape.unnamed, 0)]
    counts = Counter(map(folded, own))
    twice = [name for name in dict.fromkeys(own) if name and counts[folded(name)] > 1]
    blank = [place for place, name in enumerate(own) if not name and shape.column(place)]
    if not twice and not blank:
        return
    if twice:
        names = ", ".join(quoted(shown(name, 40)) for name in twice[:OTHERS])
        yield f"# ? Several columns are called {names}: a file is refused if one is read."
    if blank:
        which = ", ".join(str(place + 1) for place in blank[:OTHERS])
        yield f"# ? Nothing can be made of columns without a name, which have cells: {which}."
    if blank or shape.header_line > 1:
        yield '# Where titles stand above several columns: header_lines, header_titles = "spread".'
    yield "# If that is wrong, name all columns, without other keys about the header:"
    yield f"# ? names = [{', '.join(map(quoted, _distinct(shape.names)))}]"
    yield f"# ? first_line = {shape.first_line}"


def _distinct(names: Sequence[str]) -> list[str]:
    """Names for columns, each different from all others."""
    found: dict[str, str] = {}
    for place, name in enumerate(names, 1):
        called, number = name or f"Column {place}", 1
        # The first of several equal names is kept, and no made-up name may equal a column's.
        while folded(called) in found or (number > 1 and folded(called) in map(folded, names)):
            number += 1
            called = f"{name or f'Column {place}'} {number}"
        found[folded(called)] = called
    return [*found.values()]


def odd_lines(cells: DraftCells) -> Iterator[str]:
    """Lines about rows that would be rejected because their cells cannot be told apart."""
    if not (odd := cells.shape.odd):
        return
    first = odd[0]
    where = f"line {first.line}" if first.line else "near the end"
    others = quantity(len(cells.shape.names), "cell", grouped)
    yield (
        f"# ? {quantity(len(odd), 'row', grouped)} without the {others} of the others, "
        f"{'the first ' if len(odd) > 1 else ''}{where}: {cells.display(first.text, 100)}"
    )
    yield from _other_table(cells.shape)
    broken = sum(not one.sound for one in odd)
    if broken:
        signs = "quotes or escapes" if cells.shape.escaped else "quotes"
        yield f'#   {broken:,} with {signs} out of place; quote = "none" where they are text'


def _other_table(shape: Shape) -> Iterator[str]:
    """Lines about other records, if they are alike and nearly as many: they may be those meant."""
    widths = Counter(len(one.cells) for one in shape.odd if one.sound)
    ((width, count),) = widths.most_common(1) or [(0, 0)]
    first = next((one for one in shape.odd if len(one.cells) == width), None)
    if width > 1 and count > OTHERS and count * 2 >= len(shape.rows) and first and first.line:
        yield (
            f"#   {count:,} of them have {width} cells, from line {first.line} on: where these are "
            f"the records, header_line = {first.line}, and draft from a copy that begins there"
        )


def sum_lines(cells: DraftCells) -> Iterator[str]:
    """Lines about rows that may be sums of others, whose money would count twice."""
    if not (sums := cells.shape.sums):
        return
    yield (
        f"# ? {quantity(len(sums), 'row', grouped)} may be {agree(len(sums), 'a sum', 'sums')} of "
        "others, whose money would count twice:"
    )
    yield "#   look at them; skip_lines, of a sheet leave_out, or footer at the end takes them out"
    # The last row is the total of the file.
    for one in [*sums[: OTHERS - 1], *sums[OTHERS - 1 :][-1:]]:
        rows = f"{quantity(one.rows, 'row', grouped)} above in {cells.name(one.place)}"
        what = f", the sum of {rows}" if one.rows else ""
        yield f"#   line {one.record.line}{what}: {cells.display(one.record.text, 100)}"


def _fixed_width(text: str, delimiter: str) -> str:
    """Why columns seem to have a fixed width rather than this delimiter; empty if not."""
    lines = [line for line in LINE_END.split(first_lines(text)) if line]
    ((signs, count),) = Counter(map(len, lines)).most_common(1)
    alike = [line for line in lines if len(line) == signs]
    places = {tuple(at for at, sign in enumerate(line) if sign == delimiter) for line in alike}
    padded = sum("  " in line for line in alike)
    if padded * 2 < count or len(places) < 2 or count < len(lines) * _AS_LONG:
        return ""
    such = f"{count:,} of {quantity(len(lines), 'line', grouped)}"
    return f"{such} have {signs:,} signs, with this one at different places"


def _skipped_lines(cells: DraftCells) -> Iterator[str]:
    """Lines about non-records between the others; patterns contain the text of such lines."""
    shape = cells.shape
    if not shape.kinds:
        return
    lines = quantity(sum(kind.lines for kind in shape.kinds), "line", grouped)
    if cells.hidden:
        yield f"# ? skip_lines: a pattern for each sort of the {lines} between rows"
        return
    patterns = ", ".join(unescaped(kind.pattern) for kind in shape.kinds)
    yield f"# ? skip_lines = [{patterns}]  # {lines} between rows"
    for name in dict.fromkeys(chain.from_iterable(kind.names for kind in shape.kinds)):
        yield f"#   {name} becomes a column of the rows below; where it is none, write .* for it"


def footer_lines(cells: DraftCells) -> Iterator[str]:
    for line in cells.shape.behind:
        yield f"# Behind the records: {cells.display(line, 100)}"
    if cells.shape.behind:
        yield "# ? footer = ['...']  # a pattern for each of these lines, totals in groups"


def escapes_in(text: str) -> int:
    """How many lines seem to have escapes."""
    return sum(bool(_ESCAPE.search(line)) for line in LINE_END.split(text))


def is_between(name: str) -> bool:
    """Whether a name stands between apostrophes."""
    return len(name) > 1 and name[0] == name[-1] == APOSTROPHE


def between_apostrophes(text: str) -> int:
    """How many lines have cells between apostrophes; 0 if few, or if other lines use quotes."""
    lines = [line for line in LINE_END.split(text) if line]
    signs = [{found[1] for found in _BETWEEN.finditer(line)} for line in lines]
    count = sum(APOSTROPHE in one for one in signs)
    return count if count * 2 >= len(lines) and not any(QUOTE in one for one in signs) else 0


def text_lines(text: str, cells: DraftCells) -> Iterator[str]:
    """Lines about what divides a text into cells, or may, and which lines are no records."""
    shape = cells.shape
    if not shape.divided:
        sign = quoted(shape.delimiter)
        yield f"# ? delimiter = {sign}  # no sign divides most of its lines; or [positions]"
    elif not shape.stated and (fixed := _fixed_width(text, shape.delimiter)):
        yield f"# ? delimiter = {quoted(shape.delimiter)}  # or [positions]: {fixed}"
    elif not shape.stated:
        yield f"delimiter = {quoted(shape.delimiter)}"
    if shape.quote == APOSTROPHE:
        count = between_apostrophes(text)
        such = (
            f"{quantity(count, 'line', grouped)} {agree(count, 'has', 'have')} cells between such"
        )
        yield f"# ? quote = {quoted(APOSTROPHE)}  # {such} signs, and none between {QUOTE}"
        yield "#   what is said of cells and rows below is said of them read so"
    filled = [cell for row in shape.rows for cell in row if cell.strip()]
    padded = sum(cell != cell.strip() for cell in filled)
    if padded * FEW > len(filled):
        have = agree(padded, "has", "have")
        yield f'# ? blanks = "dropped"  # {quantity(padded, "cell", grouped)} {have} blanks around'
    elif hollow := sum(cell.isspace() for row in shape.rows for cell in row):
        such = f"{quantity(hollow, 'cell', grouped)} {agree(hollow, 'has', 'have')} blanks alone"
        yield f'# ? blanks = "dropped"  # {such}, which are no number and no time'
    if shape.comments:
        alike = shape.headed and shape.names[0].startswith(COMMENT)
        too = ", and the header too: it would be none" if alike else ""
        such = quantity(shape.comments, "line", grouped)
        begin = agree(shape.comments, "begins", "begin")
        yield f'# ? comment = "{COMMENT}"  # {such} {begin} so{too}'
    if count := shape.may_be_comments:
        begin = f"{agree(count, 'begins', 'begin')} with {COMMENT}"
        have = f"{agree(count, 'has', 'have')} all cells"
        such = quantity(count, "line", grouped)
        yield f'# ? {such} {begin} and {have}: records, or comment = "{COMMENT}"'
    if escapes := escapes_in(text):
        has = agree(escapes, "has", "have")
        yield f'# ? escape = "\\\\"  # {quantity(escapes, "line", grouped)} {has} \\N or \\"'
        if shape.escaped:
            yield "#   what is said of cells and rows below is said of them read so"
    yield from _skipped_lines(cells)
