"""Whatever is delivered, the compiled way and the strict way store the same rows."""

from pathlib import Path

import polars as pl
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from psycopg import sql

from connectors.files.chunks.chunk import Chunk
from connectors.files.layout.header import Header
from connectors.files.profiles.profile import Profile
from connectors.postgres.bulk.binary_copy import HEAD, TAIL, encode
from connectors.settings import MOST
from flows.stages.chunks.write_out import write_out
from flows.stages.workspace import Workspace
from schemas.derived.sql_names import staged_name
from schemas.field import Field, Kind, Table
from tests.examples import examples
from tests.stages.payments import HEADER, line
from tests.stages.reading.test_fast_path import BAD, EXTRACT, GOOD, PROFILES, chunks

SIGNS = st.lists(st.sampled_from([*b'0123456789-+.:TZ, "\r\t\0;e', 0xE9, 0xFF, 0xC3]), max_size=12)
CELLS = st.one_of(
    SIGNS.map(bytes),
    st.sampled_from(
        [
            *(b"", b"0", b"00", b"-0.00", b"2147483647", b"2147483648", b"9223372036854775808"),
            *(b"9" * 16, b"9" * 17, b"9" * 40, b"1.", b".5", b"1.123456", b"1.1234567", b"1e2"),
            *(b"2024-02-29T23:59:59Z", b"2023-02-29T00:00:00Z", b"2026-01-15T10:30:00+14:00"),
            *(
                b"2026-01-15T10:30:00+14:15",
                b"2026-01-15T10:30:00-00:15",
                b'"7"',
                b'a"b',
                "é".encode(),
            ),
        ]
    ),
)
GOOD_CELLS = [b"5", b"7", b"1", b"2", b"2026-01-01T10:00:00Z", b"10.50", b"0.5", b"1", b"9"]
CHANGED = st.builds(
    lambda cell, place: b",".join([*GOOD_CELLS[:place], cell, *GOOD_CELLS[place + 1 :]]),
    CELLS,
    st.integers(0, len(GOOD_CELLS)),
)
LINES = st.one_of(CHANGED, CHANGED, st.one_of(GOOD, BAD).map(str.encode))


def stored(
    workspace: Workspace, header: Header, found: list[Chunk], profile: Profile, strict_bytes: int
) -> list[str]:
    """The rows of a file as they lie in the database, which forgets them."""
    with workspace.database.connect() as connection, connection.transaction(force_rollback=True):
        for chunk in found:
            written = write_out(chunk, header, profile, EXTRACT, strict_bytes=strict_bytes)
            for copy in written.copies:
                copy.send(connection)
        staged = sql.Identifier(staged_name(header.table))
        rows = connection.execute(
            sql.SQL("SELECT row_to_json(s) FROM {} s ORDER BY record_number").format(staged)
        )
        return [str(row) for row in rows]


def test_a_flag_is_written_as_the_server_reads_it(workspace: Workspace) -> None:
    """Of a record kind of one's own; a documented one with a flag has texts too."""
    fields = (Field("Id", Kind.INTEGER, required=True), Field("Open", Kind.BOOLEAN))
    table = Table("flag", "Flag", fields, key=("Id",))
    kept = [(1, True), (2, None), (3, False)]
    frame = pl.DataFrame(kept, {"Id": pl.Int32, "Open": pl.Boolean}, orient="row")
    with workspace.database.connect() as connection:
        connection.execute('CREATE TEMP TABLE flag ("Id" int, "Open" boolean)')
        with connection.cursor().copy("COPY flag FROM STDIN (FORMAT BINARY)") as copy:
            for part in (HEAD, encode(table, frame, table.columns), TAIL):
                copy.write(part)
        assert connection.execute("SELECT * FROM flag ORDER BY 1").fetchall() == kept


@pytest.mark.long(but=("decimal comma",))
@pytest.mark.parametrize("title", PROFILES)
@settings(
    max_examples=examples(400, 15),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    lines=st.lists(LINES, min_size=1, max_size=25),
    end=st.sampled_from([b"\n", b"\r\n"]),
    last=st.booleans(),
)
@example(lines=[b'5,7,1,2,"2026-01-01', b'T10:00:00Z",1,1,1,1'] * 3, end=b"\n", last=False)
def test_both_ways_store_the_same(
    workspace: Workspace, tmp_path: Path, title: str, lines: list[bytes], end: bytes, last: bool
) -> None:
    path = tmp_path / "payments.csv"
    # Where most rows cannot take the fast path, none does.
    usual = [line(number).encode() for number in range(2 * len(lines))]
    path.write_bytes(end.join([HEADER.encode(), *usual, *lines]) + end * last)
    header, found = chunks(path, PROFILES[title])
    ways = [stored(workspace, header, found, PROFILES[title], size) for size in (0, MOST)]
    assert ways[0] == ways[1]
