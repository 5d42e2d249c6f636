"""Comparisons that are stopped, or kept waiting, while a database works for them."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

from connectors.compare.table_side import in_parallel, opened
from tests.compare.tables import compared, csv_file
from tests.recon import Run

WAITS = "SELECT true FROM pg_advisory_lock_shared(7)"
TABLES = (
    "CREATE TABLE public.a (id int PRIMARY KEY, v int); INSERT INTO public.a VALUES (1, 1); "
    "CREATE TABLE public.b AS SELECT id, v::text AS v FROM public.a; "
    f"CREATE VIEW public.w AS SELECT id, v FROM public.a WHERE ({WAITS})"
)
WAITING = """SELECT count(*) FROM pg_stat_activity
    WHERE application_name = 'recon' AND wait_event = 'advisory' AND datname = current_database()"""


@contextmanager
def kept_waiting(url: str) -> Iterator[psycopg.Connection]:
    """Two tables, and a view that nobody gets a row of meanwhile."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(TABLES)
        connection.execute("SELECT pg_advisory_lock(7)")
        yield connection


def waiting(connection: psycopg.Connection) -> bool:
    return connection.execute(WAITING).fetchone() != (0,)


@pytest.mark.long
@pytest.mark.parametrize("other", ["file", "joined", "segments", "b"])
def test_a_stop_ends_what_the_database_does_and_leaves_nothing(
    database_url: str, tmp_path: Path, other: str
) -> None:
    scratch, right = tmp_path / "scratch", f"{database_url}&table=public.{other}"
    scratch.mkdir()
    if other == "file":
        right = str(csv_file(tmp_path / "b.csv", "id,v\n1,1\n"))
    elif other != "b":
        path = "&options=-csearch_path%3Dpublic" if other == "segments" else ""
        right = f"{database_url}{path}&table=public.a"
    sides = (one.replace(":@", "@") for one in (f"{database_url}&table=public.w", right))
    with kept_waiting(database_url) as connection:
        asked = ("compare", *sides, "--key", "id")
        with Run(database_url, tmp_path / "home", *asked, TMPDIR=str(scratch)) as run:
            while not waiting(connection):
                assert run.poll() is None, run.communicate()
            run.send_signal(signal.SIGTERM)
            out, told = run.communicate()
        assert (run.wait(), out) == (130, "")
        assert told.startswith("recon: stopped. ")
        assert list(scratch.iterdir()) == []
        assert not waiting(connection)


def test_what_fails_beside_a_table_is_not_kept_waiting(database_url: str) -> None:
    """Within polars a thread takes Ctrl-C for itself, and the main one hears nothing of it."""

    def fail() -> None:
        raise KeyboardInterrupt

    address = f"{database_url}&table=public.w"
    with kept_waiting(database_url) as connection, opened(address, ["id"]) as table:
        with pytest.raises(KeyboardInterrupt):
            in_parallel([table.count, fail], table)
        assert not waiting(connection)


def test_a_session_may_wait_for_the_other_side(database_url: str, tmp_path: Path) -> None:
    """Whatever its role or its database says of one that is idle."""
    file = csv_file(tmp_path / "b.csv", "id,v\n1,1\n")
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute(TABLES)
        name = connection.info.dbname
        connection.execute(f"ALTER DATABASE {name} SET idle_in_transaction_session_timeout = '1ms'")
    assert compared(f"{database_url}&table=public.a", file).agrees
