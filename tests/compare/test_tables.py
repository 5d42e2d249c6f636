"""Tables as sides: whole, joined in one database, and by segments across two."""

from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path

import psycopg
import pytest

from connectors.compare.results import RESULTS
from connectors.compare.table_pair import table_pair
from connectors.compare.table_side import opened
from connectors.errors import SidesRefused
from tests.compare.tables import by_column, compared, counts, csv_file, parquet_file, values

COLUMNS = (
    "id bigint, tenant int, amount numeric, name text, paid timestamptz, rate float8, day date"
)
ROWS = """SELECT n, n % 3, n / 100.0, 'name ' || n, timestamptz '2026-01-02 03:04:05.25+02' +
    n * interval '1 s', n / 7.0, date '2026-01-02' + (n % 9) FROM generate_series(1, {rows}) n"""


@pytest.fixture
def second_url(server: str) -> Iterator[str]:
    name = "compare_second"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
        connection.execute(f"CREATE DATABASE {name}")
    yield server.replace("/postgres?", f"/{name}?")
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


def fill(url: str, table: str, *changes: str, key: str = "id, tenant", rows: int = 2000) -> str:
    """Make a table with rows, change it, and give its address."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"CREATE TABLE public.{table} ({COLUMNS})")
        connection.execute(f"INSERT INTO public.{table} {ROWS.format(rows=rows)}")
        if key:
            connection.execute(f"ALTER TABLE public.{table} ADD PRIMARY KEY ({key})")
        for change in changes:
            connection.execute(change.format(t=f"public.{table}"))
        connection.execute(f"ANALYZE public.{table}")
    return f"{url}{'&' if '?' in url else '?'}table=public.{table}"


CHANGES = (
    "UPDATE {t} SET amount = amount + 0.01 WHERE id = 7",
    "UPDATE {t} SET name = NULL WHERE id = 8",
    "UPDATE {t} SET name = '' WHERE id = 9",
    "UPDATE {t} SET paid = paid + interval '1 microsecond' WHERE id = 10",
    "DELETE FROM {t} WHERE id = 11",
    "INSERT INTO {t} VALUES (9007199254740993, 1, 1)",
    r"UPDATE {t} SET name = E'a\tb\\c\nd' WHERE id = 12",
)
FOUND = {"MATCHED_EXACT": 1994, "MISMATCH": 5, "MISSING_IN_TARGET": 1, "MISSING_IN_EXTRACT": 1}
CELLS = [
    ("amount", "0.07", "0.08", "0.01"),
    ("name", "name 8", None, None),
    ("name", "name 9", "", None),
    ("name", "name 12", "a\tb\\c\nd", None),
    ("paid", "2026-01-02T01:04:15.25+00:00", "2026-01-02T01:04:15.250001+00:00", "0.000001 s"),
]
BY_COLUMN = {
    "amount": (1999, 1, 0, "0.01"),
    "name": (1999, 3, 0, None),
    "paid": (1999, 1, 0, "0.000001 s"),
    "rate": (1999, 0, 0, None),
    "day": (1999, 0, 0, None),
}


@pytest.mark.long
def test_in_one_database_a_join_finds_the_differences(database_url: str) -> None:
    left, right = fill(database_url, "a"), fill(database_url, "b", *CHANGES)
    result = compared(left, right, key="id,tenant")
    assert result.method == "joined in the database"
    assert counts(result) == FOUND
    assert values(result) == CELLS
    assert by_column(result) == BY_COLUMN
    assert (result.left.rows, result.right.rows) == (2000, 2000)
    assert "password" not in result.left.name
    assert result.left.name.endswith("?table=public.a")


@pytest.mark.long
def test_across_databases_only_segments_that_differ_are_pulled(
    database_url: str, second_url: str
) -> None:
    left, right = fill(database_url, "a"), fill(second_url, "b", *CHANGES)
    result = compared(left, right, key="id,tenant")
    assert "256 segments compared" in result.method
    assert counts(result) == FOUND
    assert values(result) == CELLS
    assert by_column(result) == BY_COLUMN
    same = compared(left, fill(second_url, "c"), key="id,tenant")
    assert same.agrees
    assert same.method.endswith("0 pulled")


@pytest.mark.long
def test_every_bit_of_a_row_is_compared_across_databases(
    database_url: str, second_url: str
) -> None:
    """PostgreSQL folds the halves of 64 bits over each other, and hashes no sign of a numeric.

    It takes an infinite numeric for NaN, and 0 for NULL.
    """
    changes = (
        "ALTER TABLE {t} ADD sum numeric DEFAULT 5.50",
        "UPDATE {t} SET sum = 0 WHERE id = 9",
        "UPDATE {t} SET sum = 'NaN' WHERE id = 10",
        "UPDATE {t} SET sum = 'Infinity' WHERE id = 11",
        # 7 + 2 ** 32, and 7 ^ 1: the halves of both fold to the same.
        "ALTER TABLE {t} ADD wide bigint DEFAULT 7",
        "ALTER TABLE {t} ADD plain timestamp DEFAULT '2000-01-01 00:00:00.000007'",
        "UPDATE {t} SET paid = '2000-01-01 00:00:00.000007Z'",
    )
    folded = (
        "UPDATE {t} SET wide = 4294967302 WHERE id = 5",
        "UPDATE {t} SET plain = plain + interval '4294.967295 s' WHERE id = 6",
        "UPDATE {t} SET paid = paid + interval '4294.967295 s' WHERE id = 7",
        "UPDATE {t} SET sum = -sum WHERE id IN (8, 11)",
        "UPDATE {t} SET sum = NULL WHERE id = 9",
        "UPDATE {t} SET sum = 'Infinity' WHERE id = 10",
        # The same number, written with other zeros.
        "UPDATE {t} SET sum = 5.5 WHERE id > 11",
    )
    left, right = fill(database_url, "a", *changes), fill(second_url, "b", *changes, *folded)
    result = compared(left, right, key="id,tenant")
    assert result.method.endswith(", 7 pulled")
    assert {name for name, *_ in values(result)} == {"wide", "plain", "paid", "sum"}
    assert counts(result)["MISMATCH"] == 7


@pytest.mark.long
def test_keys_the_database_does_not_guard_are_looked_at(database_url: str, second_url: str) -> None:
    twice = "INSERT INTO {t} SELECT * FROM {t} WHERE id IN (3, 4)"
    empty = "INSERT INTO {t} VALUES (NULL, 1, 5)"
    left = fill(database_url, "a", twice, empty, key="")
    for url in (database_url, second_url):
        result = compared(left, fill(url, "b", twice, empty, key=""), key="id,tenant")
        assert counts(result) == {"MATCHED_EXACT": 1998, "DUPLICATE": 8, "UNKNOWN": 2}


def test_keys_are_looked_at_in_the_moment_that_is_joined(database_url: str, tmp_path: Path) -> None:
    """A row may come between the moments that the two connections see."""
    with psycopg.connect(database_url, autocommit=True) as connection:
        for table in "ab":
            connection.execute(f"CREATE TABLE public.{table} AS SELECT 1 AS id, 1 AS v")
        left, right = (f"{database_url}&table=public.{table}" for table in "ab")
        with opened(right, ["id"]) as earlier:
            connection.execute("INSERT INTO public.b VALUES (1, 1), (NULL, 2)")
            with opened(left, ["id"]) as later:
                pair = table_pair(later, earlier, ["id"], ["id", "v"], tmp_path)
        assert pair.method.endswith("?table=public.b repeats or lacks keys")
    assert (pair.left.rows, pair.right.rows) == (1, 1)


@pytest.mark.long
def test_very_wide_tables_are_compared(database_url: str, second_url: str) -> None:
    """A query gives 1,664 columns at the most, and a table has up to 1,600."""
    columns = ", ".join(f"c{number} int DEFAULT {number}" for number in range(900))
    sides = []
    for url, table in ((database_url, "a"), (database_url, "b"), (second_url, "c")):
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(
                f"CREATE TABLE public.{table} (id int PRIMARY KEY, {columns}); "
                f"INSERT INTO public.{table} (id, c899) VALUES (1, {7 if table == 'a' else 8})"
            )
        sides.append(f"{url}&table=public.{table}")
    for other in sides[1:]:
        result = compared(sides[0], other)
        assert result.method == "pulled whole: their columns are too many for one query"
        assert values(result) == [("c899", "7", "8", "1")]


UNGUARDED = [
    # An index holds for the rows of its own table, and not for those of tables that inherit.
    ("CREATE TABLE {t}_more () INHERITS ({t}); INSERT INTO {t}_more SELECT * FROM {t} WHERE id < 3",
     {"MATCHED_EXACT": 7, "DUPLICATE": 8}),
    ("ALTER TABLE {t} DROP CONSTRAINT {n}_pkey; ALTER TABLE {t} ALTER id DROP NOT NULL; "
     "CREATE UNIQUE INDEX ON {t} (id); INSERT INTO {t} VALUES (NULL, 1); "
     "ALTER TABLE {t} ADD NOT NULL id NOT VALID",
     {"MATCHED_EXACT": 9, "UNKNOWN": 2}),
]  # fmt: skip


@pytest.mark.long(but=("inherited",))
@pytest.mark.parametrize(("change", "found"), UNGUARDED, ids=["inherited", "not valid"])
def test_an_index_is_believed_as_far_as_it_holds(
    database_url: str, second_url: str, change: str, found: dict[str, int]
) -> None:
    changes = {name: change.replace("{n}", name) for name in "abc"}
    left = fill(database_url, "a", changes["a"], rows=9, key="id")
    for url, name in ((database_url, "b"), (second_url, "c")):
        assert counts(compared(left, fill(url, name, changes[name], rows=9, key="id"))) == found


@pytest.mark.long
def test_tables_of_other_types_are_pulled_and_compared_exactly(
    database_url: str, tmp_path: Path
) -> None:
    left = fill(database_url, "a")
    right = fill(database_url, "b", "ALTER TABLE {t} ALTER amount TYPE float8")
    result = compared(left, right, key="id,tenant")
    assert "pulled whole" in result.method
    assert result.agrees
    remarks = {column.name: column.remark for column in result.columns if column.remark}
    assert remarks == {"amount": "doubles are taken for the shortest decimal that names them"}


@pytest.mark.long
def test_a_table_and_a_file(database_url: str, tmp_path: Path) -> None:
    table = fill(database_url, "a", rows=2)
    file = csv_file(
        tmp_path / "b.csv",
        "id,tenant,amount,name,paid,day\n"
        "2,2,0.020,name 2,2026-01-02T01:04:07.25Z,2026-01-04\n"
        "1,1,0.01,name 1,2026-01-02T03:04:06.250+02:00,2026-01-03\n",
    )
    result = compared(table, file, key="id,tenant", ignore=["rate"])
    assert result.agrees, values(result)
    assert compared(file, table, key="id,tenant", ignore=["rate"]).agrees


FAR = [
    ("paid = 'infinity'", "'infinity' in the column 'paid' (timestamptz)"),
    ("paid = '294276-12-31 00:00Z'", "'294276-12-31 00:00:00+00' in the column 'paid'"),
    ("day = '-infinity'", "'-infinity' in the column 'day' (date)"),
]


@pytest.mark.long(
    but=(
        "by segments-paid = 'infinity'-'infinity' in the column 'paid' (timestamptz)",
        "joined-day = '-infinity'-'-infinity' in the column 'day' (date)",
        "file-paid = 'infinity'-'infinity' in the column 'paid' (timestamptz)",
    )
)
@pytest.mark.parametrize(("far", "told"), FAR)
@pytest.mark.parametrize("other", ["joined", "by segments", "file"])
def test_a_time_that_is_no_moment_is_named_with_its_row(
    database_url: str, second_url: str, tmp_path: Path, other: str, far: str, told: str
) -> None:
    # Where the database compares, what both sides have is the same and costs nothing.
    same = [] if other == "file" else ["UPDATE {t} SET paid = 'infinity' WHERE id = 3"]
    table = fill(database_url, "a", *same, f"UPDATE {{t}} SET {far} WHERE id IN (41, 40)")
    if other == "file":
        right = str(csv_file(tmp_path / "b.csv", "id,tenant,paid,day\n"))
    else:
        right = fill(database_url if other == "joined" else second_url, "b", *same)
    for sides in ((table, right), (right, table)):
        with pytest.raises(SidesRefused) as refused:
            compared(*sides, key="id,tenant")
        assert f"?table=public.a: the row id = 40, tenant = 1 has {told}" in str(refused.value)
        assert "Write a real time or NULL" in str(refused.value)


def test_a_time_beyond_what_calendars_hold_is_a_value_as_any_other(
    database_url: str, tmp_path: Path
) -> None:
    far = (
        "ALTER TABLE {t} ADD wall timestamp DEFAULT '290000-01-01'",
        "UPDATE {t} SET day = '5000000-01-01'",
    )
    left = fill(database_url, "a", *far, rows=2)
    later = "UPDATE {t} SET day = '5000000-01-02', wall = '290001-01-01' WHERE id = 1"
    right = fill(database_url, "b", *far, later, rows=2)
    found = [
        ("day", "+5000000-01-01", "+5000000-01-02", None),
        ("wall", "+290000-01-01T00:00:00", "+290001-01-01T00:00:00", None),
    ]
    assert values(compared(left, right, key="id,tenant")) == found
    empty = csv_file(tmp_path / "c.csv", "id,tenant,day,wall\n3,1,2026-01-02,2026-01-02\n")
    assert counts(compared(left, empty, key="id,day")) == {
        "MISSING_IN_TARGET": 2,
        "MISSING_IN_EXTRACT": 1,
    }


@pytest.mark.long
def test_bytes_are_the_same_in_a_table_and_in_a_file(database_url: str, tmp_path: Path) -> None:
    one = r"ALTER TABLE {t} ADD raw bytea DEFAULT '\xff61'"
    table = fill(database_url, "a", one, "UPDATE {t} SET raw = 'ab' WHERE id = 2", rows=2)
    file = parquet_file(tmp_path / "b.parquet", {"id": [1, 2], "raw": [b"\xffa", b"b"]})
    for sides, found in (((table, file), ("6162", "62")), ((file, table), ("62", "6162"))):
        left, right = (rf"\x{one}" for one in found)
        assert values(compared(*sides)) == [("raw", left, right, None)]


@pytest.mark.long
@pytest.mark.parametrize("other", ["joined", "whole", "by segments", "file"])
def test_what_is_not_compared_is_not_read(
    database_url: str, second_url: str, tmp_path: Path, other: str
) -> None:
    """A time that cannot be read is in nobody's way there: ignored, or on one side only."""
    far = ("UPDATE {t} SET paid = 'infinity'", "ALTER TABLE {t} ADD last date DEFAULT 'infinity'")
    left = fill(database_url, "a", *far, rows=9)
    kind = "ALTER TABLE {t} ALTER amount TYPE float8" if other == "whole" else "SELECT 1"
    changes = (far[0], kind, "UPDATE {t} SET name = 'x' WHERE id = 3")
    if other == "file":
        lines = "".join(f"{n},{n % 3},{'x' if n == 3 else f'name {n}'}\n" for n in range(1, 10))
        right = str(csv_file(tmp_path / "b.csv", f"id,tenant,name\n{lines}"))
    else:
        right = fill(second_url if other == "by segments" else database_url, "b", *changes, rows=9)
    found = [("name", "name 3", "x", None)]
    result = compared(left, right, key="id,tenant", ignore=["paid"])
    assert values(result) == found
    assert "last" in result.left.only_columns
    assert values(compared(right, left, key="id,tenant", ignore=["paid"])) == [
        ("name", "x", "name 3", None)
    ]


