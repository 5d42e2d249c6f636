"""The embedded server: set up for large loads, found where it is, and closed to others."""

import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import psutil
import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict
from sqlalchemy import make_url

from connectors.errors import DatabaseUnusable
from connectors.postgres.database import open_database
from connectors.postgres.server.embedded import SERVER_SETTINGS, embedded_url
from connectors.postgres.server.postmaster import Postmaster
from connectors.postgres.server.programs import program
from connectors.settings import Settings

MADE = "SELECT name, setting FROM pg_file_settings WHERE sourcefile LIKE '%auto.conf'"


@pytest.mark.own_release
def test_an_older_server_is_set_up_too(server: str) -> None:
    folder = Path(server.partition("host=")[2])
    with psycopg.connect(server, autocommit=True) as connection:
        before = dict(connection.execute(MADE).fetchall())
        assert before.items() >= SERVER_SETTINGS.items()
        assert "shared_buffers" in before
        connection.execute("ALTER SYSTEM RESET min_wal_size")
        connection.execute("ALTER SYSTEM SET wal_buffers = '32MB'")
        embedded_url(folder)
        after = dict(connection.execute(MADE).fetchall())
        assert after == before | {"wal_buffers": "32MB"}


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Data folder of a server that may be stopped."""
    folder = tmp_path_factory.mktemp("own") / "postgres"
    embedded_url(folder)
    return folder


@pytest.fixture
def stranger() -> Iterator[int]:
    """A process of somebody else, which has to survive."""
    with subprocess.Popen(["sleep", "600"]) as process:
        yield process.pid
        assert process.poll() is None, "a stranger was ended"
        process.kill()


BROKEN = {
    "empty": "",
    "half": "{pid}\n{folder}\n17",
    "number alone": "{pid}",
    "binary": "\0\xff\xfe\x01",
    "words": "one\ntwo\n",
    "a stranger": "{pid}\n{folder}\n{time}\n5432\n{folder}\n\n  1 2\nready\n",
    "a stranger, half": "{pid}\n{folder}\n{time}\n5432\n",
    "first process": "1\n{folder}\n{time}\n5432\n{folder}\n\n  1 2\nready\n",
    "negative": "-1\n{folder}\n{time}\n5432\n{folder}\n\n  1 2\nready\n",
    "nobody": "4194303\n{folder}\n{time}\n5432\n{folder}\n\n  1 2\nready\n",
    "huge": "99999999999999999999\n{folder}\n1\n5432\n{folder}\n\n  1 2\nready\n",
}


@pytest.mark.long
@pytest.mark.parametrize("name", BROKEN)
def test_no_number_in_a_file_is_believed(own: Path, stranger: int, name: str) -> None:
    Postmaster(own).stop()
    text = BROKEN[name].format(
        pid=stranger, folder=own, time=int(psutil.Process(stranger).create_time())
    )
    (own / "postmaster.pid").write_bytes(text.encode("latin-1"))
    (own / ".s.PGSQL.5432.lock").write_text(f"{stranger}\n{own}\n1\n5432\n{own}\n")
    with psycopg.connect(embedded_url(own)) as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)
    Postmaster(own).stop()


@pytest.mark.long
@pytest.mark.parametrize("name", ["postmaster.pid", ".s.PGSQL.5432", ".s.PGSQL.5432.lock", "log"])
def test_a_folder_where_a_file_belongs(own: Path, name: str) -> None:
    """An empty one is nothing; what is in one is never thrown away."""
    Postmaster(own).stop()
    place = own / name
    kept = place.rename(own / "kept") if place.exists() else None
    place.mkdir()
    (place / "mine").write_text("mine")
    for _ in range(2):
        with pytest.raises(
            DatabaseUnusable, match=rf"{re.escape(str(place))} is a folder.*move it"
        ):
            embedded_url(own)
    assert (place / "mine").read_text() == "mine"
    (place / "mine").unlink()
    if kept:
        place.rmdir()
        kept.rename(place)
    with psycopg.connect(embedded_url(own)) as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)
    Postmaster(own).stop()


@pytest.mark.long
def test_a_moved_folder_and_a_killed_server_start_again(own: Path, tmp_path: Path) -> None:
    embedded_url(own)
    server = Postmaster(own)
    pid = server.listener()
    assert pid
    os.kill(pid, signal.SIGKILL)
    with psycopg.connect(embedded_url(own)) as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)
    assert server.listener() != pid
    server.stop()
    moved = tmp_path / "elsewhere" / "postgres"
    moved.parent.mkdir()
    own.rename(moved)
    try:
        (moved / "postmaster.pid").write_text(
            f"{os.getpid()}\n{own}\n1\n5432\n{own}\n\n 1 2\nready\n"
        )
        embedded_url(moved)
        assert Postmaster(moved).listens()
        Postmaster(moved).stop()
    finally:
        moved.rename(own)


@pytest.mark.long
def test_a_server_that_was_killed_is_started_again_by_whoever_needs_it(tmp_path: Path) -> None:
    settings = Settings(tmp_path / "home")
    database = open_database(settings)
    server = Postmaster(tmp_path / "home" / "postgres")
    pid = server.listener()
    assert pid
    os.kill(pid, signal.SIGKILL)
    while server.listens():
        threading.Event().wait(0.01)
    with database.connect() as connection:
        assert connection.execute("SELECT count(*) FROM batch").fetchone() == (0,)


@pytest.mark.parametrize("name", ["My Files", "a,b", "50%25&x=#1?", os.fsdecode(b"caf\xe9")])
def test_a_path_that_an_address_reads_otherwise(
    tmp_path_factory: pytest.TempPathFactory, name: str
) -> None:
    """A blank ends a path there and a comma makes two of it; some bytes have no letter."""
    folder = tmp_path_factory.mktemp("p") / name / "postgres"
    folder.mkdir(parents=True)
    uri = Postmaster(folder).uri()
    (socket,) = {conninfo_to_dict(uri)["host"], make_url(uri).query["host"]}
    assert isinstance(socket, str)
    assert "," not in socket
    assert Path(socket).samefile(folder)


@pytest.mark.long
@pytest.mark.parametrize(
    "environment",
    [
        {"PGPORT": "6543", "PGHOSTADDR": "127.0.0.1"},
        {
            "PGREQUIREAUTH": "scram-sha-256",
            "PGCHANNELBINDING": "require",
            "PGSSLNEGOTIATION": "direct",
            "PGSSLMODE": "verify-full",
            "PGGSSENCMODE": "require",
            "PGTARGETSESSIONATTRS": "standby",
            "PGOPTIONS": "-c statement_timeout=1ms",
        },
        {"LC_ALL": "", "LC_CTYPE": "UTF-8"},
    ],
    ids=["of another server", "of its login", "of another system"],
)
def test_the_environment_decides_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, environment: dict[str, str]
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    folder = tmp_path / "postgres"
    with psycopg.connect(embedded_url(folder)) as connection:
        assert list(folder.glob(".s.PGSQL.*[0-9]")) == [folder / ".s.PGSQL.5432"]
        read = "SELECT lower('\u00c4\u0416'), 'B' < 'a', current_setting('lc_messages')"
        assert connection.execute(read).fetchone() == ("\u00e4\u0436", True, "C")
    Postmaster(folder).stop()


def test_a_service_that_cannot_be_read_is_told_at_once(
    own: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """libpq wants to read it before it asks any server, whatever the address says."""
    Postmaster(own).stop()
    monkeypatch.setenv("PGSERVICE", "of-another-server")
    with pytest.raises(DatabaseUnusable, match=r"^PGSERVICE cannot be read: .* needs none: run"):
        embedded_url(own)


SERVE = (
    "import sys; from pathlib import Path; "
    "from connectors.postgres.server.embedded import embedded_url; "
    "print(embedded_url(Path(sys.argv[1])), flush=True); sys.stdin.read()"
)


@pytest.mark.long
def test_a_server_outlives_who_started_it_where_others_need_it(own: Path) -> None:
    Postmaster(own).stop()
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", SERVE, str(own)],
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        check=True,
    )
    assert done.stderr == ""
    assert Postmaster(own).listens(), "this process needs it"


@pytest.mark.long
@pytest.mark.parametrize("mask", [0o022, 0o000])
def test_a_long_path_is_no_open_door(tmp_path: Path, mask: int) -> None:
    """Neither folder nor socket is anybody else's, and no folder above is opened for it."""
    above = tmp_path / "above"
    above.mkdir(mode=0o700)
    folder = above / ("long" * 30) / "home" / "postgres"
    command = [sys.executable, "-c", SERVE, str(folder)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, umask=mask
    ) as process:
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        with psycopg.connect(url, autocommit=True) as connection:
            rules = connection.execute("SELECT type, auth_method FROM pg_hba_file_rules").fetchall()
            assert rules == [("local", "peer")]
            assert connection.execute("SHOW listen_addresses").fetchone() == ("",)
        place = Path(url.partition("host=")[2])
        for one in (
            above,
            folder.parent.parent,
            folder.parent,
            folder,
            place.parent,
            place.resolve(),
        ):
            assert one.stat().st_mode & 0o077 == 0, one
        assert next(folder.glob(".s.PGSQL.*")).parent.stat().st_mode & 0o077 == 0
        process.communicate("")
    assert not Postmaster(folder).listens(), "the last one that needed it has ended"


