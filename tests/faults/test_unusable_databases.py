"""A database that cannot be used is refused before any row is touched: exit code 2, what to do."""

import uuid
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest

from connectors.errors import StatementRefused
from connectors.postgres.database import Database
from connectors.postgres.schema.revisions import TAKEN_OVER, THROUGH
from schemas.derived.sql import METADATA
from schemas.derived.sql_names import SCHEMA
from schemas.derived.views import VIEWS
from schemas.guards.roles import READER, statements
from tests.examples import in_long
from tests.faults.conftest import Fresh, named
from tests.recon import run
from tests.stages.payments import line, write

Fault = Callable[[psycopg.Connection, str], str]
"""Does it, as the owner of the database; gives the user to come as."""


def a_table_is_missing(owner: psycopg.Connection, _: str) -> str:
    owner.execute("DROP TABLE recon.receipt CASCADE")
    return "postgres"


def a_column_is_missing(owner: psycopg.Connection, _: str) -> str:
    owner.execute('ALTER TABLE recon.currency_rate DROP COLUMN "ExchangeRate" CASCADE')
    return "postgres"


def a_view_is_missing(owner: psycopg.Connection, _: str) -> str:
    owner.execute("DROP VIEW recon.staged_row CASCADE")
    return "postgres"


def it_is_of_a_newer_version(owner: psycopg.Connection, _: str) -> str:
    owner.execute("UPDATE recon.alembic_version SET version_num = '9999'")
    return "postgres"


def it_is_older_and_the_role_may_not_migrate(owner: psycopg.Connection, user: str) -> str:
    owner.execute("UPDATE recon.alembic_version SET version_num = %s", [TAKEN_OVER])
    grant(owner, f"GRANT USAGE ON SCHEMA recon TO {user}")
    grant(owner, f"GRANT ALL ON ALL TABLES IN SCHEMA recon TO {user}")
    return user


def it_is_older_and_the_role_may_only_read(owner: psycopg.Connection, user: str) -> str:
    owner.execute("UPDATE recon.alembic_version SET version_num = %s", [TAKEN_OVER])
    return the_role_may_only_read(owner, user)


def its_guards_are_others_and_the_role_may_only_read(owner: psycopg.Connection, user: str) -> str:
    owner.execute("COMMENT ON TABLE recon.alembic_version IS NULL")
    return the_role_may_only_read(owner, user)


def others_made_something_of_its_views(owner: psycopg.Connection, user: str) -> str:
    the_role_may_only_read(owner, user)
    owner.execute("CREATE SCHEMA theirs; CREATE VIEW recon_shown.theirs AS SELECT 1 AS one")
    for view, of in THEIRS.items():
        grant(owner, f"CREATE VIEW theirs.{view} AS SELECT * FROM {of}")
    owner.execute("COMMENT ON TABLE recon.alembic_version IS NULL")
    return "postgres"


def it_is_older_than_this_version_goes_on_from(owner: psycopg.Connection, user: str) -> str:
    owner.execute("UPDATE recon.alembic_version SET version_num = '0017'")
    # Who may not migrate is told the same: its owner could not do it either.
    return the_role_may_only_read(owner, user)


def there_is_no_schema_and_the_role_may_make_none(owner: psycopg.Connection, user: str) -> str:
    owner.execute("DROP SCHEMA recon CASCADE")
    return user


def it_is_read_only(owner: psycopg.Connection, _: str) -> str:
    grant(owner, f"ALTER DATABASE {owner.info.dbname} SET default_transaction_read_only = on")
    return "postgres"


def the_role_may_nothing(_: psycopg.Connection, user: str) -> str:
    return user


def the_role_may_only_read(owner: psycopg.Connection, user: str) -> str:
    for statement in statements():
        grant(owner, statement)
    grant(owner, f"GRANT {READER} TO {user}")
    return user


def the_role_may_not_log_in(owner: psycopg.Connection, user: str) -> str:
    grant(owner, f"ALTER ROLE {user} NOLOGIN")
    return user


def nobody_may_connect_any_more(owner: psycopg.Connection, user: str) -> str:
    grant(owner, f"ALTER ROLE {user} CONNECTION LIMIT 0")
    return user


THEIRS = {"mine": "recon.insert_batch_data", "shown": "recon_shown.staged_payment"}


FAULTS: dict[Fault, str] = {
    a_table_is_missing: "lacks receipt.",
    a_column_is_missing: "lacks currency_rate.ExchangeRate",
    a_view_is_missing: "lacks staged_row",
    it_is_of_a_newer_version: "by a newer version; use that one. If the schema is another",
    it_is_older_and_the_role_may_not_migrate: "once as the owner of the schema",
    it_is_older_and_the_role_may_only_read: "once as the owner of the schema",
    its_guards_are_others_and_the_role_may_only_read: "functions of another form of it, this",
    others_made_something_of_its_views: "view theirs.mine depends on view recon.insert_batch_data",
    it_is_older_than_this_version_goes_on_from: f"Go through commit {THROUGH} of recon",
    there_is_no_schema_and_the_role_may_make_none: "'recon' is not there",
    it_is_read_only: "`ALTER ROLE postgres SET default_transaction_read_only = off`",
    the_role_may_nothing: "permission denied for schema recon",
    the_role_may_only_read: "lacks a right: `recon import` takes recon_merger",
    the_role_may_not_log_in: "not permitted to log in",
    nobody_may_connect_any_more: "too many connections for role",
}


