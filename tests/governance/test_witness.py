"""The witness of the audit trail: what the owner of the database does to it is found elsewhere."""

import io
import json
import re
import shutil
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import fsspec
import pytest

from connectors.postgres.auditing.audit import verify
from connectors.postgres.runs.signatures import signatures_of
from connectors.settings import SettingsError, read_settings
from connectors.witness import places
from flows.stages.reconcile.kept_signatures import altered_signatures
from flows.stages.reconcile.sign import approve
from flows.stages.workspace import Workspace
from schemas.guards.trail_functions import GENESIS
from schemas.guards.trail_rules import Event, link_hash
from schemas.guards.witness import HEADING
from schemas.life import Role
from tests.accounts.people import PASSWORD
from tests.governance.runs import found, reconcile
from tests.governance.witnesses import Book, Recon, changed, kept, verified, witnessed, write
from tests.stages.payments import line
from tests.stages.payments import write as write_file


def rewrite(workspace: Workspace, *statements: str) -> None:
    """As the owner: triggers off, rows changed, and every link computed anew."""
    tables = ("event", "event_chain", "signature")
    with workspace.database.connect() as connection, connection.transaction():
        for table in tables:
            connection.execute(f"ALTER TABLE {table} DISABLE TRIGGER USER")
        for statement in statements:
            connection.execute(statement)
        before = GENESIS
        events = connection.execute(
            "SELECT c.position, e.id, e.batch_id, e.at, e.what, e.by, e.reason, e.detail, "
            "e.account FROM event_chain c JOIN event e ON e.id = c.event_id ORDER BY 1"
        ).fetchall()
        for position, *event in events:
            whole = link_hash(position, before, Event(*event))
            connection.execute(
                "UPDATE event_chain SET previous_hash = %s, hash = %s WHERE position = %s",
                [before, whole, position],
            )
            before = whole
        for table in tables:
            connection.execute(f"ALTER TABLE {table} ENABLE TRIGGER USER")


@pytest.mark.long
def test_an_approval_forged_by_the_owner_of_the_database_is_found(
    recon: Recon, workspace: Workspace, book: Book
) -> None:
    """Bo approved; the owner makes it Mallory, in a chain that is whole again."""
    write(workspace, "before", "any", "signature")
    assert recon("audit", "witness").returncode == 0
    reconcile(workspace, found(), verdict="RECONCILED")
    assert recon("sign", "prepare", "--by", "Ann").returncode == 0
    assert recon("sign", "approve", "--by", "Bo").returncode == 0
    assert [json.loads(line)["position"] for line in book.lines] == [3, 5, 6]
    assert verified(recon)["holds"]

    rewrite(
        workspace,
        "UPDATE event SET by = 'Mallory' WHERE what = 'report approved'",
        "UPDATE signature SET by = 'Mallory' WHERE role = 'approved'",
    )
    with workspace.database.connect() as connection:
        assert verify(connection).broken is None, "the chain alone does not tell"
    proof = verified(recon)
    assert proof["broken"] is None
    assert len(proof["faults"]) == 1
    assert proof["faults"][0].startswith("link 6 is not what was witnessed at ")
    assert "link 5 holds, so it was rewritten behind that" in proof["faults"][0]
    assert f"{book.path}, line 3" in proof["faults"][0]
    said = recon("audit", "verify")
    assert "The audit trail holds" in said.stdout
    assert "Does not hold: link 6 is not what was witnessed" in said.stdout

    write(workspace, "after")
    refused = recon("audit", "witness")
    assert refused.returncode == 2
    assert "the trail is not the one that was witnessed until link 6" in refused.stderr
    assert len(book.lines) == 3, "a forged trail gets no witness"


@pytest.mark.long
def test_a_trail_that_was_cut_off_or_restored_is_too_short(
    recon: Recon, workspace: Workspace, book: Book
) -> None:
    witnessed(recon, workspace, "first", "second", "third")
    rewrite(
        workspace,
        "DELETE FROM event_chain WHERE position > 1",
        "DELETE FROM event WHERE what <> 'first'",
    )
    (fault,) = verified(recon)["faults"]
    assert "the trail ends at link 1, and link 2 was witnessed" in fault
    write(workspace, "other", "and", "more")
    (fault,) = verified(recon)["faults"]
    assert "link 2 is not what was witnessed" in fault
    assert "link 1 holds" in fault