@pytest.mark.long
@pytest.mark.skipif(os.geteuid() != 0, reason="needs another user")
def test_nobody_else_becomes_superuser(own: Path) -> None:
    """Even where the folder was opened by hand, the system says who comes."""
    url = embedded_url(own)
    modes = {one: one.stat().st_mode for one in (own, *list(own.parents)[:-2])}
    try:
        for one in modes:
            one.chmod(0o755)
        done = subprocess.run(
            [program("psql", own), url, "-c", "SELECT 1"],
            check=False,
            user="nobody",
            capture_output=True,
            text=True,
        )
        assert done.returncode != 0
        assert "peer authentication failed" in done.stderr.lower(), done.stderr
    finally:
        for one, mode in modes.items():
            one.chmod(mode)


def test_a_server_that_trusted_everybody_is_closed(own: Path) -> None:
    rules = own / "pg_hba.conf"
    with psycopg.connect(embedded_url(own), autocommit=True) as connection:
        rules.write_text("# as it was\nlocal all all trust\nhost all all 127.0.0.1/32 trust\n")
        connection.execute("SELECT pg_reload_conf()")
        embedded_url(own)
        found = connection.execute("SELECT auth_method FROM pg_hba_file_rules").fetchall()
        assert found == [("peer",)]
        rules.write_text(made := "local all all peer map=recon\nlocal app app scram-sha-256\n")
        embedded_url(own)
        assert rules.read_text() == made, "somebody's own rules stay"


