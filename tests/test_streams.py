"""Standard streams that are closed, full or left: the exit code is that of the work."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from flows.__main__ import main

ROOT = Path(__file__).parents[1]
FAULT = """
import flows.commands.learn
def fail(*_): raise ValueError
flows.commands.learn.fields_command = fail"""
STOP = """
import os, signal, flows.commands.learn
def stop(*_): os.kill(os.getpid(), signal.SIGTERM)
flows.commands.learn.fields_command = stop"""
WAYS = {
    "could not run": ("", "check nowhere.csv", 2),
    "wrong arguments": ("", "check --nonsense", 2),
    "no setting can be read": ("", "check a.csv", 2),
    "a fault": (FAULT, "fields", 2),
    "stopped": (STOP, "fields", 130),
    "done": ("", "fields payment", 0),
    "nobody types": ("", "login anna", 2),
}
"""Way to end -> what is done before, the command, its exit code."""
BEGIN = "import sys{before}\nfrom flows.__main__ import main\nsys.argv[1:] = {command!r}\nmain()"
AS = {
    "closed": "2>&-",
    "full": "2>/dev/full",
    "left": "",  # A pipe that nobody reads is there already.
    "all closed": "<&- >&- 2>&-",
}


@pytest.mark.long
@pytest.mark.parametrize("buffer", ["buffered", "unbuffered"])
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("error", AS)
def test_the_exit_code_is_that_of_the_work_whoever_is_told(
    tmp_path: Path, error: str, way: str, buffer: str
) -> None:
    before, command, code = WAYS[way]
    reading, writing = os.pipe()
    os.close(reading)
    script = BEGIN.format(before=before, command=command.split())
    environment = dict(os.environ) | {"RECON_HOME": str(tmp_path), "HOME": str(tmp_path)}
    environment["RECON_LOGIN_FILE"] = str(tmp_path / "login")
    # A database that nobody reaches: a login is refused before it would be asked.
    environment["RECON_DATABASE_URL"] = "postgresql://127.0.0.1:1/x"
    if way == "no setting can be read":
        environment["RECON_LIMIT_COLUMNS"] = "many"
    run = subprocess.run(
        ["sh", "-c", f'exec "$0" -c "$1" {AS[error]}', sys.executable, script],
        env=environment | ({"PYTHONUNBUFFERED": "1"} if buffer == "unbuffered" else {}),
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=writing,
        timeout=60,
        check=False,
    )
    os.close(writing)
    assert run.returncode == code


@pytest.mark.parametrize("columns", ["²", "٣", "9" * 5000, "wide", "-1", "0", "1", "2", "9" * 9])
@pytest.mark.parametrize("asked", [["--help"], ["status", "--help"], ["fields", "payment"]])
def test_a_width_that_is_none_is_no_fault(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    columns: str,
    asked: list[str],
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    with pytest.raises(SystemExit) as ended:
        main(asked)
    told = capsys.readouterr()
    assert (ended.value.code, told.err) == (0, "")
    assert max(map(len, told.out.splitlines())) < 10_000


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp1252:strict", "utf-8"])
def test_a_document_for_scripts_is_json_in_every_encoding(tmp_path: Path, encoding: str) -> None:
    """What an encoding has not is escaped, and not every escape of Python is one of JSON."""
    name = "ÿé€\U0001f600.csv"
    (tmp_path / name).touch()
    run = subprocess.run(
        [sys.executable, "-m", "flows", "check", str(tmp_path), "--json"],
        cwd=ROOT,
        env=os.environ | {"PYTHONIOENCODING": encoding},
        capture_output=True,
        timeout=60,
        check=False,
    )
    (file,) = json.loads(run.stdout.decode(encoding.partition(":")[0]))["files"]
    assert (run.returncode, file["name"]) == (1, name)