def test_another_database_and_a_trail_rewritten_from_its_start_are_told(
    recon: Recon, workspace: Workspace, book: Book
) -> None:
    witnessed(recon, workspace, "first", "second")
    rewrite(workspace, "UPDATE event SET by = 'Mallory' WHERE what = 'first'")
    faults = verified(recon)["faults"]
    assert f"{book.path}, line 1: is about another trail" in faults[0]
    assert any("link 1 is not what was witnessed" in fault for fault in faults)


def other_key(book: Book, recon: Recon, workspace: Workspace, patch: pytest.MonkeyPatch) -> None:
    patch.setenv("RECON_AUDIT_KEY", str(book.path.with_name("other.pem")))
    assert recon("audit", "key").returncode == 0


CHANGED = [
    # what is done to three lines; what is told
    (lambda x: [x[0], "{", x[2]], ", line 2: is no witness"),
    (lambda x: [x[0], changed(x[1], more=1), x[2]], ", line 2: is no witness"),
    (lambda x: [x[0], changed(x[1], position=9), x[2]], ", line 2: its signature is not for"),
    (lambda x: [x[0], changed(x[1], signature="00"), x[2]], ", line 2: its signature is not for"),
    (lambda x: [x[0], x[2]], ", line 2: is witness 3, and witness 2 belongs there"),
    (lambda x: x[1:], ", line 1: is witness 2, and witness 1 belongs there"),
    (lambda x: x[:2], ": ends with witness 2, and 3 were made: lines were removed"),
    (lambda x: [*x, x[1]], ", line 4: witness 2 is there already"),
    (lambda x: [x[1], x[0], x[2]], ", line 1: is witness 2, and witness 1 belongs there"),
]


@pytest.mark.long
def test_every_change_of_a_place_is_told_with_its_line(
    recon: Recon, workspace: Workspace, book: Book
) -> None:
    witnessed(recon, workspace, "first", "second", "third")
    lines = book.lines
    for change, told in CHANGED:
        book.write(change(lines))
        assert f"{book.path}{told}" in "\n".join(verified(recon)["faults"])


def test_signatures_of_another_key_count_for_nothing(
    recon: Recon, workspace: Workspace, book: Book, monkeypatch: pytest.MonkeyPatch
) -> None:
    witnessed(recon, workspace, "first")
    other_key(book, recon, workspace, monkeypatch)
    proof = verified(recon)
    assert f"{book.path}, line 1: is signed with another key" in proof["faults"][0]
    assert proof["unchecked"] == ["there is no witness that holds: nothing was checked against any"]


@pytest.mark.long
def test_what_cannot_be_checked_is_said(
    recon: Recon, workspace: Workspace, book: Book, monkeypatch: pytest.MonkeyPatch
) -> None:
    witnessed(recon, workspace, "first")
    write(workspace, "second")
    proof = verified(recon)
    assert (proof["holds"], proof["notes"]) == (
        True,
        ["1 event after the last witness is proven by its chain alone"],
    )
    with monkeypatch.context() as patch:
        patch.setenv("RECON_AUDIT_PUBLIC_KEY", str(book.path.with_name("none.pem")))
        (told,) = verified(recon)["unchecked"]
        assert told.startswith("no signature could be checked. The public key ")
    book.path.rename(book.path.with_name("elsewhere"))
    (told,) = verified(recon)["unchecked"]
    assert told == f"{book.path} cannot be read: No such file or directory"


