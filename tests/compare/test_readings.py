"""What the values of a polars type are compared as."""

import polars as pl
import pytest

from schemas.cells.readings import Reading, reading_of


@pytest.mark.parametrize(
    ("dtype", "reading"),
    [
        (pl.Int32(), Reading.INTEGER),
        (pl.UInt64(), Reading.INTEGER),
        (pl.Decimal(38, 18), Reading.DECIMAL),
        (pl.Float64(), Reading.FLOAT),
        (pl.Datetime("us", "UTC"), Reading.INSTANT),
        (pl.Datetime("us"), Reading.WALL),
        (pl.Date(), Reading.DATE),
        (pl.Boolean(), Reading.BOOLEAN),
        (pl.String(), Reading.TEXT),
        (pl.Categorical(), Reading.TEXT),
        (pl.List(pl.Int32()), Reading.OTHER),
    ],
)
def test_a_type_is_read_as(dtype: pl.DataType, reading: Reading) -> None:
    assert reading_of(dtype) is reading
