"""Many rows of the database as a frame: COPY in its text form, parsed by polars in blocks.

Every row is one line there, whatever its texts hold.
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


def copied(
    connection: psycopg.Connection,
    columns: Mapping[str, tuple[str, Dtype]],
    source: str,
    parameters: Mapping[str, Any] | None = None,
) -> pl.DataFrame:
    """The rows of a SELECT as a frame with these columns: name -> SQL and type.

    A time comes as microseconds since 1970 and a boolean as text. `source` is what follows FROM,
    and names its `parameters` as psycopg has them.
    """
    selected = ", ".join(f"{sql} AS {quoted(name)}" for name, (sql, _) in columns.items())
    statement = f"COPY (SELECT {selected} FROM {source}) TO STDOUT"
    types = {name: dtype for name, (_, dtype) in columns.items()}
    blocks = [
        parsed(block, types) for block in copied_blocks(connection, statement.encode(), parameters)
    ]
    return pl.DataFrame(schema=types) if not blocks else together(blocks)


def together(blocks: list[pl.DataFrame]) -> pl.DataFrame:
    """The blocks as one frame, which takes their place column by column.

    Columns are of one piece each: what is gathered from them later takes half the time. One that
    has no value at all is a single null.
    """
    names, empty = blocks[0].columns, _without_values(blocks)
    columns = [
        pl.concat([block.drop_in_place(name) for block in blocks], rechunk=True)
        for name in names
        if name not in empty
    ]
    return pl.DataFrame(columns).with_columns(**empty).select(names)


def in_pieces(blocks: list[pl.DataFrame]) -> pl.DataFrame:
    """The blocks as one frame of pieces, which takes no more memory than they do.

    What is the same in all rows of all of them is there once. A query over all of its columns
    makes one piece of each of them first; to take slices or columns of it does not.
    """
    empty = _without_values(blocks)
    return pl.concat([block.with_columns(**empty) for block in blocks], rechunk=False)


def _without_values(blocks: list[pl.DataFrame]) -> dict[str, pl.Expr]:
    """Columns without a value in any of the blocks, but the first one, and what they all are."""
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
    """Add the rows that have come already, at most a block; True when there are no more to come.

    psycopg goes through its waiting for every row, which takes five times the CPU; so that is done
    only where there is something to wait for.
    """
    size = 1
    while size > 0 and len(pending) < BLOCK_BYTES:
        size, row = received.get_copy_data(1)
        if size > 0:
            pending += row
    if size >= 0:
        return False
    # Every result is taken before one of them is told of: the connection is usable again then.
    for result in list(iter(received.get_result, None)):
        if result.status != ExecStatus.COMMAND_OK:
            raise refusal(received, result)
    return True


def refusal(connection: PGconn, result: PGresult) -> psycopg.Error:
    """What a result that is none says; that the connection was lost has no SQLSTATE to tell it."""
    if connection.status == ConnStatus.BAD:
        return psycopg.OperationalError(connection.get_error_message())
    return error_from_result(result)


def parsed(block: bytes, types: Mapping[str, Dtype]) -> pl.DataFrame:
    """A block of rows as a frame; times and booleans come as `copied` has them."""
    # A mark at the beginning is no part of a file, and here it is part of a text.
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
            # A text that is not there takes as much room as one that is.
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
    """The texts behind COPY's backslashes, of the rows that have any."""
    rows = column.str.contains("\\", literal=True).fill_null(value=False).arg_true()
    if rows.is_empty():
        return column
    # The doubled ones step aside meanwhile.
    text = column.gather(rows).str.replace_all("\\\\", "\x00", literal=True)
    for letter, character in _ESCAPES.items():
        text = text.str.replace_all(f"\\{letter}", character, literal=True)
    return column.scatter(rows, text.str.replace_all("\x00", "\\", literal=True))
