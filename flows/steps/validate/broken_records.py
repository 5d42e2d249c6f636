"""What is said of broken records beside what their fault is."""

from collections.abc import Mapping, Sequence

import polars as pl

from schemas.counting import quantity

_DIVIDED = (
    "Lines {} to {} have together the fields of one record: a line break within a text may have "
    "divided it. Have the sender quote such texts, or escape their line breaks. Where they are "
    "corrected, write the whole record in the row of each of them: one alone leaves the others in "
    "error."
)
_ABOVE = "It is in what a line above says of the records below it (skip_lines)."


def broken_details(
    counted: pl.Series,
    width: int,
    unnamed: int,
    divided: Mapping[int, tuple[int, int]],
    above: Sequence[int],
) -> pl.Series:
    """A text for each record; null where there is none.

    `counted`: how many fields a record has instead of `width`, the last of which are `unnamed`;
    null where nothing is said of that. `divided`: records that may be parts of one, with its first
    and last line. `above`: records with the fault of a cell that a line above them says.
    """
    behind = f", the last {unnamed} without a name" if unnamed else ""
    counts = counted.unique().drop_nulls()
    said = [f"It has {quantity(count, 'field')} instead of {width}{behind}." for count in counts]
    fields = counted.replace_strict(counts, said, default=None, return_dtype=pl.String)
    if not divided and not above:
        return fields
    lines = pl.repeat(None, len(counted), dtype=pl.String, eager=True).scatter(
        [*divided], [_DIVIDED.format(*between) for between in divided.values()]
    )
    of_above = pl.repeat(None, len(counted), dtype=pl.String, eager=True).scatter(above, _ABOVE)
    texts = pl.DataFrame([fields.alias("fields"), lines.alias("lines"), of_above.alias("above")])
    text = pl.concat_str(pl.all(), separator=" ", ignore_nulls=True)
    return texts.select(pl.when(pl.any_horizontal(pl.all().is_not_null())).then(text)).to_series()