@pytest.mark.long
@pytest.mark.parametrize("other", ["joined", "whole", "by segments"])
def test_the_same_rows_give_the_same_bytes_wherever_they_are_kept(
    database_url: str, second_url: str, tmp_path: Path, other: str
) -> None:
    """A database gives rows as it finds them: in another order after each change."""
    kind = "ALTER TABLE {t} ALTER amount TYPE float8" if other == "whole" else "SELECT 1"
    url = second_url if other == "by segments" else database_url
    changes = ("UPDATE {t} SET name = name || id WHERE id % 3 = 0", "DELETE FROM {t} WHERE id > 80")
    left = fill(database_url, "a", "DELETE FROM {t} WHERE id < 20", rows=90)
    right = fill(url, "b", *changes, kind, rows=90)
    written = []
    for out in (tmp_path / "one", tmp_path / "two"):
        shown = compared(left, right, key="name,id", folder=out).shown
        written.append([shown, *(file.read_bytes() for file in sorted(out.iterdir()))])
        for place, table in ((database_url, "a"), (url, "b")):
            with psycopg.connect(place, autocommit=True) as connection:
                connection.execute(
                    f"CREATE TEMP TABLE kept AS SELECT * FROM {table} ORDER BY md5(id::text); "
                    f"TRUNCATE {table}; INSERT INTO {table} SELECT * FROM kept"
                )
    assert len(written[0]) == 1 + len(RESULTS)
    assert written[0] == written[1]