def grant(owner: psycopg.Connection, statement: str) -> None:
    owner.execute(statement)  # type: ignore[call-overload]


def everything(owner: psycopg.Connection) -> dict[str, int]:
    """Rows of every table that is there."""
    names = owner.execute(
        "SELECT relname FROM pg_class WHERE relkind = 'r' "
        "AND relnamespace = to_regnamespace('recon')"
    ).fetchall()
    return {
        name: owner.execute(f"SELECT count(*) FROM {SCHEMA}.{name}").fetchone()[0]  # type: ignore[call-overload,index]
        for (name,) in names
    }


ALSO = (
    a_view_is_missing,
    the_role_may_not_log_in,
    nobody_may_connect_any_more,
    it_is_of_a_newer_version,
)


@pytest.mark.parametrize(
    "fault",
    [*(one for one in FAULTS if one not in ALSO), *map(in_long, ALSO)],
    ids=lambda fault: fault.__name__,
)
def test_it_is_refused_before_any_row_is_touched(
    fresh: Fresh, server: str, tmp_path: Path, fault: Fault
) -> None:
    delivery = write(tmp_path / "payments.csv", line(1), line(2, amount="x"))
    user = f"user_{uuid.uuid4().hex[:8]}"
    with fresh("recon_template") as database:
        url = named(server, database)
        with psycopg.connect(url, autocommit=True) as owner:
            grant(owner, f"CREATE ROLE {user} LOGIN PASSWORD 'pw-canary'")
            name = fault(owner, user)
            before = everything(owner)
        theirs = url.replace("//postgres:@", f"//{name}:pw-canary@")
        told = run(theirs, tmp_path / "home", "import", delivery)
        with psycopg.connect(url, autocommit=True) as owner:
            assert everything(owner) == before
            owner.execute("SET default_transaction_read_only = off")
            grant(owner, f"DROP OWNED BY {user}")
            grant(owner, f"DROP ROLE {user}")
    assert told.returncode == 2, told.stderr
    assert FAULTS[fault] in told.stderr
    assert "Traceback" not in told.stderr
    assert "pw-canary" not in told.stderr + told.stdout
    assert told.stderr.count("\n") == 1, told.stderr


@pytest.mark.long
def test_what_others_made_of_its_views_is_named_and_kept(
    fresh: Fresh, server: str, tmp_path: Path
) -> None:
    with fresh("recon_template") as database:
        url = named(server, database)
        with psycopg.connect(url, autocommit=True) as owner:
            user = f"user_{uuid.uuid4().hex[:8]}"
            grant(owner, f"CREATE ROLE {user}")
            others_made_something_of_its_views(owner, user)
            told = run(url, tmp_path / "home", "status")
            for view, of in THEIRS.items():
                assert f"view theirs.{view} depends on view {of}" in told.stderr
                grant(owner, f"DROP VIEW theirs.{view}")
            told = run(url, tmp_path / "home", "status")
            assert told.returncode == 0, told.stderr
            assert owner.execute("SELECT one FROM recon_shown.theirs").fetchall() == [(1,)]
            grant(owner, f"DROP OWNED BY {user}")
            grant(owner, f"DROP ROLE {user}")


@pytest.mark.parametrize("encoding", ["LATIN1", "SQL_ASCII"])
def test_a_database_that_cannot_keep_every_text_is_refused_before_it_is_made_ours(
    server: str, tmp_path: Path, encoding: str
) -> None:
    name = f"other_{uuid.uuid4().hex[:8]}"
    with psycopg.connect(server, autocommit=True) as owner:
        grant(
            owner,
            f"CREATE DATABASE {name} ENCODING '{encoding}' LOCALE_PROVIDER libc "
            "LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0",
        )
        told = run(named(server, name), tmp_path / "home", "status")
        with psycopg.connect(named(server, name)) as other:
            assert everything(other) == {}
        grant(owner, f"DROP DATABASE {name}")
    assert told.returncode == 2, told.stderr
    assert f"encoded in {encoding}" in told.stderr
    assert "ENCODING 'UTF8'" in told.stderr
    assert told.stderr.count("\n") == 1, told.stderr


def test_every_table_and_view_is_looked_for() -> None:
    assert {"batch", "payment", "staged_payment"} <= {one.name for one in METADATA.sorted_tables}
    assert set(VIEWS) == {"staged_row", "insert_batch_data", "shown_row"}


def test_a_schema_that_is_changed_under_a_command_is_told(database: Database) -> None:
    told = pytest.raises(StatementRefused, match=r"not what this version made: .* Restore it")
    with told, database.connect() as connection:
        connection.execute("DROP TABLE decision CASCADE")
        connection.execute("SELECT count(*) FROM decision")