@pytest.mark.parametrize("left", ["both", "counts", "witnesses"])
def test_a_home_that_has_made_witnesses_misses_the_setting(
    recon: Recon, workspace: Workspace, book: Book, monkeypatch: pytest.MonkeyPatch, left: str
) -> None:
    """A terminal, a desk or a worker that is started without it makes none, and says so."""
    witnessed(recon, workspace, "first", "second")
    monkeypatch.delenv("RECON_AUDIT_WITNESS")
    made = kept(workspace).path
    for one, name in ((made, "witnesses"), (made.with_name("given.json"), "counts")):
        if left not in ("both", name):
            one.unlink()
    lost = "RECON_AUDIT_WITNESS is not set, and this RECON_HOME has made witnesses: "
    proof = verified(recon)
    assert [told.startswith(lost) for told in proof["unchecked"]][:1] == [True]
    assert any("no witness, and gave 2 away" in told for told in proof["faults"]) == (
        left == "counts"
    )
    reconcile(workspace, found(), verdict="RECONCILED")
    signed = recon("sign", "prepare", "--by", "Ann")
    assert (signed.returncode, lost in " ".join(signed.stderr.split())) == (0, True)
    if left != "counts":
        rewrite(workspace, "UPDATE event SET by = 'Mallory' WHERE what = 'second'")
        assert any("link 2 is not what was witnessed" in told for told in verified(recon)["faults"])