@pytest.mark.long
def test_the_side_that_may_not_be_read_is_named(database_url: str, second_url: str) -> None:
    role, tables = "compare_carl", {}
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute(f"DROP ROLE IF EXISTS {role}; CREATE ROLE {role} LOGIN PASSWORD 'a'")
    try:
        for url, table in ((database_url, "a"), (database_url, "b"), (second_url, "c")):
            tables[table] = fill(url, table, rows=2)
        closed = tables["a"].replace("//postgres:", f"//{role}:")
        for other in (tables["b"], tables["c"]):
            for sides in ((closed, other), (other, closed)):
                with pytest.raises(SidesRefused, match=r"public\.a: permission denied for table a"):
                    compared(*sides)
    finally:
        with psycopg.connect(database_url, autocommit=True) as connection:
            connection.execute(f"DROP ROLE {role}")


@pytest.mark.long
def test_a_value_is_read_as_what_its_type_is_made_of_and_writes(
    database_url: str, tmp_path: Path
) -> None:
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute(
            "CREATE DOMAIN money_of AS numeric(12,3); CREATE DOMAIN paid_of AS money_of; "
            "CREATE DOMAIN fee_of AS paid_of; CREATE TABLE d AS SELECT 1 AS id, 10.5::fee_of AS v"
        )
        connection.execute("CREATE TABLE e AS SELECT 1 AS id, inet '10.0.0.1' AS v")
    # As PostgreSQL writes it, and not as its cast does: 10.0.0.1/32.
    exported = csv_file(tmp_path / "e.csv", "id,v\n1,10.0.0.1\n")
    assert compared(f"{database_url}&table=e", exported).agrees
    table = f"{database_url}&table=d"
    file = parquet_file(tmp_path / "b.parquet", {"id": [1], "v": [Decimal("10.51")]})
    result = compared(table, file, tolerances=["v=0.01"])
    assert counts(result) == {"MATCHED_TOLERANCE": 1}
    assert result.columns[0].left_type == "numeric"