@pytest.mark.long
def test_a_folder_of_another_account_lets_in_who_has_it_now(own: Path) -> None:
    """Copied with its home to another machine or account, its rules name the former one."""
    embedded_url(own)
    Postmaster(own).stop()
    people, rules = own / "pg_ident.conf", own / "pg_hba.conf"
    made = people.read_text()
    rules.write_text("# Only over the socket.\nlocal all all peer map=recon\n")
    people.write_text('# Who may be any role of this server.\nrecon "formerly" all\n')
    with psycopg.connect(embedded_url(own)) as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)
    assert people.read_text() == made


def test_who_is_not_let_in_is_told_at_once(own: Path) -> None:
    """By rules that somebody made: they stay, and waiting changes nothing of them."""
    embedded_url(own)
    Postmaster(own).stop()
    files = [own / "pg_ident.conf", own / "pg_hba.conf"]
    kept = [path.read_text() for path in files]
    theirs = 'recon "formerly" all\nrecon "theirs" app\n'
    try:
        files[0].write_text(theirs)
        with pytest.raises(DatabaseUnusable, match=r"does not let \w+ in: .* Have `local all all"):
            embedded_url(own)
        assert files[0].read_text() == theirs
        Postmaster(own).stop()
    finally:
        for path, text in zip(files, kept, strict=True):
            path.write_text(text)
