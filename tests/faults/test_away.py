"""Standing commands whose database is stopped, and started again: nothing is lost, they go on."""

from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import psycopg
import pytest

from connectors.files.incoming.inbox import Inbox
from connectors.postgres.server.embedded import embedded_url
from connectors.postgres.server.postmaster import Postmaster
from connectors.recovery import reach
from flows.commands import inbox, jobs
from flows.stages import inbox as looks
from tests.stages.payments import line, write


class Server:
    """A server that is somebody else's to start: no command does."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.url = embedded_url(folder)

    def stop(self) -> None:
        Postmaster(self.folder).stop()

    def start(self) -> None:
        assert embedded_url(self.folder) == self.url

    def rows(self, query: str) -> list[tuple[object, ...]]:
        with psycopg.connect(self.url, options="-c search_path=recon") as connection:
            return connection.execute(query).fetchall()


@pytest.fixture
def server(
    tmp_path_factory: pytest.TempPathFactory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Server]:
    server = Server(tmp_path_factory.mktemp("away") / "postgres")
    monkeypatch.setenv("RECON_DATABASE_URL", server.url)
    monkeypatch.setenv("RECON_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("RECON_LIMIT_DATABASE_WAIT_SECONDS", "1")
    yield server
    server.stop()


def pauses(*steps: Callable[[], object]) -> SimpleNamespace:
    """What happens between the looks of a command, which is told to stop behind the last one."""
    left = iter(steps)

    def sleep(_seconds: float) -> None:
        if (step := next(left, None)) is None:
            raise KeyboardInterrupt
        step()

    return SimpleNamespace(sleep=sleep)


@pytest.mark.long
def test_the_inbox_and_jobs_wait_for_a_database_that_is_away(
    server: Server,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    folder = tmp_path / "inbox"
    folder.mkdir()
    write(folder / "a.csv", line(1))

    def delivered_while_away() -> None:
        write(folder / "b.csv", line(2))
        server.stop()

    def lost_when_archived() -> None:
        server.start()
        write(folder / "c.csv", line(3))

        def reached(point: str) -> None:
            reach(point)
            if point == "inbox-archived":
                monkeypatch.setattr(looks, "reach", reach)
                server.stop()

        monkeypatch.setattr(looks, "reach", reached)

    steps = (delivered_while_away, server.start, lost_when_archived, server.start)
    monkeypatch.setattr(inbox, "time", pauses(*steps))
    with pytest.raises(KeyboardInterrupt):
        inbox.watch_command(folder, settle=0)
    assert server.rows("SELECT name FROM extract ORDER BY 1") == [
        *(("a.csv",), ("b.csv",), ("c.csv",))
    ]
    assert server.rows('SELECT "Id" FROM payment ORDER BY 1') == [(1,), (2,), (3,)]
    assert list(Inbox(folder).waiting.iterdir()) == []
    capsys.readouterr()
    monkeypatch.setattr(jobs, "time", pauses(server.stop, server.start))
    with pytest.raises(KeyboardInterrupt):
        jobs.jobs_command(watch=True)
    told = capsys.readouterr().err
    assert told.count("The next look is in 2 s") == 1
    assert "fault of the program" not in told