@pytest.mark.long
def test_where_none_was_ever_made_nobody_witnesses(
    recon: Recon, workspace: Workspace, book: Book, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("RECON_AUDIT_WITNESS")
    write(workspace, "first")
    proof = verified(recon)
    assert proof["holds"]
    assert "nobody witnesses this trail" in proof["notes"][0]


def test_a_public_key_and_a_copy_are_enough_for_an_auditor(
    recon: Recon,
    workspace: Workspace,
    book: Book,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    witnessed(recon, workspace, "first", "second")
    copy = shutil.copy(book.path, tmp_path / "copy")
    key = shutil.copy(tmp_path / "keys" / "key.pub.pem", tmp_path / "given.pem")
    monkeypatch.delenv("RECON_AUDIT_WITNESS")
    monkeypatch.setenv("RECON_HOME", str(tmp_path / "auditor"))
    monkeypatch.setenv("RECON_AUDIT_KEY", str(tmp_path / "none.pem"))
    monkeypatch.setenv("RECON_AUDIT_PUBLIC_KEY", str(key))
    proof = verified(recon, "--witness", str(copy))
    assert (proof["holds"], proof["witnesses"]) == (True, 2)


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is not here")
def test_openssl_verifies_a_witness_as_the_documentation_says(
    recon: Recon, workspace: Workspace, book: Book, tmp_path: Path
) -> None:
    witnessed(recon, workspace, "first", "second")
    told = json.loads(book.lines[1])
    names = ("number", "position", "hash", "time", "trail", "key", "previous")
    text = "".join([f"{HEADING}\n", *(f"{name} {told[name]}\n" for name in names)])
    (tmp_path / "text").write_text(text)
    (tmp_path / "signature").write_bytes(bytes.fromhex(told["signature"]))
    public = tmp_path / "keys" / "key.pub.pem"

    def verifies() -> bool:
        ran = subprocess.run(
            ["openssl", "pkeyutl", "-verify", "-pubin", "-inkey", public, "-rawin",
             "-in", tmp_path / "text", "-sigfile", tmp_path / "signature"],
            capture_output=True, check=False,
        )  # fmt: skip
        return ran.returncode == 0

    assert verifies()
    (tmp_path / "text").write_text(text.replace("position 2", "position 3"))
    assert not verifies()


@pytest.mark.long
@pytest.mark.skipif(
    not all(map(shutil.which, ("openssl", "jq", "xxd", "sha256sum"))), reason="a tool is not here"
)
def test_the_commands_of_the_documentation_verify_a_witness(
    recon: Recon, workspace: Workspace, book: Book, tmp_path: Path
) -> None:
    witnessed(recon, workspace, "first", "second", "third")
    page = (Path(__file__).parents[2] / "docs" / "governance.md").read_text()
    (block,) = re.findall(r"```sh\n(sed -n 7p .*?)```", page, re.DOTALL)
    shutil.copy(book.path, tmp_path / "recon.witnesses")
    shutil.copy(tmp_path / "keys" / "key.pub.pem", tmp_path / "for-the-auditor.pem")
    ran = subprocess.run(
        ["sh", "-e", "-c", block.replace("7p", "2p")],
        cwd=tmp_path, capture_output=True, text=True, check=True,
    )  # fmt: skip
    _, key, previous = (line.split()[0] for line in ran.stdout.splitlines()[-3:])
    assert key == json.loads(book.lines[1])["key"]
    assert previous == json.loads(book.lines[2])["previous"]


@dataclass
class Hook:
    """A webhook on a real socket."""

    url: str
    bodies: list[str] = field(default_factory=list)
    status: int = 200
    meanwhile: Callable[[], object] | None = None
    """What happens, once, while it is asked."""


@contextmanager
def hook() -> Iterator[Hook]:
    class Answer(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            if told.status == 200:
                told.bodies.append(body)
            if (act := told.meanwhile) is not None:
                told.meanwhile = None
                act()
            self.send_response(told.status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Answer) as server:
        told = Hook(f"http://127.0.0.1:{server.server_port}/hook?token=secret")
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield told
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.long
def test_what_a_webhook_did_not_take_waits_and_is_given_in_order(
    recon: Recon, workspace: Workspace, book: Book, monkeypatch: pytest.MonkeyPatch
) -> None:
    with hook() as there:
        monkeypatch.setenv("RECON_AUDIT_WITNESS", f"{book.path}, {there.url}")
        witnessed(recon, workspace, "first")
        assert there.bodies == book.lines
        there.status = 503
        for name in ("second", "third"):
            write(workspace, name)
            ran = recon("audit", "witness")
            assert ran.returncode == 1
        assert "answered 503; 2 wait for it" in ran.stdout
        assert "secret" not in ran.stdout + ran.stderr
        proof = verified(recon)
        assert "answered 503; 2 wait for it" in proof["unchecked"][0]
        assert "is a webhook, which cannot be read back" in proof["notes"][0]
        assert not any("RECON_HOME alone" in note for note in proof["notes"])
        there.status = 200
        assert verified(recon)["holds"]
        assert there.bodies == book.lines
        assert len(book.lines) == 3


def test_who_signs_while_the_first_signature_is_witnessed_stands_beside_the_report_as_well(
    recon: Recon, workspace: Workspace, book: Book, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = reconcile(workspace, found(), verdict="RECONCILED")
    with hook() as there:
        monkeypatch.setenv("RECON_AUDIT_WITNESS", there.url)
        there.meanwhile = lambda: approve(workspace, run.id, by="Bo", comment="")
        assert recon("sign", "prepare", "--by", "Ann").returncode == 0
    with workspace.database.connect() as connection:
        assert [*signatures_of(connection, run.id)] == [*Role]
        assert altered_signatures(workspace, connection, run) is None


def test_where_only_webhooks_are_set_it_is_said_what_nobody_here_can_tell(
    recon: Recon, workspace: Workspace, book: Book, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A home that a backup brought back gives a number twice, which its receiver alone sees."""
    with hook() as there:
        monkeypatch.setenv("RECON_AUDIT_WITNESS", there.url)
        witnessed(recon, workspace, "first")
        proof = verified(recon)
        assert proof["holds"]
        assert any("the copy in RECON_HOME alone" in note for note in proof["notes"])
        there.status = 409
        write(workspace, "second")
        ran = recon("audit", "witness")
        assert ran.returncode == 1
        assert "says that it has another witness 2: another RECON_HOME gives there" in ran.stdout
        assert "1 wait for it" in ran.stdout


@pytest.mark.long
def test_a_webhook_that_drips_is_not_waited_for(
    recon: Recon, workspace: Workspace, book: Book, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each read is quick, and the answer never comes to an end."""
    monkeypatch.setattr(places, "POST_SECONDS", 0.3)
    given_up = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def drip() -> None:
            there, _ = listening.accept()
            with there:
                there.sendall(b"HTTP/1.1 200 OK\r\n")
                while not given_up.wait(0.05):
                    there.sendall(b"X-More: 1\r\n")

        thread = threading.Thread(target=drip)
        thread.start()
        url = f"http://127.0.0.1:{listening.getsockname()[1]}/"
        monkeypatch.setenv("RECON_AUDIT_WITNESS", url)
        write(workspace, "first")
        ran = recon("audit", "witness")
        given_up.set()
        thread.join()
    assert (ran.returncode, "no answer within 0.3 s; 1 wait for it" in ran.stdout) == (1, True)


@pytest.mark.long
def test_the_end_of_each_batch_is_witnessed(
    recon: Recon, workspace: Workspace, book: Book, rows: Any
) -> None:
    home = workspace.settings.home
    for number, text in enumerate((line(1), line(2, amount="x")), 1):
        delivered = write_file(home / f"{number}.csv", text)
        ended = recon("import", delivered, *(["--max-errors", "0"] if number == 2 else []))
        assert ended.returncode == number - 1, ended.stderr
    assert recon("discard", "2", "--reason", "wrong").returncode == 0
    assert recon("undo", "1", "--reason", "wrong").returncode == 0
    told = [
        rows("SELECT what FROM event JOIN event_chain c ON c.event_id = event.id "
             "WHERE c.position = %s", [json.loads(one)["position"]])[0][0]
        for one in book.lines
    ]  # fmt: skip
    # A discard and an undo write the report anew, in their own transaction.
    assert told == ["batch complete", "report written", "report written"]
    assert verified(recon)["holds"]


@pytest.mark.long
def test_a_saved_reconciliation_and_a_decision_are_witnessed(
    recon: Recon, workspace: Workspace, book: Book
) -> None:
    delivered = write_file(workspace.settings.home / "1.csv", line(1), line(2, amount="x"))
    assert recon("import", delivered).returncode == 1
    assert recon("reconcile", "--as-of", "2026-07-01").returncode == 1
    assert len(book.lines) == 2
    done = recon("breaks", "assign", "--state", "open", "--owner", "ann", "--reason", "hers")
    assert done.returncode == 0, done.stderr
    assert len(book.lines) == 3
    assert verified(recon)["notes"] == []


def test_an_object_store_has_an_object_for_each_and_overwrites_none(
    recon: Recon, workspace: Workspace, book: Book, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folders = (f"memory://{tmp_path.name}/trail", f"file://{tmp_path}/objects/trail")
    monkeypatch.setenv("RECON_AUDIT_WITNESS", ",".join(folders))
    witnessed(recon, workspace, "first", "second")
    for place in folders:
        files, path = fsspec.core.url_to_fs(place)
        names = sorted(files.ls(path, detail=False))
        assert [json.loads(files.cat_file(name))["number"] for name in names] == [1, 2]
    assert verified(recon)["holds"]
    next_one = min((tmp_path / "objects" / "trail").iterdir())
    next_one.write_text("{}\n")
    assert f"{folders[1]}, {next_one.name}: is no witness" in verified(recon)["faults"][0]


@pytest.mark.long
def test_a_place_that_is_away_fails_no_decision_and_gets_all_of_it_later(
    recon: Recon, workspace: Workspace, book: Book, caplog: pytest.LogCaptureFixture
) -> None:
    reconcile(workspace, found(), verdict="RECONCILED")
    away = book.path.parent.rename(book.path.parent.with_name("away"))
    assert recon("sign", "prepare", "--by", "Ann").returncode == 0
    assert "A witness of the audit trail waits" in caplog.text
    assert "1 wait for it" in verified(recon)["unchecked"][-1]
    away.rename(book.path.parent)
    assert recon("sign", "approve", "--by", "Bo").returncode == 0
    assert [json.loads(line)["number"] for line in book.lines] == [1, 2]
    assert verified(recon)["holds"]


def test_a_missing_key_fails_no_decision_and_is_said(
    recon: Recon, workspace: Workspace, book: Book, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    shutil.rmtree(tmp_path / "keys")
    reconcile(workspace, found(), verdict="RECONCILED")
    assert recon("sign", "prepare", "--by", "Ann").returncode == 0
    assert "There is no key to sign witnesses with" in caplog.text
    assert "no signature could be checked" in verified(recon)["unchecked"][0]


@pytest.mark.long
def test_a_line_that_a_crash_cut_off_is_completed(
    recon: Recon, workspace: Workspace, book: Book
) -> None:
    witnessed(recon, workspace, "first", "second")
    whole = book.path.read_bytes()
    counts = workspace.settings.home / "witness" / "given.json"
    counts.write_text(json.dumps(dict.fromkeys(json.loads(counts.read_text()), 1)))
    for cut in (whole.index(b"\n") + 1, whole.index(b"\n") + 20, len(whole) - 1, len(whole)):
        book.path.write_bytes(whole[:cut])
        counts.write_text(json.dumps(dict.fromkeys(json.loads(counts.read_text()), 1)))
        assert recon("audit", "witness").returncode == 0
        assert book.path.read_bytes() == whole


@pytest.mark.long
def test_a_new_home_goes_on_from_what_a_place_has(
    recon: Recon, workspace: Workspace, book: Book
) -> None:
    witnessed(recon, workspace, "first", "second")
    shutil.rmtree(workspace.settings.home / "witness")
    witnessed(recon, workspace, "third")
    assert [json.loads(line)["number"] for line in book.lines] == [1, 2, 3]
    assert verified(recon)["holds"]


def test_a_key_is_private_and_never_overwritten(recon: Recon, book: Book, tmp_path: Path) -> None:
    key = tmp_path / "keys" / "key.pem"
    assert key.stat().st_mode & 0o777 == 0o600
    before = key.read_bytes()
    again = recon("audit", "key")
    assert again.stdout == (tmp_path / "keys" / "key.pub.pem").read_text()
    assert key.read_bytes() == before
    key.write_text("something else")
    assert recon("audit", "key").returncode == 2
    assert key.read_text() == "something else"
    key.write_bytes(before)
    key.chmod(0o640)
    told = recon("audit", "key")
    assert (told.returncode, "chmod 600" in told.stderr) == (2, True)
    key.unlink()
    key.mkdir()
    told = recon("audit", "key")
    assert (told.returncode, f"The key {key} cannot be read: Is a dir" in told.stderr) == (2, True)


@pytest.mark.parametrize(
    ("places", "told"),
    [
        (
            "http://example.com/x",
            "everybody on the way to http://example.com reads what is sent; use https",
        ),
        ("https://me:secret@example.com/x", "holds an address with a user or password"),
        ("ftp://example.com/x", "names a place of no known kind"),
        ("https://", "names a place of no known kind"),
    ],
)
def test_a_place_that_is_none_is_refused(places: str, told: str) -> None:
    with pytest.raises(SettingsError, match=told) as refused:
        read_settings({"RECON_AUDIT_WITNESS": f"/var/witnesses,{places}"})
    assert "secret" not in str(refused.value)


@pytest.mark.long
def test_nothing_is_done_where_no_place_is_set(recon: Recon, workspace: Workspace) -> None:
    reconcile(workspace, found(), verdict="RECONCILED")
    assert recon("sign", "prepare", "--by", "Ann").returncode == 0
    assert not (workspace.settings.home / "witness").exists()
    none = recon("audit", "witness")
    assert (none.returncode, "No place is set" in none.stderr) == (2, True)


def test_whoever_gets_a_role_is_witnessed_before_they_use_it(
    recon: Recon, workspace: Workspace, book: Book, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise the owner could make an approver, let them sign, and take the role back unseen."""

    def typed(*words: str) -> str:
        """What the last witnessed event says after a command; the password is asked for."""
        monkeypatch.setattr("sys.stdin", io.StringIO(f"{PASSWORD}\n{PASSWORD}\n"))
        assert recon("user", *words).returncode == 0
        position = json.loads(book.lines[-1])["position"]
        with workspace.database.connect() as connection:
            (said,) = connection.execute(
                "SELECT e.what || ': ' || (e.detail::json ->> 'roles') FROM event e "
                "JOIN event_chain c ON c.event_id = e.id WHERE c.position = %s "
                "UNION ALL SELECT what FROM event WHERE what = 'acceptance limit set'",
                [position],
            ).fetchall()[-1]
        return str(said)

    assert typed("add", "bo", "--full-name", "Bo Osei") == "password set: viewer"
    assert typed("change", "bo", "--role", "approver") == "account changed: approver"
    assert typed("disable", "bo") == "account changed: approver"
    assert typed("password", "bo") == "password set: approver"
    assert typed("limit", "--above", "10") == "acceptance limit set"
    assert len(book.lines) == 5
    assert verified(recon)["holds"] is True
