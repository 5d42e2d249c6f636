"""Many rows of the database as a frame: COPY in text format, parsed by polars in blocks.

In this format every row is one line, whatever its texts contain.
"""

import codecs
from collections.abc import Iterator, Mapping
from typing import Any

import polars as pl
import psycopg
from psycopg import sql
from psycopg.errors import error_from_result
from psycopg.pq import ConnStatus, ExecStatus
from psycopg.pq.abc import PGconn, PGresult

from schemas.derived.views import quoted
from schemas.frame_types import Dtype

BLOCK_BYTES = 8 * 1024 * 1024
NULL = "\\N"
Columns = dict[str, tuple[str, Dtype]]
"""By column name, SQL for the value and its type in the frame."""


def copied(
    connection: psycopg.Connection,
    columns: Columns,
    source: str,
    parameters: Mapping[str, Any] | None = None,
) -> pl.DataFrame:
    """The rows of a SELECT as a frame with these columns.

    The SQL gives a time as microseconds since 1970 and a boolean as text. `source` is what follows
    FROM, with psycopg placeholders for `parameters`.
    """
    selected = ", ".join(f"{sql} AS {quoted(name)}" for name, (sql, _) in columns.items())
    statement = f"COPY (SELECT {selected} FROM {source}) TO STDOUT"
    types = {name: dtype for name, (_, dtype) in columns.items()}
    blocks = [
        parsed(block, types) for block in copied_blocks(connection, statement.encode(), parameters)
    ]
    return pl.DataFrame(schema=types) if not blocks else together(blocks)


def together(blocks: list[pl.DataFrame]) -> pl.DataFrame:
    """Join blocks into one frame, freeing them column by column.

    Each column becomes one chunk, which halves the time of gathering from it later. A column
    without any value is a single null.
    """
    names, empty = blocks[0].columns, _without_values(blocks)
    columns = [
        pl.concat([block.drop_in_place(name) for block in blocks], rechunk=True)
        for name in names
        if name not in empty
    ]
    return pl.DataFrame(columns).with_columns(**empty).select(names)


def in_pieces(blocks: list[pl.DataFrame]) -> pl.DataFrame:
    """Join blocks into one frame of chunks, which takes no more memory than they do.

    A column without values is stored once. A query over all columns first makes one chunk of each;
    taking slices or columns does not.
    """
    empty = _without_values(blocks)
    return pl.concat([block.with_columns(**empty) for block in blocks], rechunk=False)


def _without_values(blocks: list[pl.DataFrame]) -> dict[str, pl.Expr]:
    """Columns, except the first, without a value in any block, each with a null literal."""
    nulls = pl.concat([block.null_count() for block in blocks]).sum().row(0, named=True)
    height = sum(block.height for block in blocks)
    return {
        name: pl.lit(None, dtype)
        for name, dtype in [*blocks[0].schema.items()][1:]
        if nulls[name] == height
    }


def copied_blocks(
    connection: psycopg.Connection,
    statement: bytes | sql.Composed,
    parameters: Mapping[str, Any] | None = None,
) -> Iterator[bytes]:
    """What a COPY TO STDOUT sends, in blocks of whole rows of about `BLOCK_BYTES`."""
    pending = bytearray()
    with connection.cursor() as cursor, cursor.copy(statement, parameters) as copy:
        # The server sends whole rows.
        while row := copy.read():
            pending += row
            ended = _drained(connection.pgconn, pending)
            if len(pending) >= BLOCK_BYTES:
                yield bytes(pending)
                pending.clear()
            if ended:
                break
    if pending:
        yield bytes(pending)


def _drained(received: PGconn, pending: bytearray) -> bool:
    """Add rows already received, at most a block; True once there are no more to come.

    psycopg's waiting takes five times the CPU per row, so it is used only if there is something to
    wait for.
    """
    size = 1
    while size > 0 and len(pending) < BLOCK_BYTES:
        size, row = received.get_copy_data(1)
        if size > 0:
            pending += row
    if size >= 0:
        return False
    # Take all results before raising the error of one, so that the connection stays usable.
    for result in list(iter(received.get_result, None)):
        if result.status != ExecStatus.COMMAND_OK:
            raise refusal(received, result)
    return True


def refusal(connection: PGconn, result: PGresult) -> psycopg.Error:
    """The error of a failed result; a lost connection gives none with an SQLSTATE."""
    if connection.status == ConnStatus.BAD:
        return psycopg.OperationalError(connection.get_error_message())
    return error_from_result(result)


def parsed(block: bytes, types: Mapping[str, Dtype]) -> pl.DataFrame:
    """Parse a block of rows into a frame; times and booleans come as `copied` describes."""
    # A leading byte order mark, which the parser drops, belongs to a text here, so double it.
    if block.startswith(codecs.BOM_UTF8):
        block = codecs.BOM_UTF8 + block
    frame = pl.read_csv(
        block,
        has_header=False,
        separator="\t",
        quote_char=None,
        null_values=NULL,
        schema={name: _delivered_as(dtype) for name, dtype in types.items()},
        empty_string_is_null=False,
    )
    nulls = frame.null_count().row(0, named=True)
    columns: list[pl.Expr | pl.Series] = []
    for name, dtype in types.items():
        if dtype == pl.String:
            # Even null texts take room, so a column without values becomes a literal.
            nothing = nulls[name] == frame.height
            columns.append(
                pl.lit(None, pl.String).alias(name) if nothing else _unescaped(frame[name])
            )
        elif dtype == pl.Boolean:
            columns.append(pl.col(name) == "true")
        elif isinstance(dtype, pl.Datetime):
            columns.append(pl.col(name).cast(dtype))
    return frame.with_columns(columns)


def _delivered_as(dtype: Dtype) -> Dtype:
    if isinstance(dtype, pl.Datetime):
        return pl.Int64()
    return pl.String() if dtype == pl.Boolean else dtype


_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "v": "\v"}


def _unescaped(column: pl.Series) -> pl.Series:
    """Resolve COPY's backslash escapes, in the rows that have any."""
    rows = column.str.contains("\\", literal=True).fill_null(value=False).arg_true()
    if rows.is_empty():
        return column
    # Set doubled backslashes aside first.
    text = column.gather(rows).str.replace_all("\\\\", "\x00", literal=True)
    for letter, character in _ESCAPES.items():
        text = text.str.replace_all(f"\\{letter}", character, literal=True)
    return column.scatter(rows, text.str.replace_all("\x00", "\\", literal=True))
