"""Draft a feed profile from a file: state what is certain, and mark what is not.

Nothing is guessed: if two readings fit everything that was looked at, a comment beginning with `#
?` names both, and the key is left out until somebody decides.
"""

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

from connectors.files.archived.archive import store
from connectors.files.archived.blocks import blocks
from connectors.files.disk.scratch import scratch_folder
from connectors.files.drafting.shape import Shape, shape_of
from connectors.files.drafting.text_records import QUOTE
from connectors.files.incoming.delivery import find_extract
from connectors.files.layout.first_record import folded
from connectors.files.profiles.profile_file import read_profile
from connectors.files.sheets.workbook import check_workbook
from connectors.files.text.content import SAVED, byte_order_mark, open_content
from connectors.printable import shown
from connectors.settings import Settings
from flows.stages.advised import advised
from flows.stages.draft.cells import DraftCells, quoted
from flows.stages.draft.columns import (
    CENTS,
    NAMED,
    column_lines,
    kinds_of,
    may_count_cents,
    offers_of,
    side_lines,
    sides_of,
)
from flows.stages.draft.encoding import EncodingFound, encoding_of
from flows.stages.draft.shape import (
    APOSTROPHE,
    between_apostrophes,
    escapes_in,
    footer_lines,
    header_lines,
    is_between,
    odd_lines,
    sum_lines,
    text_lines,
)
from flows.stages.draft.value_lines import joined_lines, number_lines, time_lines, year_lines
from flows.steps.draft_joined import JoinedTime, joined_time
from flows.steps.draft_months import WordedDays, worded_days
from flows.steps.draft_numbers import NumberSigns, may_be_overpunched
from flows.steps.draft_table import table_of
from flows.steps.draft_times import NOTHING, TimesFound, digit_times, times_of
from schemas.cells.numbers import OVERPUNCHED
from schemas.cells.widths import of_usual_width
from schemas.counting import agree, grouped, quantity
from schemas.field import INTEGERS, NUMBERS, TIMES, Field, Kind, Table
from schemas.reasons import NOT_SHOWN
from schemas.tables import EXTRACTS

LOOKED_AT = 1 << 20
"""Bytes at the beginning of a file, and at its end, that a draft is made from."""
DAY_DIGITS = 8
"""Digits of a day without separators, which is recognised whatever its column is called."""
WORDS = (Kind.BOOLEAN,)
BOOLEANS = {"true", "false", "1", "0"}
_WIDE_DIGIT = re.compile("[\uff10-\uff19]")
_ISO_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}").fullmatch
_PLAIN = re.compile(r"[-+]?[0-9][0-9.,]*")


def draft_profile(
    settings: Settings, path: str, feed: str, record: str | None, sheet: str | None = None
) -> str:
    """The text of a profile for files like this one, or for this sheet of workbooks like this one.

    Raises DeliveryError if the path is not one file, ExtractRefused if that is no text, and
    ProfileError if the feed's name is invalid.
    """
    read_profile({"feed": feed})
    source = find_extract(path, settings.limits)
    with scratch_folder() as folder:
        stored = store(source, folder, settings.limits, lasting=False)
        with stored.path.open("rb") as file:
            head = file.read(LOOKED_AT)
            file.seek(max(0, stored.bytes - LOOKED_AT))
            last, size = file.read(), stored.bytes
        found = encoding_of(head)
        content = open_content(
            stored.path, found.encoding, name=source.name, sheet=sheet, formulas=SAVED
        )
        in_doubt = ""
        if content.workbook:
            in_doubt = check_workbook(content, settings.limits).in_doubt
            text = b"".join(blocks(content, 0, LOOKED_AT))
            head, last, size = text[:LOOKED_AT], text[-LOOKED_AT:], len(text)
            found = EncodingFound("utf-8")
    begin = _text(head, found.encoding)
    end = _text(last, found.encoding) if size > LOOKED_AT else None
    shape = _shape(begin, end, of_workbook=content.workbook)
    table = EXTRACTS[record] if record else None
    cells = DraftCells.of(shape, table)
    separators = () if content.workbook else tuple(text_lines(begin, cells))
    drafted = _Draft(feed, cells, table, sheet, in_doubt, separators)
    return "\n".join(drafted.lines(source.name, path, found.lines(cells))) + "\n"


