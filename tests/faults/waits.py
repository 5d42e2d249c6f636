"""A run that is brought to a stand inside of a statement, so that a fault finds it there."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Event

import psycopg

LOCK = 1


@dataclass(frozen=True, slots=True)
class Stand:
    """Where a run waits until it is let go."""

    owner: psycopg.Connection

    def reached(self) -> bool:
        """Whether somebody waits here."""
        waiting = "SELECT 1 FROM pg_stat_activity WHERE wait_event = 'advisory' AND datname = %s"
        return bool(self.owner.execute(waiting, [self.owner.info.dbname]).fetchone())

    def waiting(self) -> int:
        """How many wait here."""
        waiting = (
            "SELECT count(*) FROM pg_locks l JOIN pg_database d ON d.oid = l.database "
            "WHERE d.datname = current_database() AND locktype = 'advisory' AND NOT granted"
        )
        row = self.owner.execute(waiting).fetchone()
        return row[0] if row else 0

    def let_go(self) -> None:
        """Let everybody through from now on."""
        self.owner.execute("SELECT pg_advisory_unlock_all()")


@contextmanager
def standing(url: str, when: str) -> Iterator[Stand]:
    """Runs wait `when`, as `BEFORE INSERT ON recon.payment`."""
    with psycopg.connect(url, autocommit=True) as owner:
        owner.execute("SELECT pg_advisory_lock(%s)", [LOCK])
        owner.execute(
            f"""CREATE OR REPLACE FUNCTION recon.stand() RETURNS trigger LANGUAGE plpgsql AS $$
            BEGIN PERFORM pg_advisory_xact_lock_shared({LOCK}); RETURN NULL; END $$;
            CREATE TRIGGER stand {when} FOR EACH STATEMENT EXECUTE FUNCTION recon.stand()"""  # type: ignore[arg-type]
        )
        yield Stand(owner)


def until(happened: Callable[[], bool], seconds: int = 60) -> None:
    """Ask over and over, but not for ever."""
    pause = Event()
    for _ in range(seconds * 50):
        if happened():
            return
        pause.wait(0.02)
    raise AssertionError("it never happened")