REFUSED = [
    ("", "which table?"),
    ("table=public.none", "no such table"),
    ("table=a.b.c.d", "improper"),
    ("table=.", "which table?"),
    ("table=a..b", "which table?"),
    ("table=a.", "which table?"),
    ("table=%22%22", "which table?"),
    ("table=%22", "which table?"),
    ("table=%22a%22b", "which table?"),
    ("table=a%00", "which table?"),
    ("table=%22a.%22%22b%22.c", "no such table"),
]


@pytest.mark.parametrize(("query", "why"), REFUSED)
def test_what_is_no_table_is_refused(database_url: str, query: str, why: str) -> None:
    address = f"{database_url}&{query}"
    with pytest.raises(SidesRefused, match=why):
        compared(address, address)


PASSWORDS = [
    "postgresql://ann:hunter2@127.0.0.1:1/none?table=a",
    "postgresql://ann:hunter2@127.0.0.1:1/none",
    "postgresql://ann:hunter2%zz@127.0.0.1:1/none?table=a",
    "postgresql://ann:hunter2@[::1/none?table=a",
    "postgresql://127.0.0.1:1/none?table=a&user=ann&password=hunter2",
]


@pytest.mark.parametrize("address", PASSWORDS)
def test_a_password_is_never_shown(address: str) -> None:
    with pytest.raises(SidesRefused) as refused:
        compared(address, address)
    assert "hunter2" not in str(refused.value)