def _text(part: bytes, encoding: str) -> str:
    """The text of a part of a file; bytes that cannot be decoded are replaced."""
    mark, _ = byte_order_mark(part)
    return part[len(mark) :].decode(encoding, "replace")


def _shape(begin: str, end: str | None, *, of_workbook: bool) -> Shape:
    """How a text is divided: with escapes if some seem to be there and no more rows are odd then.

    Likewise with cells between apostrophes, if fewer rows are odd or all names stand between them.
    """
    shape = shape_of(begin, end, of_workbook=of_workbook)
    if of_workbook:
        return shape
    quote = QUOTE
    if between_apostrophes(begin):
        quoted_so = shape_of(begin, end, quote=APOSTROPHE)
        if len(quoted_so.odd) < len(shape.odd) or all(map(is_between, shape.names or [""])):
            shape, quote = quoted_so, APOSTROPHE
    if not escapes_in(begin):
        return shape
    escaped = shape_of(begin, end, quote=quote, escaped=True)
    return escaped if len(escaped.odd) <= len(shape.odd) else shape


@dataclass(slots=True)
class _Draft:
    feed: str
    cells: DraftCells
    """The file's columns and cells, as they are shown."""
    table: Table | None
    sheet: str | None
    in_doubt: str
    """Why a workbook's formulas may give other values than were saved with it."""
    separators: tuple[str, ...]
    """The lines about a text's separators; a workbook has none."""

    @property
    def shape(self) -> Shape:
        return self.cells.shape

    def lines(self, name: str, path: str, encoding: Iterable[str]) -> Iterator[str]:
        shape = self.shape
        looked_at = quantity(len(shape.rows), "row", grouped)
        yield f"# Drafted from {shown(name, 100)}, the first {looked_at} of it."
        yield "# Decide what begins with `# ?`, then see:"
        # An address may contain what others must not read.
        given = shown(name if "://" in path else path, len(path))
        yield f"# {advised('profile try', [given], {'profile': 'THIS_FILE'})}"
        yield f"feed = {quoted(self.feed)}"
        kinds = ", ".join(EXTRACTS)
        yield (
            f"record = {quoted(self.table.name)}" if self.table else f'# ? record = ""  # {kinds}'
        )
        if self.sheet:
            yield f"sheet = {quoted(self.sheet)}"
        if self.in_doubt:
            yield f'# ? formulas = "{SAVED}"  # if its values are true, though {self.in_doubt}'
        yield from encoding
        header = [*header_lines(self.cells)]
        yield from header
        if not self.separators and not self.sheet and any("# ? names" in one for one in header):
            yield '# ? sheet = ""  # beside names: which sheet, by its name or its number'
        yield from self.separators
        yield from odd_lines(self.cells)
        yield from sum_lines(self.cells)
        yield from footer_lines(self.cells)
        times, numbers, empty = self._read_columns()
        table = table_of(self.shape.names, numbers, empty)
        making = table.places if table else ()
        worded = self._worded(times, numbers)
        typed = {place: field.name for place, field in self._typed().items()}
        values = {*times, *worded, *numbers, *making, *typed}
        yield from _nothing_lines(values, self.cells)
        yield from number_lines(numbers, self.cells)
        yield from self._width_lines()
        yield from self._overpunched_lines()
        joined = self._joined(times)
        yield from time_lines(times, worded, joined, self.cells)
        yield from self._unread_lines({*times, *worded}, numbers)
        may_be = kinds_of(self.cells, {*times, *worded}, numbers)
        sides = () if table else sides_of(self.cells, numbers, typed)
        offers = offers_of(self.cells, self.table, may_be, table, sides)
        for place, offer in offers.items():
            named = {of.kind for of in (offer.field, *offer.others) if of}
            days = not named and all(len(cell) == DAY_DIGITS for cell in self.cells.values(place))
            if place in numbers and (days or not named.isdisjoint(TIMES)):
                yield from self._digit_lines(place)
        yield from column_lines(self.cells, self.table, offers, table, numbers)
        # After all keys that are in no section.
        if joined:
            yield ""
            yield from joined_lines(joined, self._free(lambda of: of.kind in TIMES), self.cells)
        if sides:
            yield ""
            yield from side_lines(self.cells, numbers, sides, self._free(lambda of: of.amount))
        yield from _nothing_sections(values, typed, self.cells)

    def _width_lines(self) -> Iterator[str]:
        """The line about full-width digits in numbers and times."""
        cells = [cell for row in self.shape.rows for cell in row if _WIDE_DIGIT.search(cell)]
        if cells:
            have = f"{quantity(len(cells), 'cell', grouped)} {agree(len(cells), 'has', 'have')}"
            yield (
                f'# ? width = "folded"  # {have} full-width digits, such as '
                f"{self.cells.display(cells[0], 40)}: of numbers and times"
            )

    def _overpunched_lines(self) -> Iterator[str]:
        """The lines about a letter at the end of numbers, which may be a digit."""
        for place in range(len(self.shape.names)):
            cells = self.cells.values(place)
            if may_be_overpunched(cells):
                such = next(cell for cell in cells if not cell.isdigit())
                yield (
                    f'# ? sign = "{OVERPUNCHED}"  # of {self.cells.name(place)}, such as '
                    f"{self.cells.display(such, 40)}; mostly with implied_decimals"
                )

    def _read_columns(self) -> tuple[dict[int, TimesFound], dict[int, NumberSigns], list[int]]:
        """The columns of times, of numbers, and without values, by their places."""
        times, numbers, empty = {}, {}, []
        for place in range(len(self.shape.names)):
            texts = self.cells.values(place)
            signs = NumberSigns()
            if not texts:
                empty.append(place)
            elif found := times_of(texts):
                times[place] = found
            elif signs.add(texts):
                numbers[place] = signs
        return times, numbers, empty

    def _worded(
        self, times: Mapping[int, TimesFound], numbers: Collection[int]
    ) -> dict[int, WordedDays]:
        """The columns of days with month names of another language, by their places."""
        worded = {}
        for place in range(len(self.shape.names)):
            is_read = place in numbers or (place in times and not times[place].others)
            texts = self.cells.values(place)
            if not is_read and (days := worded_days(texts)):
                worded[place] = days
        return worded

    def _joined(self, times: Mapping[int, TimesFound]) -> JoinedTime | None:
        """The first time that seems to be spread over several columns."""
        texts = {
            place: cells
            for place in range(len(self.shape.names))
            if (cells := {*self.cells.values(place)})
        }
        days = {
            place: [form for (form,) in of.forms] or ["%Y-%m-%d"]
            for place, of in times.items()
            if not (of.offsets or of.others or any(len(forms) > 1 for forms in of.forms))
            and (of.forms or all(map(_ISO_DAY, texts[place])))
        }
        return joined_time(self.shape.names, texts, days)

    def _free(self, is_wanted: Callable[[Field], bool]) -> str:
        """The first wanted field whose name no column has; NAME if the record kind is unknown."""
        theirs = {folded(name) for name in self.shape.names}
        wanted = [of.name for of in self.table.delivered if is_wanted(of)] if self.table else []
        return next((name for name in wanted if folded(name) not in theirs), "NAME")

    def _typed(self) -> dict[int, Field]:
        """The fields that columns have as their name, by place, except fields that are texts."""
        tables = [self.table] if self.table else EXTRACTS.values()
        fields = {field.name.casefold(): field for one in tables for field in one.delivered}
        named = ((place, fields.get(folded(name))) for place, name in enumerate(self.shape.names))
        return {place: of for place, of in named if of and of.kind in (*TIMES, *NUMBERS, *WORDS)}

    def _unread_lines(
        self, times: Collection[int], numbers: Mapping[int, NumberSigns]
    ) -> Iterator[str]:
        """Lines about columns with a field's own name whose cells do not fit the field."""
        for place, of in self._typed().items():
            cells = self.cells.values(place)
            if not cells or (place in times and of.kind in TIMES):
                continue
            such = f"such as {self.cells.display(cells[0], 40)}"
            if of.kind in TIMES and (lines := [*self._digit_lines(place)]):
                yield from lines
            elif of.kind in TIMES:
                yield f"# ? date_format: no form was found for {self.cells.name(place)}, {such}"
            elif of.kind in NUMBERS and place not in numbers:
                odd = next((one for one in cells if not _PLAIN.fullmatch(one.strip())), cells[0])
                such = f"such as {self.cells.display(odd, 40)}"
                yield f"# ? {self.cells.name(place)}: most of its cells are no numbers, {such}"
            elif of.kind in INTEGERS and numbers[place].decimal:
                yield f"# ? {self.cells.name(place)}: some of its cells are no whole numbers"
            elif of.amount and may_count_cents(cells) and any(len(one) > 2 for one in cells):
                yield f"# ? {self.cells.name(place)}: {CENTS}, {such}"
            elif of.kind in WORDS and (words := {*map(str.casefold, cells)} - BOOLEANS):
                name, listed = self.cells.name(place), sorted(words)[:NAMED]
                mean = NOT_SHOWN if self.cells.hidden else ", ".join(map(quoted, listed))
                yield f"# ? true and false: what the words of {name} mean: {mean}"

    def _digit_lines(self, place: int) -> Iterator[str]:
        """Lines on how a column's numbers may be times; none if they cannot be."""
        cells = self.cells.values(place)
        if forms := digit_times({*cells}):
            either, such = " or ".join(map(quoted, forms)), self.cells.display(cells[0], 40)
            yield f"# ? date_format = {either}  # of {self.cells.name(place)}, such as {such}"
            yield from year_lines(place, forms, self.cells)


