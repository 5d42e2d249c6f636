"""Draft a feed profile from a file: what can be told is stated, what cannot is marked.

Nothing is guessed: where two readings fit all that was looked at, both are named in a comment that
begins with `# ?`, and the key is left out until somebody decides.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from connectors.files.archive import store
from connectors.files.blocks import blocks
from connectors.files.content import byte_order_mark, open_content, shown
from connectors.files.delivery import find_extract
from connectors.files.first_record import folded
from connectors.files.profile_file import read_profile
from connectors.files.scratch import scratch_folder
from connectors.files.shape import Shape, shape_of
from connectors.files.workbook import check_workbook
from connectors.settings import Settings
from flows.stages.draft_cells import DraftCells
from flows.stages.draft_columns import INTEGERS, NAMED, NUMBERS, TIMES, column_lines, kinds_of
from flows.stages.draft_encoding import encoding_of
from flows.stages.draft_number_lines import number_lines
from flows.stages.draft_shape import footer_lines, header_lines, odd_lines, quoted, text_lines
from flows.steps.draft_joined import JoinedTime, joined_time
from flows.steps.draft_months import WordedDays, worded_days
from flows.steps.draft_numbers import Found, NumberSigns
from flows.steps.draft_table import table_of
from flows.steps.draft_times import NOTHING, TimesFound, digit_times, times_of
from schemas.counting import grouped, quantity
from schemas.field import Field, Kind, Table
from schemas.tables import EXTRACTS

LOOKED_AT = 1 << 20
"""Bytes at the beginning of a file that a draft is made from, and as many at its end."""
WORDS = (Kind.BOOLEAN,)
BOOLEANS = {"true", "false", "1", "0"}
_ISO_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}").fullmatch


def draft_profile(
    settings: Settings, path: str, feed: str, record: str | None, sheet: str | None = None
) -> str:
    """The text of a profile for files like this one, of a workbook for this sheet of it.

    Raises DeliveryError where the path is not one file, ExtractRefused where that is no text, and
    ProfileError where the feed's name is none.
    """
    read_profile({"feed": feed})
    source = find_extract(path, settings.limits)
    with scratch_folder() as folder:
        stored = store(source, folder, settings.limits, lasting=False)
        with stored.path.open("rb") as file:
            head = file.read(LOOKED_AT)
            file.seek(max(0, stored.bytes - LOOKED_AT))
            last, size = file.read(), stored.bytes
        encoding, told = encoding_of(head)
        content = open_content(stored.path, encoding, name=source.name, sheet=sheet)
        if content.workbook:
            check_workbook(content, settings.limits)
            text = b"".join(blocks(content, 0, LOOKED_AT))
            head, last, size = text[:LOOKED_AT], text[-LOOKED_AT:], len(text)
            encoding, told = "utf-8", ()
    begin = _text(head, encoding)
    end = _text(last, encoding) if size > LOOKED_AT else None
    shape = shape_of(begin, end, of_workbook=content.workbook)
    table = EXTRACTS[record] if record else None
    separators = () if content.workbook else tuple(text_lines(begin, shape))
    drafted = _Draft(feed, shape, table, sheet, separators)
    return "\n".join(drafted.lines(source.name, told)) + "\n"


def _text(part: bytes, encoding: str) -> str:
    """The text of a part of a file; decoding is never refused."""
    mark, _ = byte_order_mark(part)
    return part[len(mark) :].decode(encoding, "replace")


@dataclass(slots=True)
class _Draft:
    feed: str
    shape: Shape
    table: Table | None
    sheet: str | None
    separators: tuple[str, ...]
    """What is said of the signs of a text; a workbook has none."""

    @property
    def cells(self) -> DraftCells:
        """Its columns and their cells, as they are shown."""
        return DraftCells(self.shape)

    def lines(self, name: str, encoding: Iterable[str]) -> Iterator[str]:
        shape = self.shape
        looked_at = quantity(len(shape.rows), "row", grouped)
        yield f"# Drafted from {shown(name, 100)}, the first {looked_at} of it."
        yield "# Decide what begins with `# ?`, then see:"
        yield f"# recon profile try {shown(name, 100)} --profile THIS_FILE"
        yield f"feed = {quoted(self.feed)}"
        kinds = ", ".join(EXTRACTS)
        yield (
            f"record = {quoted(self.table.name)}" if self.table else f'# ? record = ""  # {kinds}'
        )
        if self.sheet:
            yield f"sheet = {quoted(self.sheet)}"
        yield from encoding
        yield from header_lines(shape)
        yield from self.separators
        yield from odd_lines(shape)
        yield from footer_lines(shape)
        times, numbers, empty = self._read_columns()
        table = table_of(self.shape.names, numbers, empty)
        making = table.places if table else ()
        worded = self._worded(times, numbers)
        yield from self._nothing_lines({*times, *worded, *numbers, *making, *self._typed()})
        yield from number_lines(numbers, self.cells)
        yield from self._time_lines(times, worded)
        yield from self._unread_lines({*times, *worded}, numbers)
        may_be = kinds_of(self.shape, {*times, *worded}, numbers)
        yield from column_lines(self.shape, self.table, may_be, table)

    def _read_columns(self) -> tuple[dict[int, TimesFound], dict[int, NumberSigns], list[int]]:
        """The columns of times, of numbers, and of nothing, by their places."""
        times, numbers, empty = {}, {}, []
        for place in range(len(self.shape.names)):
            told = self.cells.told(place)
            signs = NumberSigns()
            if not told:
                empty.append(place)
            elif found := times_of(told):
                times[place] = found
            elif signs.add(told):
                numbers[place] = signs
        return times, numbers, empty

    def _worded(
        self, times: Mapping[int, TimesFound], numbers: Collection[int]
    ) -> dict[int, WordedDays]:
        """The columns of days with months in another language, by their places."""
        worded = {}
        for place in range(len(self.shape.names)):
            is_read = place in numbers or (place in times and not times[place].others)
            told = self.cells.told(place)
            if not is_read and (days := worded_days(told)):
                worded[place] = days
        return worded

    def _nothing_lines(self, places: Collection[int]) -> Iterator[str]:
        cells = (cell for place in sorted(places) for cell in self.shape.column(place))
        nothing = Counter(cell for cell in cells if NOTHING.fullmatch(cell))
        if nothing:
            words = ", ".join(map(quoted, ["", *sorted(nothing)]))
            so_many = quantity(nothing.total(), "cell", grouped)
            yield f"# ? null = [{words}]  # such texts are in {so_many} of numbers and times"

    def _time_lines(
        self, times: Mapping[int, TimesFound], worded: Mapping[int, WordedDays]
    ) -> Iterator[str]:
        written = {of.forms for of in times.values()}
        if agreed := [
            form for form in min(written, default=()) if all(form in one for one in written)
        ]:
            written = {tuple(agreed)}
        others = any(of.others for of in times.values())
        zones = sorted({zone for of in times.values() for zone in of.zones})
        if len(written) > 1:
            yield "# ? date_format: columns differ in it, see [fields.NAME]"
            for place, of in times.items():
                yield f"#   {self.cells.name(place)}: {_forms(of)}"
        for forms in written - {()} if len(written) == 1 else ():
            fits = "each fits as many cells" if others else "each fits every row"
            why = f"  # {fits}" if len(forms) > 1 else "  # of most cells" if others else ""
            mark = "# ? " if why or zones else ""
            yield f"{mark}date_format = {' or '.join(map(_stated, forms))}{why}"
        for place, of in times.items():
            if of.others:
                no_time = Found(of.others, of.example)
                yield self.cells.but(place, no_time, f"not {_forms(of)}", f"not {_forms(of)}")
        yield from self._month_lines(times, worded)
        if zones:
            yield _zones(zones)
        joined = self._joined(times)
        if joined:
            yield from self._joined_lines(joined)
        is_local = worded or any(not of.offsets for of in times.values())
        if is_local and not (joined and joined.zones):
            yield '# ? zone = "Europe/Berlin" or offset = "Z"  # what a time without offset means'

    def _month_lines(
        self, times: Collection[int], worded: Mapping[int, WordedDays]
    ) -> Iterator[str]:
        """What is asked of months in another language; their order is that of no file."""
        for place, of in worded.items():
            if place not in times:
                such = f"{self.cells.name(place)}, such as {shown(self.shape.column(place)[0], 40)}"
                yield f"# ? date_format = {' or '.join(map(quoted, of.forms))}  # of {such}"
        if worded:
            found = dict.fromkeys(name for of in worded.values() for name in of.names)
            named = ", ".join(shown(name, 20) for name in found)
            yield f"# ? months = []  # all twelve, from January on, as in the file: here {named}"

    def _joined(self, times: Mapping[int, TimesFound]) -> JoinedTime | None:
        """The first time that seems to stand in several columns."""
        told = {
            place: cells
            for place in range(len(self.shape.names))
            if (cells := {*self.cells.told(place)})
        }
        days = {
            place: [form for (form,) in of.forms] or ["%Y-%m-%d"]
            for place, of in times.items()
            if not (of.offsets or of.others or any(len(forms) > 1 for forms in of.forms))
            and (of.forms or all(map(_ISO_DAY, told[place])))
        }
        return joined_time(self.shape.names, told, days)

    def _joined_lines(self, joined: JoinedTime) -> Iterator[str]:
        names = ", ".join(map(self.cells.name, joined.places))
        theirs = {folded(name) for name in self.shape.names}
        times = [of.name for of in self._fields() if of.kind in TIMES] if self.table else []
        field = next((name for name in times if folded(name) not in theirs), "NAME")
        yield f"# If the columns {names} are one time, it is instead:"
        yield f"# ? date_format = {' or '.join(map(quoted, joined.forms))}"
        if joined.zones:
            yield _zones(joined.zones)
        yield f"# ? [fields.{field}]"
        yield f"# ? from = [{names}]"
        yield '# ? join = " "'

    def _typed(self) -> dict[int, Field]:
        """The fields whose own names columns have, by place, as far as they are no texts."""
        fields = {field.name.casefold(): field for field in self._fields()}
        named = ((place, fields.get(folded(name))) for place, name in enumerate(self.shape.names))
        return {place: of for place, of in named if of and of.kind in (*TIMES, *NUMBERS, *WORDS)}

    def _unread_lines(
        self, times: Collection[int], numbers: Mapping[int, NumberSigns]
    ) -> Iterator[str]:
        """The columns with a field's own name whose cells are not what the field is."""
        for place, of in self._typed().items():
            cells = self.cells.told(place)
            if not cells or (place in times and of.kind in TIMES):
                continue
            such = f"such as {shown(cells[0], 40)}"
            digits = of.kind in TIMES and all(map(str.isdigit, cells))
            if digits and (forms := digit_times({*cells})):
                either = " or ".join(map(quoted, forms))
                yield f"# ? date_format = {either}  # of {self.cells.name(place)}, {such}"
            elif of.kind in TIMES:
                yield f"# ? date_format: no form was found for {self.cells.name(place)}, {such}"
            elif of.kind in NUMBERS and place not in numbers:
                yield f"# ? {self.cells.name(place)}: most of its cells are no numbers, {such}"
            elif of.kind in INTEGERS and numbers[place].decimal:
                yield f"# ? {self.cells.name(place)}: some of its cells are no whole numbers"
            elif of.kind in WORDS and (words := {*map(str.casefold, cells)} - BOOLEANS):
                name, listed = self.cells.name(place), sorted(words)[:NAMED]
                mean = ", ".join(map(quoted, listed))
                yield f"# ? true and false: what the words of {name} mean: {mean}"

    def _fields(self) -> Iterator[Field]:
        for table in [self.table] if self.table else EXTRACTS.values():
            yield from table.delivered


def _zones(zones: Iterable[str]) -> str:
    named = ", ".join(f'{zone} = ""' for zone in zones)
    return f'# ? zones = {{ {named} }}  # what each means: "+01:00", or "Europe/Berlin"'


def _forms(of: TimesFound) -> str:
    return " or ".join(map(_stated, of.forms)) if of.forms else "of ISO 8601"


def _stated(forms: Sequence[str]) -> str:
    """A form as a profile states it, or several of which each cell has one."""
    listed = ", ".join(map(quoted, forms))
    return listed if len(forms) == 1 else f"[{listed}]"
