"""The command line: exit codes are a contract, every command says what it does, with an example."""

import json
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import psutil
import pytest
from cyclopts import App

from connectors.errors import DeliveryError, SettingsError
from connectors.files.incoming.inbox import Inbox
from connectors.settings import read_settings
from flows.__main__ import COMMANDS, main
from flows.stages.workspace import Workspace
from schemas.reasons import REASONS
from tests import recon as processes
from tests.stages.payments import line, write

COMMANDS_PAGE = (Path(__file__).parents[1] / "docs" / "commands.md").read_text()
HEARD = "signal.signal(signal.SIGHUP, signal.SIG_DFL)\n"
"""Ends a process whose terminal is closed, also where the tests are to outlive theirs."""


@pytest.fixture
def recon(workspace: Workspace) -> Any:
    def ask(*arguments: str, **environment: str) -> "subprocess.CompletedProcess[str]":
        url, home = workspace.settings.database_url, workspace.settings.home
        return processes.run(url, home, *arguments, **environment)

    return ask


def test_every_command_says_what_it_does_with_an_example() -> None:
    import importlib

    for name, (module, _) in COMMANDS.items():
        command = getattr(importlib.import_module(f"flows.commands.{module}"), f"{name}_command")
        commands = {name: command}
        if isinstance(command, App):
            parts = [part for part in command if not part.startswith("-")]
            commands = {f"{name} {part}": command[part].default_command for part in parts}
        for spelled, told in commands.items():
            assert told.__doc__, spelled
            assert f"`recon {spelled}" in told.__doc__, f"{spelled} shows no example"