def _nothing_lines(places: Collection[int], cells: DraftCells) -> Iterator[str]:
    """What stands for no value in numbers and times, unless texts contain it too."""
    nothing = _counted(places, cells)
    if not nothing:
        return
    so_many = quantity(nothing.total(), "cell", grouped)
    texts = _in_texts(nothing, places, cells)
    where = f"such texts are in {so_many} of numbers and times{',' if texts else ''}"
    yield f"# ? null = [{_listed(['', *nothing])}]  # {where}"
    for place, found in texts.items():
        count = quantity(found.total(), "cell", grouped)
        yield f"#   and in {count} of {cells.name(place)}, which this would empty: {_listed(found)}"
    if texts:
        yield "#   where that is wrong, the sections below say it of single fields instead"


def _nothing_sections(
    places: Collection[int], names: Mapping[int, str], cells: DraftCells
) -> Iterator[str]:
    """Sections for numbers and times with such texts, if other columns may have them as texts.

    `names` are the fields of columns that are named like one.
    """
    if not _in_texts(_counted(places, cells), places, cells):
        return
    for place in sorted(places):
        if found := _counted([place], cells):
            of = "" if place in names else f"  # of {cells.name(place)}"
            yield ""
            yield f"# ? [fields.{names.get(place, 'NAME')}]{of}"
            yield f"# ? null = [{_listed(['', *found])}]"


def _counted(places: Iterable[int], cells: DraftCells) -> Counter[str]:
    each = (cell for place in sorted(places) for cell in cells.shape.column(place))
    return Counter(cell for cell in each if NOTHING.fullmatch(of_usual_width(cell)))


def _in_texts(
    nothing: Collection[str], places: Collection[int], cells: DraftCells
) -> dict[int, Counter[str]]:
    """How often other columns have these words, by their places."""
    others = (place for place in range(len(cells.shape.names)) if place not in places)
    found = {
        place: Counter(cell for cell in cells.shape.column(place) if cell in nothing)
        for place in others
    }
    return {place: words for place, words in found.items() if words}


def _listed(words: Iterable[str]) -> str:
    return ", ".join(map(quoted, sorted(words)))