PATHS = (
    "CREATE SCHEMA old; CREATE SCHEMA new; CREATE TABLE old.t (id int PRIMARY KEY, name text); "
    "CREATE TABLE new.t (LIKE old.t INCLUDING ALL); INSERT INTO old.t VALUES (1, 'a'); "
    "INSERT INTO new.t VALUES (1, 'b')"
)


def test_a_name_is_of_the_table_that_its_own_address_leads_to(second_url: str) -> None:
    """Who asks, and with which options, decides which table a name without a schema is."""
    people = ("compare_ann", "compare_bob")
    with psycopg.connect(second_url, autocommit=True) as connection:
        connection.execute(PATHS)
        for role, schema in zip(people, ("old", "new"), strict=True):
            connection.execute(f"DROP ROLE IF EXISTS {role}")
            connection.execute(f"CREATE ROLE {role} LOGIN PASSWORD 'a'; GRANT USAGE ON SCHEMA "
                               f"{schema} TO {role}; GRANT SELECT ON {schema}.t TO {role}; "
                               f"ALTER ROLE {role} SET search_path = {schema}")  # fmt: skip
    try:
        own = [second_url.replace("//postgres:", f"//{role}:") for role in people]
        paths = [f"{second_url}&options=-c%20search_path%3D{name}" for name in ("old", "new")]
        for left, right in (own, paths):
            result = compared(f"{left}&table=t", f"{right}&table=t")
            assert values(result) == [("name", "a", "b", None)]
            assert compared(f"{left}&table=t", f"{left}&table=t").method == "joined in the database"
    finally:
        with psycopg.connect(second_url, autocommit=True) as connection:
            for role in people:
                connection.execute(f"DROP OWNED BY {role}; DROP ROLE {role}")