@pytest.mark.long
def test_check_prints_the_documented_shape(recon: Any, tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", line(1), line(2, amount="ten"))
    run = recon("check", path, "--json")
    assert run.returncode == 1
    (file,) = json.loads(run.stdout)["files"]
    assert list(file) == [
        "name",
        "record",
        "rows_in",
        "rejected",
        "excluded",
        "superseded",
        "merged",
        "valueless",
        "comments",
        "refused",
        "message",
        "said",
        "unsettled",
        "rejects",
    ]
    assert (file["name"], file["record"], file["rows_in"], file["rejected"]) == (
        "a.csv",
        "payment",
        2,
        1,
    )
    (reject,) = file["rejects"]
    assert {name: reject[name] for name in ("record_number", "line", "last_line", "data")} == {
        "record_number": 2,
        "line": 3,
        "last_line": 3,
        "data": line(2, amount="ten"),
    }
    (error,) = reject["errors"]
    assert list(error) == ["ErrorCode", "FieldName", "Message", "Meta"]
    assert (error["ErrorCode"], error["FieldName"]) == ("Number", "PaidAmount")


@pytest.mark.long
def test_import_tells_files_batch_state_verdicts_and_totals(recon: Any, tmp_path: Path) -> None:
    run = recon("import", write(tmp_path / "a.csv", line(1), line(2)), "--json")
    assert run.returncode == 0, run.stderr
    told = json.loads(run.stdout)
    assert (told["batch"], told["state"], told["new"]) == (1, "complete", True)
    assert told["verdicts"] == {"payment": {"inserted": 2}}
    assert told["control_totals"]["payment"]["inserted"]["amounts"] == {
        "1": {"DiscountAmount": "1", "PaidAmount": "21"}
    }
    again = recon("import", str(tmp_path / "a.csv"), "--json")
    assert (again.returncode, json.loads(again.stdout)["new"]) == (0, False)


@pytest.mark.long(
    but=(
        "arguments0-environment0-2-no such file or folder",
        "arguments2-environment2-2-many",
        "arguments4-environment4-2-There is no batch 99",
        "arguments7-environment7-2-does not name a PostgreSQL",
        "arguments9-environment9-2-from 512 to",
        "arguments14-environment14-2-Must be from 1",
        "arguments16-environment16-2-set RECON_SANDBOX_PASSWORD",
        "arguments18-environment18-2-cannot be read",
    )
)
@pytest.mark.parametrize(
    ("arguments", "environment", "code", "told"),
    [
        (["import", "nowhere.csv"], {}, 2, "no such file or folder"),
        (["import", "--nonsense"], {}, 2, "--nonsense"),
        (["rerun", "many"], {}, 2, "many"),
        (["rerun", "99"], {}, 2, "There is no batch 99"),
        (["row", "99", "a.csv", "--line", "1"], {}, 2, "There is no batch 99"),
        (["import", "x.csv", "--record", "paiment"], {}, 2, "Known: action_document"),
        (["import", "x.csv", "--profile", "none.toml"], {}, 2, "none.toml: cannot be read"),
        (["status"], {"RECON_DATABASE_URL": "mysql://x"}, 2, "does not name a PostgreSQL"),
        (["status"], {"RECON_LIMIT_COLUMNS": "many"}, 2, "RECON_LIMIT_COLUMNS='many'"),
        (["check", "x.csv"], {"RECON_LIMIT_BLOCK_BYTES": "9" * 30}, 2, "from 512 to"),
        (["reconcile"], {"RECON_LIMIT_RECONCILE_BYTES": "1"}, 2, "RECONCILE_BYTES='1' is not"),
        (["check", "x.csv", "--tenant", "9" * 20], {}, 2, "tenant = 99999999999999999999 is out"),
        (["import", "x.csv", "--max-errors", "-1"], {}, 2, "budget_errors = -1 is out of range"),
        (["import", "x.csv", "--max-error-rate", "nan"], {}, 2, "is not a share"),
        (["status", "--last", "-1"], {}, 2, "Must be from 1"),
        (["sandbox", "--user", "ann:canary-7:Client"], {}, 2, "set RECON_SANDBOX_PASSWORD"),
        (["sandbox", "--user", "ann:canary-7"], {}, 2, "set RECON_SANDBOX_PASSWORD"),
        (["sandbox", "--user", "ann:Client"], {}, 2, "its password is not set"),
        (["sandbox", "--users", "none.txt"], {}, 2, "cannot be read"),
        (["sandbox", "--database", "postgresql://u:canary-7@h/d"], {}, 2, "PGPASSWORD"),
        (["sandbox", "--database", "host=h password=canary-7"], {}, 2, "PGPASSWORD"),
        (["compare", "postgresql://h/d?password=canary-7", "b", "--key", "I"], {}, 2, "PGPASSWORD"),
        (["audit", "list", "--last", "-1"], {}, 2, "Must be from 1"),
        (["housekeeping", "--archive-days", "-1", "--remove"], {}, 2, "Must be from 1"),
        (["housekeeping", "--inbox", "", "--remove"], {}, 2, "'' is no path"),
        (["watch", "", "--once"], {}, 2, "'' is no path"),
        (["watch", ".", "--every", "nan"], {}, 2, "Must be from 0"),
        (["undo", "1", "--reason", " "], {}, 2, "A reason is needed"),
        (["status"], {"RECON_DATABASE_URL": "postgresql://u:p@host:port/x"}, 2, "HOST:PORT"),
        (["status", "--most", "0"], {}, 2, "Must be from 1"),
        (["breaks", "resolve", "x", "--at", "home", "--reason", "r"], {}, 2, "source"),
        (["sandbox", "--style", "snake"], {}, 2, "camel-core"),
    ],
)
def test_what_cannot_run_says_why_without_a_traceback(
    recon: Any, arguments: list[str], environment: dict[str, str], code: int, told: str
) -> None:
    run = recon(*arguments, **environment)
    assert run.returncode == code, run.stderr
    assert told in run.stderr
    assert "Traceback" not in run.stderr
    assert "canary-7" not in run.stdout + run.stderr


@pytest.mark.long
@pytest.mark.parametrize("password", ["hush@secret", "hush/secret", "hush?secret", "hush#secret"])
def test_a_password_with_bare_signs_is_shown_nowhere(recon: Any, password: str) -> None:
    """What follows the sign would be taken for the host, and named as one that is not found."""
    address = f"postgresql://user:{password}@localhost:1/x"
    for run in (
        recon("status", RECON_DATABASE_URL=address),
        recon("compare", f"{address}?table=y", f"{address}?table=z", "--key", "Id"),
    ):
        assert run.returncode == 2
        assert "write @ as %40" in run.stderr
        assert "secret" not in run.stdout + run.stderr
        assert "hush" not in run.stdout + run.stderr


@pytest.mark.long
def test_delivered_text_cannot_move_the_cursor(recon: Any, tmp_path: Path) -> None:
    hostile = "1\x1b]0;title\x07\x1b[2J\u202e"
    path = write(tmp_path / "a\x1b[31m\n.csv", line(2).replace("2,", f"{hostile},", 1))
    told = [recon("check", path), recon("import", path), recon("status")]
    name = "a\\x1b[31m\\n.csv"
    told.append(recon("row", "1", name, "--record", "1"))
    assert [run.returncode for run in told] == [1, 1, 0, 0], told
    for run in told:
        assert not {"\x1b", "\x07", "\u202e"} & {*run.stdout, *run.stderr}
    assert r"1\e]0;title\u0007\e[2J\u202e" in told[0].stdout


@pytest.mark.long
@pytest.mark.parametrize("form", [[], ["--json"]])
def test_a_reader_that_leaves_early_changes_nothing(tmp_path: Path, form: list[str]) -> None:
    path = write(tmp_path / "a.csv", line(1))
    reading, writing = os.pipe()
    os.close(reading)
    run = subprocess.run(
        [sys.executable, "-m", "flows", "check", path, *form],
        stdout=writing,
        stderr=subprocess.PIPE,
        timeout=60,
        check=False,
    )
    os.close(writing)
    assert (run.returncode, run.stderr) == (0, b"")


@pytest.mark.long
def test_output_that_cannot_be_written_says_so(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", line(1))
    with Path("/dev/full").open("wb") as full:
        run = subprocess.run(
            [sys.executable, "-m", "flows", "check", path],
            stdout=full,
            stderr=subprocess.PIPE,
            timeout=60,
            check=False,
        )
    assert run.returncode == 2
    assert b"No space left on device" in run.stderr
    assert b"Traceback" not in run.stderr


def test_the_life_of_a_batch_on_the_command_line(recon: Any, tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", line(1), line(2, amount="ten"))
    assert "first" in recon("status").stdout
    imported = recon("import", path)
    assert imported.returncode == 1
    assert imported.stdout.splitlines()[:2] == [
        "a.csv: payment, 2 rows, 1 with errors",
        "COMPLETE WITH ERRORS: The rows without errors are applied and every figure ties; some "
        "rows carry errors or a file was refused. Correct what is listed under rejects and files, "
        "and deliver it again.",
    ]
    assert "Hash total of keys" not in imported.stdout
    assert "recon rejects 1" in imported.stdout
    assert "Hash total of keys" in recon("rerun", "1", "-v").stdout
    row = recon("row", "1", "a.csv", "--line", "3")
    assert "rejected" in row.stdout
    assert "Number" in row.stdout
    assert f"next  {REASONS['Number'].remedy}" in row.stdout
    assert f"  next: {REASONS['Number'].remedy}\n" in recon("check", path).stdout
    assert recon("rejects", "1", "--out", str(tmp_path / "rejects")).returncode == 0
    (rejects,) = (tmp_path / "rejects").glob("*.csv")
    rejects.write_text(rejects.read_text().replace("ten", "10"))
    corrected = recon("import", str(rejects), "--corrects", "1")
    assert corrected.returncode == 0, corrected.stdout + corrected.stderr
    assert recon("undo", "2", "--reason", "test").returncode == 0
    assert "undone" in recon("status").stdout
    assert recon("rerun", "1").returncode == 1


@pytest.mark.long
def test_the_sandbox_serves_until_it_is_stopped(workspace: Workspace) -> None:
    import urllib.request

    assert workspace.settings.database_url is not None
    avatars = Path(__file__).parents[1] / "data_samples" / "clean" / "avatars.csv"
    run = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "flows",
            "sandbox",
            "--load",
            f"avatar={avatars}",
            "--user",
            "ann:Client",
        ],
        env=os.environ
        | {
            "RECON_DATABASE_URL": workspace.settings.database_url,
            "RECON_SANDBOX_PASSWORD": "pw",
        },
        stdout=subprocess.PIPE,
        text=True,
    )
    assert run.stdout is not None
    try:
        assert "15 rows loaded as avatar" in run.stdout.readline()
        url = run.stdout.readline().split()[4].rstrip(".")
        request = urllib.request.Request(
            f"{url}/avatars", headers={"Accept": "text/csv", "Authorization": "Basic YW5uOnB3"}
        )
        with urllib.request.urlopen(request, timeout=10) as answer:
            assert len(answer.read().splitlines()) == 16
    finally:
        run.send_signal(signal.SIGTERM)
        assert run.wait(timeout=20) == 0
        run.stdout.close()


def test_the_page_of_commands_names_every_one() -> None:
    assert [name for name in COMMANDS if f"recon {name}" not in COMMANDS_PAGE] == []


@pytest.mark.long
@pytest.mark.parametrize("command", ["check", "import"])
def test_lines_that_are_no_rows_are_told(recon: Any, tmp_path: Path, command: str) -> None:
    path = write(tmp_path / "a.csv", "# by hand", line(1), "# not yet")
    profile = tmp_path / "profile.toml"
    profile.write_text('feed = "noted"\ncomment = "#"\n')
    told = recon(command, path, "--profile", str(profile)).stdout.splitlines()[0]
    assert told == "a.csv: payment, 1 row, 0 with errors, 2 skipped lines (first line 2)"


@pytest.mark.long
def test_a_binary_tail_costs_no_good_row(recon: Any, tmp_path: Path) -> None:
    path = Path(write(tmp_path / "a.csv", line(1), line(2)))
    path.write_bytes(path.read_bytes() + line(3)[:9].encode() + bytes(4096))
    run = recon("check", str(path))
    assert run.returncode == 1
    assert "a.csv: payment, 3 rows, 1 with errors" in run.stdout
    assert "line 4, record 3: NulCharacter" in run.stdout
    imported = json.loads(recon("import", str(path), "--json").stdout)
    assert imported["verdicts"]["payment"]["rejected"] == 1
    assert [reason["ErrorCode"] for reason in imported["reasons"]][:1] == ["NulCharacter"]


@pytest.mark.parametrize("name", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_check_that_was_stopped_promises_nothing_to_go_on_with(
    workspace: Workspace, tmp_path: Path, name: signal.Signals
) -> None:
    from tests.stages.payments import HEADER

    path = tmp_path / "a.csv"
    path.write_text(f"{HEADER}\n" + f"{line(1)}\n" * 400_000)
    url, home = workspace.settings.database_url, workspace.settings.home
    with processes.Run(str(url), home, "check", str(path)) as run:
        watched = psutil.Process(run.pid)
        while not any(".csv" in one.path for one in watched.open_files()):
            assert run.poll() is None
        os.kill(run.pid, name)
        out, told = run.communicate()
        assert (run.wait(), out) == (130, ""), told
    assert told == ("recon: stopped. Nothing was kept or changed; run the same command again.\n")
    assert not home.exists() or not list(home.rglob("*.csv"))


@pytest.mark.long
def test_the_shell_completes_every_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(SystemExit) as ended:
        main(["--install-completion", "--shell", "bash"])
    assert not ended.value.code
    capsys.readouterr()
    script = (tmp_path / ".local/share/bash-completion/completions/recon").read_text()
    assert all(name in script for name in COMMANDS)
    assert "--corrects" in script


class Unforeseen(BaseException):
    """As compiled libraries raise theirs: past whoever handles errors."""


@pytest.mark.parametrize("kind", [ValueError, RuntimeError, RecursionError, KeyError, Unforeseen])
@pytest.mark.parametrize("home", ["home", "a file", "~nobody-of-this-name/x"])
def test_what_nobody_foresaw_is_one_line_and_could_not_run(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    kind: type[BaseException],
    home: str,
) -> None:
    """Exit code 1 would tell a script that there are breaks; a text may hold a password."""
    (tmp_path / "a file").write_text("")
    given = home if home.startswith("~") else str(tmp_path / home)
    monkeypatch.setenv("RECON_HOME", given)
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))

    def fail(*_: object) -> None:
        try:
            raise OSError("canary-7")
        except OSError as cause:
            raise kind("canary-7") from cause

    monkeypatch.setattr("flows.commands.learn.fields_command", fail)
    with pytest.raises(SystemExit) as ended:
        main(["fields"])
    told = capsys.readouterr().err
    assert ended.value.code == 2
    assert told.count("\n") == 1
    assert "a fault of the program" in told
    assert f"{kind.__name__} in tests/test_cli.py" in told
    (kept,) = tmp_path.glob("*/**/*.txt")
    assert str(kept) in told
    assert kept.stat().st_mode & 0o077 == 0
    assert "test_cli.py" in kept.read_text()
    assert "canary-7" not in told + kept.read_text().replace('("canary-7")', "")


