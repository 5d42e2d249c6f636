"""Steps of the schema, on a database that holds what only a limit of the server forbids."""

from random import Random

import psycopg
import pytest
from psycopg import sql

from connectors.errors import DatabaseUnusable
from connectors.postgres.schema.revisions import revisions
from connectors.postgres.schema.upgrade import bring_up_to_date
from tests.upgrade.steps import brought_to

SIGNS = 10_000
ANY = {"A": "'{}'", "B": "false", "D": "now()", "N": "1", "U": "''"}
"""A value of a column that is no text, by the category of its type."""
COLUMNS = """SELECT c.relname, a.attname, t.typcategory, EXISTS (
        SELECT FROM pg_index i WHERE i.indrelid = c.oid AND a.attnum = ANY (i.indkey))
    FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid JOIN pg_type t ON t.oid = a.atttypid
    WHERE c.relnamespace = 'recon'::regnamespace AND c.relkind = 'r'
    AND c.relname <> 'alembic_version' AND a.attnum > 0 ORDER BY 1, a.attnum"""


def test_a_text_of_any_length_is_brought_along(empty_url: str) -> None:
    """In every column that has no index: a step that made one would stop at it."""
    brought_to(empty_url, revisions()[0])
    random = Random(1)
    long = "".join(chr(random.randrange(0x4E00, 0x9FA5)) for _ in range(SIGNS))
    with psycopg.connect(empty_url) as connection:
        rows: dict[str, dict[str, sql.Composable]] = {}
        for table, column, kind, indexed in connection.execute(COLUMNS):
            text = sql.Literal("short" if indexed else long)
            rows.setdefault(table, {})[column] = text if kind == "S" else sql.SQL(ANY[kind])
        for table, row in rows.items():
            statement = sql.SQL("INSERT INTO {} ({}) OVERRIDING SYSTEM VALUE VALUES ({})").format(
                sql.Identifier("recon", table),
                sql.SQL(", ").join(map(sql.Identifier, row)),
                sql.SQL(", ").join(row.values()),
            )
            connection.execute(statement)
    bring_up_to_date(empty_url, 10, "migrate")
    with psycopg.connect(empty_url) as connection:
        (key,) = connection.execute("SELECT key FROM recon.break_state").fetchone() or ()
        (name,) = connection.execute('SELECT "Name" FROM recon.message_tone').fetchone() or ()
        assert (key, name) == (long, long)


@pytest.mark.long
def test_what_a_step_cannot_do_is_no_fault_of_what_was_given(empty_url: str) -> None:
    """A table that others have filled with columns takes no more of them."""
    brought_to(empty_url, "0037")
    many = ", ".join(f"ADD c{number} INTEGER" for number in range(1597))
    with psycopg.connect(empty_url) as connection:
        connection.execute(f"ALTER TABLE recon.secret_constant {many}")  # type: ignore[call-overload]
    with pytest.raises(DatabaseUnusable) as refused:
        bring_up_to_date(empty_url, 10, "migrate")
    assert str(refused.value).startswith(
        "The schema 'recon' cannot be brought to this version: what it holds meets a limit of the "
        "database server, tables can have at most 1600 columns (SQLSTATE 54011). Nothing was "
    )
    with psycopg.connect(empty_url) as connection:
        found = connection.execute("SELECT version_num FROM recon.alembic_version").fetchone()
        assert found == ("0037",)
