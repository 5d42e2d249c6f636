"""How the feed of a profile writes values, and a record written as the service writes it."""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

import polars as pl

from connectors.files.chunks.cells import unread_cells
from connectors.files.layout.header import Header
from connectors.files.profiles.profile import Profile, date_forms, number_form, written_of
from connectors.files.profiles.profile_writing import FOLDED
from flows.steps.validate.arithmetic import ColumnSum
from flows.steps.validate.normalise import CellForm, Writing, normalise
from flows.steps.validate.times import TimeForm
from schemas.cells.reading import UNFIT, Unread, offset_minutes


def plain_cells(header: Header, cells: Sequence[str], profile: Profile) -> dict[str, str | None]:
    """The cells of one record by field, in the service document's form; None for no value."""
    row = plain_rows(header, [cells], profile).row(0, named=True)
    return {name: text and text.replace(UNFIT, "") for name, text in row.items()}


def plain_rows(header: Header, rows: Sequence[Sequence[str]], profile: Profile) -> pl.DataFrame:
    """The same for many records, a column per field; invalid values are marked with `UNFIT`."""
    names = [str(place) for place in range(header.width)]
    frame = pl.DataFrame(rows, schema=dict.fromkeys(names, pl.String()), orient="row")
    frame = frame.with_columns(pl.when(pl.col(name) != "").then(name) for name in names)
    writing = writing_of(profile, unread_cells(header))
    return normalise(header.table, frame, header.fields, writing, header.sources)


def writing_of(profile: Profile, unread: str | None = None) -> Writing:
    """How a profile's feed writes values; `unread` is a pattern of cells without a value."""
    fields = {name: _form(written_of(profile, name), unread) for name in profile.fields}
    form = _form(written_of(profile), unread)
    return Writing(form, fields, profile.constants, profile.keys)


def _form(written: Mapping[str, Any], unread: str | None) -> CellForm:
    offset = offset_minutes(written["offset"])
    assert not isinstance(offset, Unread)  # Otherwise the profile was refused.
    return CellForm(
        number_form(written),
        TimeForm(date_forms(written), offset, written["zone"]),
        written["null"],
        written["true"],
        written["false"],
        written["blanks"] == "dropped",
        written.get("join", ""),
        written.get("part"),
        written.get("prefix", ""),
        written.get("suffix", ""),
        written.get("map"),
        written.get("default"),
        unread,
        sum=_sum(written),
        units=_units(written, unread),
        folded=written["width"] == FOLDED,
    )


def _sum(written: Mapping[str, Any]) -> ColumnSum | None:
    if not written.keys() & {"sum", "minus"}:
        return None
    return ColumnSum(
        len(written.get("sum", ())),
        Decimal(written.get("scale", "1")),
        one_filled=written.get("filled") == "one",
        signed="map" in written.get("per", {}),
    )


def _units(written: Mapping[str, Any], unread: str | None) -> CellForm | None:
    """How a column says how many units a number is for."""
    per = written.get("per")
    if per is None:
        return None
    return CellForm(
        number_form(written).count,
        null=written["null"],
        blanks_dropped=written["blanks"] == "dropped",
        part=per.get("part"),
        map={text.strip(): units for text, units in per["map"].items()} if "map" in per else None,
        unread=unread,
        others=per.get("others"),
        map_is_bare=True,
        folded=written["width"] == FOLDED,
    )