def test_what_nobody_foresaw_in_the_settings_is_one_line_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It was a traceback: the place to keep it at was asked for by reading the settings again."""

    def fail(*_: object) -> None:
        raise ValueError("canary-7")

    monkeypatch.setenv("RECON_HOME", str(tmp_path))
    monkeypatch.setattr("connectors.settings._audit", fail)
    with pytest.raises(SystemExit) as ended:
        main(["status"])
    told = capsys.readouterr().err
    (kept,) = (tmp_path / "faults").iterdir()
    assert (ended.value.code, told.count("\n"), str(kept) in told) == (2, 1, True)


def test_memory_that_is_not_enough_is_no_fault_of_the_program(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr("flows.commands.learn.fields_command", fail)
    with pytest.raises(SystemExit) as ended:
        main(["fields"])
    assert ended.value.code == 2
    assert "memory" in capsys.readouterr().err


HUGE = "99999999999999999999999"


@pytest.mark.parametrize(
    "arguments",
    [
        *(["sandbox", f"--port={port}"] for port in ("99999", "65536", "-1", HUGE)),
        *(["up", f"--port={port}"] for port in ("99999", "-1", "0", HUGE)),
        *(["up", f"--sandbox-port={port}"] for port in ("99999", "-1", HUGE)),
        *([one, HUGE] for one in ("report", "rerun", "rejects", "push", "sends")),
        *([one, HUGE, "--reason", "x"] for one in ("undo", "release", "discard")),
        ["report", f"-{HUGE}"],
        ["row", HUGE, "a.csv", "--line", "1"],
        ["row", "1", "a.csv", "--line", HUGE],
        ["row", "1", "a.csv", "--record", HUGE],
        ["reconcile", "--batch", "1", "--batch", HUGE],
        ["reconcile", "--tenant", HUGE],
        ["breaks", "list", "--run", HUGE],
        ["breaks", "list", "--tenant", HUGE],
        ["breaks", "list", "--currency", HUGE],
        ["breaks", "list", "--most", "-1"],
        ["sign", "prepare", HUGE],
        ["sign", "approve", HUGE],
        ["push", "1", "--max-rows", HUGE],
        ["push", "1", "--max-rows", "-1"],
    ],
    ids=" ".join,
)
def test_a_number_that_none_can_be_is_an_argument_that_is_wrong(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    told = capsys.readouterr()
    assert ended.value.code == 2
    # Without a way to take a number below zero for one, it is an option that is not there.
    assert "Must be from" in told.err + told.out or "Unknown option" in told.err + told.out


@pytest.mark.parametrize("name", ["RECON_HOME", "RECON_CURRENCIES", "RECON_SERVICE_CA_FILE"])
def test_a_home_folder_that_nobody_knows_is_told(name: str) -> None:
    with pytest.raises(
        SettingsError,
        match=f"{name}='~nobody-of-this-name/x': ~nobody-of-this-name has no home folder",
    ):
        read_settings({name: "~nobody-of-this-name/x"})


def test_a_path_that_leads_nowhere_is_told_and_no_fault_of_the_program(tmp_path: Path) -> None:
    loop, file = tmp_path / "loop", tmp_path / "file"
    loop.symlink_to(loop)
    file.touch()
    for name in ("RECON_AUDIT_KEY", "RECON_AUDIT_PUBLIC_KEY"):
        for path in (loop, tmp_path, Path("/")):
            read_settings({name: str(path)})  # Most commands need no key.
    for path in (loop, loop / "home", file, file / "home", tmp_path / ("x" * 300)):
        with pytest.raises(SettingsError, match=f"RECON_HOME='{path}' cannot be used: .*Name a"):
            read_settings({"RECON_HOME": str(path)})
    for path in (loop, file):
        with pytest.raises(DeliveryError, match=f"{path}: there is no such inbox"):
            Inbox.of(tmp_path, path).refuse_missing()


@pytest.mark.long
@pytest.mark.parametrize(
    ("flags", "environment", "told"),
    [
        pytest.param((), {"PYTHONUTF8": "0"}, "Zürich.csv: payment, 1 row", id="read as they are"),
        pytest.param(
            ("-X", "utf8=0"), {}, "recon: Python takes names of files for ascii", id="named refusal"
        ),
        pytest.param(
            (),
            {"PYTHONIOENCODING": "ascii"},
            r"Z\u00fcrich.csv: payment, 1 row",
            id="shown as it can",
        ),
    ],
)
def test_names_of_files_are_utf8_whatever_the_locale(
    tmp_path: Path, flags: tuple[str, ...], environment: dict[str, str], told: str
) -> None:
    """A name that was read as bytes would be kept as another one, which nobody finds again."""
    (tmp_path / "Ö").mkdir()
    path = write(tmp_path / "Ö" / "Zürich.csv", line(1))
    locale = {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "RECON_HOME": str(tmp_path / "Höme")}
    run = subprocess.run(
        [sys.executable, *flags, "-m", "flows", "check", path],
        env=dict(os.environ) | locale | environment,
        cwd=Path(__file__).parents[1],
        capture_output=True,
        check=False,
    )
    assert told in (run.stdout + run.stderr).decode()


def test_a_process_that_outlives_its_command_does_so_without_a_word() -> None:
    begin = (
        "import os; from connectors.process import start_detached; "
        "print(start_detached(['sleep', '600'], os.environ).pid)"
    )
    run = subprocess.run(
        [sys.executable, "-W", "error", "-c", begin], capture_output=True, text=True, check=True
    )
    left = psutil.Process(int(run.stdout))
    try:
        assert (left.name(), run.stderr) == ("sleep", "")
    finally:
        left.kill()


@pytest.mark.long
@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
@pytest.mark.parametrize(
    ("times", "told"),
    [(1, "tidied up\n"), (2, "")],
    ids=["the end is not torn", "a second one ends it"],
)
def test_a_stop_after_the_work_changes_no_exit_code(name: str, times: int, told: str) -> None:
    """What a command has open is put away when the interpreter ends, and that takes a moment."""
    script = (
        "import atexit, os, signal, sys, flows.commands.learn\n"
        f"{HEARD}"
        "from flows.__main__ import main\n"
        "def tidy():\n"
        f"    for _ in range({times}): os.kill(os.getpid(), signal.{name})\n"
        "    sys.stderr.write('tidied up\\n')\n"
        "def work(*_):\n"
        "    atexit.register(tidy)\n"
        "    return 1\n"
        "flows.commands.learn.fields_command = work\n"
        "sys.argv[1:] = ['fields']\n"
        "main()\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False
    )
    assert (run.returncode, run.stderr) == (1, told)


@pytest.mark.long
@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_a_stop_before_the_command_is_known_is_told(name: str) -> None:
    script = (
        "import os, signal, sys, importlib.abc\n"
        f"{HEARD}"
        "class Stop(importlib.abc.MetaPathFinder):\n"
        "    def find_spec(self, module, *_):\n"
        "        if module == 'cyclopts':\n"
        "            sys.meta_path.remove(self)\n"
        f"            os.kill(os.getpid(), signal.{name})\n"
        "sys.meta_path.insert(0, Stop())\n"
        "from flows.__main__ import main\n"
        "sys.argv[1:] = ['import', 'a.csv']\n"
        "main()\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False
    )
    told = "recon: stopped. What was done before stands; run the same command again.\n"
    assert (run.returncode, run.stderr) == (130, told)


@pytest.mark.parametrize("stops", ["stop_on_signal(130)", "note_stops(0)", "stop_requested()"])
def test_a_closed_terminal_stops_nothing_that_was_begun_to_outlive_it(stops: str) -> None:
    """As `nohup` begins it."""
    script = (
        "import os, signal\n"
        "from flows.commands.stopping import *\n"
        "signal.signal(signal.SIGHUP, signal.SIG_IGN)\n"
        f"told = {stops}\n"
        "for _ in range(2): os.kill(os.getpid(), signal.SIGHUP)\n"
        "assert not (told or stopping).is_set()\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False
    )
    assert (run.returncode, run.stderr) == (0, "")