WRITTEN = [
    # a setting of the right side's database or the environment, values of both sides as SQL,
    # the differing cells
    ("extra_float_digits = 0", "0.3::float8", "0.1::float8 + 0.2",
     [("v", "0.3", "0.30000000000000004", "0.00000000000000004")]),
    ("bytea_output = 'escape'", r"'\x00ff'::text", r"'\x00ff'::bytea", []),
    ("intervalstyle = 'iso_8601'", "'1 day'::text", "interval '1 day'", []),
    ("PGDATESTYLE=SQL, DMY", "'[2026-01-02,)'::text", "daterange('2026-01-02', NULL)", []),
    ("PGTZ=Asia/Tokyo", """'{"2026-01-02 00:00:00+00"}'::text""",
     "ARRAY['2026-01-02Z'::timestamptz]", []),
    ("client_encoding = 'LATIN1'", "'é'::text", "'Ã©'::text", [("v", "é", "Ã©", None)]),
    ("PGCLIENTENCODING=LATIN1", "'é'::text", "'Ã©'::text", [("v", "é", "Ã©", None)]),
    ("client_encoding = 'UTF8'", "'a'::text", r"U&'\FEFFa'::text", [("v", "a", "\ufeffa", None)]),
]  # fmt: skip


@pytest.mark.parametrize(("setting", "one", "other", "found"), WRITTEN)
def test_values_are_read_alike_whatever_a_database_is_set_to(
    database_url: str,
    second_url: str,
    monkeypatch: pytest.MonkeyPatch,
    setting: str,
    one: str,
    other: str,
    found: list[tuple[str, ...]],
) -> None:
    sides = []
    for url, value in ((database_url, one), (second_url, other)):
        with psycopg.connect(url, autocommit=True, client_encoding="UTF8") as connection:
            connection.execute(f"CREATE TABLE public.w AS SELECT {value} AS v, 1 AS id")
            if url == second_url and not setting.startswith("PG"):
                connection.execute(f"ALTER DATABASE compare_second SET {setting}")
        sides.append(f"{url}&table=public.w")
    if setting.startswith("PG"):
        monkeypatch.setenv(*setting.split("="))
    assert values(compared(*sides)) == found


@contextmanager
def encoded(server: str, encoding: str) -> Iterator[str]:
    """URL of a database in this encoding."""
    name = "compare_encoded"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
        connection.execute(
            f"CREATE DATABASE {name} ENCODING {encoding} LOCALE_PROVIDER libc "
            "LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0"
        )
    yield server.replace("/postgres?", f"/{name}?")
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.mark.long
def test_a_database_in_another_encoding_is_compared_by_its_signs(
    database_url: str, server: str
) -> None:
    """The bytes of one text may be those of another one elsewhere."""
    with encoded(server, "LATIN1") as latin:
        sides = []
        for url, texts in ((database_url, ("é", "é")), (latin, ("Ã©", "é"))):
            with psycopg.connect(url, autocommit=True, client_encoding="UTF8") as connection:
                connection.execute("CREATE TABLE public.w (id int PRIMARY KEY, v text)")
                for number, text in enumerate(texts):
                    connection.execute("INSERT INTO public.w VALUES (%s, %s)", [number, text])
            sides.append(f"{url}&table=public.w")
        assert values(compared(*sides)) == [("v", "é", "Ã©", None)]


def test_bytes_that_are_no_text_are_told(server: str, tmp_path: Path) -> None:
    with encoded(server, "SQL_ASCII") as url:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(r"CREATE TABLE w AS SELECT 1 AS id, E'\xe9'::text AS v")
        with pytest.raises(SidesRefused, match="w: invalid byte sequence for enc"):
            compared(f"{url}&table=w", csv_file(tmp_path / "b.csv", "id,v\n1,a\n"))
