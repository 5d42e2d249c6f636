"""Two tables compared in place: only rows that may differ are transferred.

Within one database a join finds them. Between two, each side sums up hashes of its rows by segments
of the key, and only segments with different sums are pulled and compared like any other side.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import polars as pl
from psycopg import sql

from connectors.compare.sides import Side
from connectors.compare.table_side import (
    Spill,
    SqlTable,
    copied,
    far_times_named,
    in_parallel,
    pulled,
    refusals,
)
from schemas.cells.readings import column
from schemas.counting import quantity

SEGMENT_ROWS = 8
MOST_SEGMENTS = 1 << 17
MOST_ENTRIES = 1664
"""Most columns that PostgreSQL selects or puts into a row."""
_INTEGERS = frozenset({"int2", "int4", "int8"})
_NUMERIC = _INTEGERS | {"numeric"}
_SENT = {
    "timestamp": "timestamp_send({})",
    "timestamptz": "timestamptz_send({})",
    "numeric": "numeric_send(trim_scale({}))",
}
"""Conversions to bytes, so that all of a value is hashed."""
_TEXTS = frozenset({"text", "varchar"})
_PLAIN = frozenset({"bool", "date", "timestamp", "timestamptz", "uuid", "bytea", "float8"})


@dataclass(frozen=True, slots=True)
class TablePair:
    """The rest of two tables still to be compared, and the number of rows found equal in place."""

    left: Side
    right: Side
    equal: int
    method: str


def table_pair(
    left: SqlTable, right: SqlTable, key: Sequence[str], columns: Sequence[str], scratch: Path
) -> TablePair:
    """Both tables as sides with the rows that may differ; raises SidesRefused.

    `columns` are the compared columns, the key first; no other is read.
    """
    for table in (left, right):
        table.check_rights(columns)
    same = (_comparable(left.columns[name].type, right.columns[name].type) for name in columns)
    if not all(same):
        return _whole(left, right, columns, scratch, "pulled whole: their types differ")
    # A join selects the columns of both sides, and a hash takes an integer as two.
    if 2 * len(columns) > MOST_ENTRIES:
        method = "pulled whole: their columns are too many for one query"
        return _whole(left, right, columns, scratch, method)
    if left.place == right.place:
        return _joined(left, right, key, columns, scratch)
    if left.encoding != right.encoding:
        # Texts are hashed in the bytes of their own encoding.
        return _whole(left, right, columns, scratch, "pulled whole: their encodings differ")
    return _by_segments(left, right, key, columns, scratch)


def _comparable(left: str, right: str) -> bool:
    if left == right and left in _PLAIN:
        return True
    return any({left, right} <= family for family in (_NUMERIC, _TEXTS))


def _whole(
    left: SqlTable, right: SqlTable, columns: Sequence[str], scratch: Path, method: str
) -> TablePair:
    return TablePair(*_pulled((left, right), columns, scratch), 0, method)


def _pulled(
    tables: tuple[SqlTable, SqlTable],
    columns: Sequence[str],
    scratch: Path,
    where: sql.Composable | None = None,
) -> tuple[Side, Side]:
    folders = (scratch / "left", scratch / "right")
    both = zip(tables, folders, strict=True)
    pulling = [partial(pulled, table, columns, folder, where) for table, folder in both]
    left, right = in_parallel(pulling, *tables)
    return left, right


def _joined(
    left: SqlTable, right: SqlTable, key: Sequence[str], columns: Sequence[str], scratch: Path
) -> TablePair:
    """Join both tables in the database; only rows that are not the same come back."""
    # The join sees both tables at the left connection's moment, which may be the later one.
    for table in (left, replace(right, connection=left.connection)):
        if not table.unique(key) and _doubtful(table, key, 1):
            method = f"pulled whole: {table.name} repeats or lacks keys"
            return _whole(left, right, columns, scratch, method)
    on = [sql.SQL("{} = {}").format(*_both(left, right, name)) for name in key]
    differing = [sql.SQL("l.{0} IS NULL OR r.{0} IS NULL").format(sql.Identifier(key[0]))]
    differing += [
        sql.SQL("{} IS DISTINCT FROM {}").format(*_both(left, right, name))
        for name in columns[len(key) :]
    ]
    spills = [Spill(left, columns, scratch / "left"), Spill(right, columns, scratch / "right")]
    prefixed = {
        f"{alias}{name}": one
        for alias, spill in zip("lr", spills, strict=True)
        for name, one in spill.types.items()
    }
    selected = [
        table.columns[name].selected(alias)
        for alias, table in (("l", left), ("r", right))
        for name in columns
    ]
    rows = sql.SQL("{} l FULL JOIN {} r ON {} WHERE ({})").format(
        left.identifier,
        right.identifier,
        sql.SQL(" AND ").join(on),
        sql.SQL(" OR ").join(differing),
    )
    order = [*left.order(key, "l"), *right.order(key, "r")]
    statement = sql.SQL("SELECT {} FROM {} ORDER BY {}").format(
        sql.SQL(", ").join(selected), rows, sql.SQL(", ").join(order)
    )
    with refusals(left.name), far_times_named({"l": left, "r": right}, columns, rows):
        for frame in copied(left.connection, statement, prefixed):
            for alias, spill in zip("lr", spills, strict=True):
                present = frame.filter(pl.col(f"{alias}{key[0]}").is_not_null())
                named = (pl.col(f"{alias}{name}").alias(name) for name in spill.types)
                spill.add(present.select(named))
    equal = left.count() - spills[0].rows
    return TablePair(spills[0].side(), spills[1].side(), equal, "joined in the database")


def _by_segments(
    left: SqlTable, right: SqlTable, key: Sequence[str], columns: Sequence[str], scratch: Path
) -> TablePair:
    """Compare sums of row hashes by segment, then pull segments that differ from both sides."""
    rows = max(left.estimate(), right.estimate(), 1)
    segments = min(MOST_SEGMENTS, 1 << (rows // SEGMENT_ROWS).bit_length())
    # The sums run in parallel, in a server process for each table.
    adding = [partial(_sums, table, key, columns, segments) for table in (left, right)]
    sums = in_parallel(adding, left, right)
    together = sums[0].join(sums[1], on="segment", how="full", coalesce=True, suffix="_right")
    differ = pl.any_horizontal(
        pl.col(name).ne_missing(pl.col(f"{name}_right")) for name in ("rows", "sum", "mix")
    )
    differing = set(together.filter(differ)["segment"])
    for table in (left, right):
        if not table.unique(key):
            differing |= set(_doubtful(table, key, segments))
    equal = together.filter(~pl.col("segment").is_in(list(differing)))["rows"].sum()
    where = sql.SQL("{} = ANY({}::int[])").format(
        _segment(key, segments), sql.Literal(f"{{{','.join(map(str, sorted(differing)))}}}")
    )
    if len(differing) * 2 > segments:
        return _whole(left, right, columns, scratch, "pulled whole: most segments differ")
    return TablePair(
        *_pulled((left, right), columns, scratch, where),
        int(equal),
        f"{quantity(segments, 'segment')} compared by the sums of 64-bit row hashes, "
        f"{len(differing)} pulled",
    )


def _sums(
    table: SqlTable, key: Sequence[str], columns: Sequence[str], segments: int
) -> pl.DataFrame:
    content = sql.SQL("hash_record_extended(ROW({}), 1)").format(
        sql.SQL(", ").join(_hashable(table, name) for name in columns)
    )
    statement = sql.SQL(
        # Summing a plain integer costs a fifth of a sum that needs more than 64 bits.
        "SELECT segment, count(*), sum((h >> 32)::int4), bit_xor(h) FROM ("
        # A record's hash adds up those of its fields, so two rows that exchange values might leave
        # both sums unchanged. Hashing its halves once more breaks that.
        "SELECT segment, hash_record_extended("
        "ROW((fields >> 32)::int4, ((fields << 32) >> 32)::int4), 1) AS h "
        "FROM (SELECT {} AS segment, {} AS fields FROM {} OFFSET 0) read OFFSET 0) hashed "
        "GROUP BY segment"
    ).format(_segment(key, segments), content, table.identifier)
    types = {name: column(name, pl.Int64()) for name in ("segment", "rows", "sum", "mix")}
    with refusals(table.name):
        frames = [*copied(table.connection, statement, types)]
    return pl.concat(frames or [pl.DataFrame(schema=dict.fromkeys(types, pl.Int64()))])


def _hashable(table: SqlTable, name: str) -> sql.Composable:
    """A column in a form in which all of it is hashed.

    PostgreSQL folds the halves of 64-bit values together and leaves out the sign of a numeric.
    """
    column, kind = _exact(table, sql.Identifier(name), name), table.columns[name].type
    if kind in _INTEGERS:
        return sql.SQL("{0}, ({0}::int8 >> 32)::int4").format(column)
    return sql.SQL(_SENT[kind]).format(column) if kind in _SENT else column


def _segment(key: Sequence[str], segments: int) -> sql.Composable:
    names = sql.SQL(", ").join(map(sql.Identifier, key))
    return sql.SQL("(hash_record_extended(ROW({}), 0) & {})::int").format(
        names, sql.Literal(segments - 1)
    )


def _doubtful(table: SqlTable, key: Sequence[str], segments: int) -> list[int]:
    """Segments with a key that occurs more than once or has an empty part."""
    names = [sql.Identifier(name) for name in key]
    empty = sql.SQL(" OR ").join(sql.SQL("{} IS NULL").format(name) for name in names)
    statement = sql.SQL(
        "SELECT DISTINCT {} FROM {} GROUP BY {} HAVING count(*) > 1 OR bool_or({})"
    ).format(_segment(key, segments), table.identifier, sql.SQL(", ").join(names), empty)
    return [number for (number,) in table.rows(statement)]


def _both(left: SqlTable, right: SqlTable, name: str) -> tuple[sql.Composable, sql.Composable]:
    return (
        _exact(left, sql.Identifier("l", name), name),
        _exact(right, sql.Identifier("r", name), name),
    )


def _exact(table: SqlTable, identifier: sql.Identifier, name: str) -> sql.Composable:
    """The column, compared by exact text: a collation may find different texts equal."""
    if table.columns[name].type in _TEXTS:
        return sql.SQL('{} COLLATE "C"').format(identifier)
    return identifier
