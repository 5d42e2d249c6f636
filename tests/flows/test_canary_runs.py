"""A canary in secrets of runs that import and push is in nothing that Prefect or a push keeps."""

import json
import logging
from pathlib import Path
from typing import Any

import pytest

from flows.stages.workspace import Workspace
from schemas.guards.roles import statements
from tests.flows.runs import kept_files, log_lines, run
from tests.push.conftest import USER
from tests.service.faulty_server import FaultyServer, Reply, Seen, status
from tests.test_canary import (
    CANARY,
    around,
    everything_readable,
    everything_written,
    write_canaries,
)

pytestmark = pytest.mark.flows


def quoting(seen: Seen) -> Reply:
    """Answers that quote what was sent: as an error, in its text, as an echo, without a form."""
    error = {"ErrorCode": "Refused", "FieldName": "Name", "Message": f"no: {seen.body}"}
    answers = {
        1: status(400, errors=[error | {"Meta": {"PropertyValue": CANARY}}]),
        2: Reply(200, body={**_sent(seen), "Id": 1, "ServiceKey": CANARY, "Name": CANARY}),
        3: status(409, body={"ResponseStatus": {"ErrorCode": CANARY, "Message": seen.body}}),
    }
    return answers.get(seen.number, Reply(400, body=seen.body))


def _sent(seen: Seen) -> dict[str, Any]:
    tree = json.loads(seen.body) if seen.method == "POST" else {}
    return tree if isinstance(tree, dict) else tree[0]


def test_neither_prefect_nor_a_push_keeps_a_secret(
    workspace: Workspace,
    rows: Any,
    tmp_path: Path,
    prefect_home: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG, "recon")
    given = tmp_path / "given"
    given.mkdir()
    told = []
    with FaultyServer(quoting) as server:
        for name, value in (
            ("URL", server.url),
            ("FORMAT", "json"),
            ("CONCURRENCY", "1"),
            ("USER", USER.name),
            ("PASSWORD", CANARY),
            ("BACKOFF_SECONDS", "0.001"),
        ):
            monkeypatch.setenv(f"RECON_SERVICE_{name}", value)
        chosen = ("good", "client_registration")
        for path, inner in write_canaries(given):
            if path.stem not in chosen:
                continue
            if path.stem == "client_registration":
                clean = f"a@example.com,Ann,Lee,{CANARY},{CANARY},Acme\n"
                path.write_text("\n".join(path.read_text().splitlines()[:4]) + f"\n{clean * 2}")
            profile = tmp_path / f"{path.stem}.toml"
            kind = f'inner_record = "{inner}"\n' if inner else ""
            profile.write_text(f'feed = "f"\n{kind}')
            state = run(str(path), profile=str(profile), push=True)
            told += [str(state.message), *log_lines(state)]
        assert any(CANARY in seen.body for seen in server.requests)
    assert rows("SELECT count(*) FROM batch") == [(len(chosen),)]
    assert ("refused",) in rows("SELECT DISTINCT state FROM send")
    assert [text for text in told if CANARY in text] == []
    assert CANARY not in caplog.text, around(caplog.text)
    for path in kept_files(prefect_home):
        content = path.read_bytes()
        assert CANARY.encode() not in content, (path, around(content.decode(errors="replace")))
    # The delivered bytes are what is kept to be sent, for their owner alone.
    home = workspace.settings.home
    beside = [one for one in home.iterdir() if one != workspace.settings.archive]
    for name, content in everything_written(*beside):
        assert CANARY.encode() not in content, (name, around(content.decode(errors="replace")))
    assert {path.stat().st_mode & 0o077 for path in workspace.settings.archive.rglob("*")} == {0}
    with workspace.database.connect() as connection:
        for statement in statements():
            connection.execute(statement)  # type: ignore[call-overload]
        for name, text in everything_readable(connection, "recon_reader"):
            assert CANARY not in text, (name, around(text))
        sent = str(connection.execute("SELECT error_data, echo FROM send").fetchall())
        assert CANARY not in sent, around(sent)
