"""A record kind from a TOML file that names an operation: sent, told apart, taken back."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from flows.stages.workspace import Workspace
from schemas.own_tables import MOST_KEY, read_own_tables
from schemas.tables import DOCUMENTED
from tests.push.conftest import USER
from tests.records.test_own_kinds import RECONCILE, REFERENCE, REFUND, TOP, Run, define, write
from tests.records.test_own_kinds import run as run  # noqa: PLC0414 -- the fixture.
from tests.stages.payments import HEADER, line
from tests.stages.payments import write as write_payments

PUT = '\n[operation]\nname = "EditRefund"\nmethod = "PUT"\npath = "/refunds/{Id}"\n'
POST = '\n[operation]\nname = "AddRefund"\nmethod = "POST"\npath = "/refunds"\n'
ROWS = (
    "1,7,1,10.50,1,2026-01-05T10:00:00Z,broken",
    "2,7,1,20.00,1,2026-01-05T11:00:00Z,",
    '3,7,1,0.10,1,2026-01-05T12:00:00+02:00,"a ""quoted"" {word}, and ü"',
)
THERE = 'SELECT "Id", "Amount"::text, coalesce("Reason", \'-\') FROM sandbox.refund ORDER BY 1, 2'
CHANGED = "2,7,1,21.00,1,2026-01-06T11:00:00Z,more"


@contextmanager
def serving(workspace: Workspace, folder: Path) -> Iterator[dict[str, str]]:
    """The sandbox, by the definitions of a folder; gives what the settings of a push are."""
    ours = {
        "RECON_DATABASE_URL": str(workspace.settings.database_url),
        "RECON_HOME": str(workspace.settings.home),
        "RECON_RECORDS": str(folder),
    }
    command = [sys.executable, "-m", "flows", "sandbox", "--users", "-"]
    with subprocess.Popen(
        command,
        env=os.environ | ours,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(f"{USER.name}:{USER.password}:Client\n")
            process.stdin.close()
            url = process.stdout.readline().split()[4].rstrip(".")
            login = {"RECON_SERVICE_USER": USER.name, "RECON_SERVICE_PASSWORD": USER.password}
            yield {"RECON_SERVICE_URL": url} | login
        finally:
            process.terminate()


@pytest.mark.long
@pytest.mark.parametrize("operation", [PUT, POST])
def test_a_refund_is_sent_and_reconciled(
    run: Run, workspace: Workspace, rows: Any, tmp_path: Path, operation: str
) -> None:
    define(tmp_path, REFUND + operation)
    paid = write_payments(tmp_path / "payments.csv", line(1))
    with serving(workspace, tmp_path / "records") as service:
        done = run("import", write(tmp_path, *ROWS), str(paid), "--push", **service)
        assert done.returncode == 0, done.stderr
        assert rows(THERE) == [
            (1, "10.5", "broken"),
            (2, "20.0", "-"),
            (3, "0.1", 'a "quoted" {word}, and ü'),
        ]
        done = run("import", write(tmp_path, CHANGED, name="b.csv"), "--push", **service)
        assert done.returncode == 0, done.stderr
        there = [one[0] for one in rows(THERE)]
        assert there == ([1, 2, 3] if operation == PUT else [1, 2, 2, 3])
        assert "Refund: 4\n    MATCHED_EXACT                  3" in run(*RECONCILE).stdout
        undone = run("undo", "2", "--reason", "wrong file", **service)
        assert undone.returncode == 0, undone.stderr
        # The record is as it was before: what a PUT had replaced there is to be put back.
        told = run(*RECONCILE).stdout
        assert ("NOT_SENT                       1" in told) == (operation == PUT), told
        assert run("push", **service).returncode == 0
        posted = [(2, "21.0", "more")] if operation == POST else []
        assert rows(THERE)[1:-1] == [(2, "20.0", "-"), *posted]
        assert "NOT_SENT" not in run(*RECONCILE).stdout
    name = "AddRefund" if operation == POST else "EditRefund"
    told = rows("SELECT DISTINCT operation FROM send ORDER BY 1")
    assert told == sorted([(name,), ("EditPayment",)])


FAULTY: list[tuple[str, str]] = [
    ('name = "EditPayment"', "operation.name = 'EditPayment' is that of payment. Find another."),
    ('name = "authenticate"', "operation.name = 'authenticate' is no name."),
    ('name = "Authenticate"', "operation.name = 'Authenticate' is that of the service."),
    ('name = "edit"', "operation.name = 'edit' is no name."),
    ('method = "GET"', "operation.method = 'GET' is none."),
    ('method = "POST"', "operation.path has {Id}: a POST adds a record, and names none."),
    ('path = "/payments/{Id}"', "operation.path = '/payments/{Id}' is that of payment."),
    ('path = "/PAYMENTS/{PaymentsId}"', "has {PaymentsId}, which is no field of the key."),
    ('path = "/refunds"', "operation.path lacks {Id}: a PUT replaces the record"),
    ('path = "/refunds/{Number}"', "operation.path has {Number}, which is no field of the key."),
    ('path = "/refunds/{Id}/of/{Id}"', "operation.path has {Id} more than once."),
    ('path = "refunds/{Id}"', "operation.path = 'refunds/{Id}' is no path."),
    ('path = "/refunds/{Id}?a=b"', "is no path."),
    ('path = "/../{Id}"', "is no path."),
    (
        f'path = "/{"r" * 41}/{{Id}}"',
        "up to 40 parts, each with up to 40 letters, digits, _ and -.",
    ),
    ('path = "/json/reply/{Id}"', "is one of the framework's own."),
    ("path = 7", "operation.path = 7 is none. Write a path in quotes."),
    ('roles = ["Admin"]', "operation.roles is not a key."),
]


@pytest.mark.parametrize(("key", "said"), FAULTY, ids=[key for key, _ in FAULTY])
def test_an_operation_that_cannot_be_is_refused(key: str, said: str, tmp_path: Path) -> None:
    name = key.partition(" ")[0]
    given = [one for one in PUT.splitlines() if not one.startswith(name)]
    lines = [*REFUND.splitlines(), *given, key]
    (tmp_path / "refund.toml").write_text("\n".join(lines))
    first, *more = (read_own_tables(tmp_path, DOCUMENTED).fault or "").splitlines()
    assert said in first
    at = len(lines) if f"operation.{name}" in first else lines.index('path = "/refunds/{Id}"') + 1
    assert f"refund.toml, line {at}: " in first
    assert not more or "PaymentsId" in key or "Number" in key


@pytest.mark.parametrize("key", ["[]", '["id"]', '["Id", "Id"]', '"Id"'])
def test_a_key_with_a_fault_says_nothing_about_a_path(key: str, tmp_path: Path) -> None:
    text = REFUND.replace('key = ["Id", "TenantsId"]', f"key = {key}") + PUT
    (tmp_path / "refund.toml").write_text(text)
    (fault,) = (read_own_tables(tmp_path, DOCUMENTED).fault or "").splitlines()
    assert "line 4: key " in fault


def test_a_field_that_every_answer_has_is_refused_where_there_are_answers(tmp_path: Path) -> None:
    """It would make each answer unreadable; without an operation it is a field like others."""
    field = '\n[fields.Responsestatus]\ntype = "string"\n'
    (tmp_path / "refund.toml").write_text(REFUND + field)
    assert read_own_tables(tmp_path, DOCUMENTED).fault is None
    (tmp_path / "refund.toml").write_text(REFUND + field + PUT)
    fault = read_own_tables(tmp_path, DOCUMENTED).fault or ""
    at = (REFUND + field).splitlines().index("[fields.Responsestatus]") + 1
    assert f"line {at}: fields.Responsestatus is where the service's answer says" in fault


def test_a_path_has_as_many_fields_as_a_key(tmp_path: Path) -> None:
    names = [f"Part{number}" for number in range(MOST_KEY)]
    fields = "".join(f'[fields.{one}]\ntype = "integer"\nrequired = true\n' for one in names)
    path = "/parts" + "".join(f"/{{{one}}}" for one in names)
    operation = f'[operation]\nname = "EditPart"\nmethod = "PUT"\npath = "{path}"\n'
    top = f'name = "part"\nkey = {json.dumps(names)}\n'
    (tmp_path / "part.toml").write_text(top + fields + operation)
    assert read_own_tables(tmp_path, DOCUMENTED).fault is None


@pytest.mark.long
def test_what_is_listed_at_a_path_is_still_described_there(tmp_path: Path) -> None:
    (tmp_path / "refund.toml").write_text(REFUND + POST.replace("/refunds", "/avatars"))
    said = (
        "from connectors.sandbox import SandboxOptions; "
        "from connectors.sandbox.description import Description; "
        "print(*Description(SandboxOptions()).document()['paths']['/avatars'])"
    )
    done = subprocess.run(
        [sys.executable, "-c", said],
        env=os.environ | {"RECON_RECORDS": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == ["get", "post"]


@pytest.mark.long
def test_a_name_of_an_operation_takes_the_place_of_no_other_schema(tmp_path: Path) -> None:
    """`EditRefund` with its answer, and operations that are called as others' schemas and calls."""
    taken = ("Error", "EditPaymentResponse", "ResponseStatus", "EditRefundResponse", "BatchAddFee")
    for number, name in enumerate(("EditRefund", "AddFee", "ApiEditPayment", *taken)):
        kind = REFUND.replace('"refund"', f'"kind{number}"').replace('"Refund"', f'"Kind {number}"')
        kind += POST.replace("AddRefund", name).replace("/refunds", f"/kinds/{number}")
        (tmp_path / f"kind{number}.toml").write_text(kind)
    said = (
        "import json; from connectors.sandbox import SandboxOptions; "
        "from connectors.sandbox.description import Description; "
        "print(json.dumps(Description(SandboxOptions()).document()))"
    )
    documents = [
        json.loads(
            subprocess.run(
                [sys.executable, "-c", said],
                env=os.environ | {"RECON_RECORDS": str(folder)},
                capture_output=True,
                text=True,
                check=True,
            ).stdout
        )
        for folder in (tmp_path / "records", tmp_path)
        if not folder.mkdir(exist_ok=True)
    ]
    alone, beside = (one["components"]["schemas"] for one in documents)
    assert {name: beside[name] for name in alone} == alone
    for path, calls in documents[0]["paths"].items():
        assert documents[1]["paths"][path] == calls
    told = documents[1]["paths"]
    names = [call["operationId"] for calls in told.values() for call in calls.values()]
    assert len({*names}) == len(names)
    for path in [f"/kinds/{number}" for number in range(8)]:
        call = told[path]["post"]
        of = f"Kind {path[-1]}"
        sent = call["requestBody"]["content"]["application/json"]["schema"]["$ref"]
        assert beside[sent.rpartition("/")[2]]["title"] == of
        got = call["responses"]["200"]["content"]["application/json"]["schema"]["$ref"]
        answer = beside[got.rpartition("/")[2]]
        assert answer["title"] == of
        assert "ResponseStatus" in answer["properties"]


@pytest.mark.long
def test_the_form_of_a_decision_has_operations_of_ones_own(tmp_path: Path) -> None:
    (tmp_path / "refund.toml").write_text(REFUND + PUT)
    said = (
        "from flows.resolve import resolve; "
        "(form, none) = resolve.parameters.properties['operation']['anyOf']; "
        "given = {'batch_id': 1, 'decision': 'resend', 'reason': 'r', 'by': 'o'}; "
        "resolve.validate_parameters(given | {'operation': 'EditRefund'}); "
        "print(form['type'], *form['enum'], none['type'])"
    )
    done = subprocess.run(
        [sys.executable, "-c", said],
        env=os.environ | {"RECON_RECORDS": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    names = ["AddActionDocument", "EditRefund"]
    assert done.stdout.split()[-3:] == [*names, "null"]


def test_two_kinds_have_no_operation_in_common(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text(REFUND + PUT)
    other = REFUND.replace('"refund"', '"reversal"').replace('"Refund"', '"Reversal"')
    for key, of_b in (
        ("name", PUT.replace("EditRefund", "EditREFUND").replace("refunds", "reversals")),
        ("path", PUT.replace("EditRefund", "EditReversal").replace("refunds", "Refunds")),
    ):
        (tmp_path / "b.toml").write_text(other + of_b)
        fault = read_own_tables(tmp_path, DOCUMENTED).fault or ""
        assert f"operation.{key} = " in fault
        assert fault.endswith("is that of refund. Find another.")


@pytest.mark.long
def test_what_was_sent_by_an_operation_stays_so(
    run: Run, workspace: Workspace, rows: Any, tmp_path: Path
) -> None:
    """Else rows of a batch that has ended would be unsent, or sent by what there is no more."""

    def applied(text: str, said: str = "") -> None:
        define(tmp_path, text)
        done = run("records", "apply")
        assert (done.returncode, said in done.stderr) == (2 if said else 0, True), done.stderr

    # What the sandbox made of a definition that there is no more, it makes anew.
    applied(REFUND.replace('Reason]\ntype = "string"', 'Reason]\ntype = "double"') + POST)
    with serving(workspace, tmp_path / "records") as service:
        assert rows(THERE.replace("'-'", "0")) == []
        applied(REFUND)
        # Of one file, payments are sent; refunds are not.
        inner = [
            json.dumps(dict(zip(top.split(","), row.split(","), strict=True)))
            for top, row in ((HEADER, line(1)), (TOP, ROWS[0]))
        ]
        data = ['"{}",false'.format(one.replace('"', '""')) for one in inner]
        early = write(tmp_path, *data, top="Jsondata,HasError", name="early.csv")
        done = run("import", early, "--record", "insert_batch_data", "--push", **service)
        assert done.returncode == 0, done.stderr
        assert "EditPayment: 1 acknowledged" in done.stdout
    applied(
        REFUND + PUT, "batch 1, which has rows of the kind, goes to the service. Bring the former"
    )
    applied(REFUND)
    assert run("undo", "1", "--reason", "before the operation").returncode == 0
    # What is only planned, at a service where nobody listens, was not sent.
    applied(REFUND + POST)
    nowhere = {"RECON_SERVICE_URL": "http://127.0.0.1:9", "RECON_SERVICE_ATTEMPTS": "1"}
    assert run("import", write(tmp_path, *ROWS), "--push", **nowhere).returncode == 2
    assert rows("SELECT DISTINCT state FROM send WHERE batch_id = 2") == [("unsent",)]
    applied(
        REFUND + PUT, "batch 2, which has rows of the kind, goes to the service. Bring the former"
    )
    applied(REFUND + POST)
    assert run("undo", "2", "--reason", "of another operation").returncode == 0
    applied(REFUND + PUT)
    assert run("sends", "2").returncode == 0
    assert run("import", write(tmp_path, *ROWS)).returncode == 0
    # Rows are there, and none is on its way to a service: all may be said of where they go.
    for one in (REFUND + POST, REFUND, REFUND + PUT):
        applied(one)
    with serving(workspace, tmp_path / "records") as service:
        done = run("push", "3", **service)
        assert done.returncode == 0, done.stderr
    assert rows(THERE)[0] == (1, "10.5", "broken")
    applied(REFUND, "it was sent by EditRefund, PUT /refunds/{Id}; what was sent of batch 3 is")
    assert run("undo", "3", "--reason", "x").returncode == 2  # By no definition but that one.
    applied(REFUND + POST, "is kept by the former definition. Bring that back")
    applied(REFUND + PUT.replace("/refunds/", "/v2/refunds/"))
    exported = run("records", "export", str(tmp_path / "out"))
    assert exported.returncode == 0, exported.stderr
    (there,) = read_own_tables(tmp_path / "out", DOCUMENTED).tables.values()
    assert there.endpoint is not None
    assert there.endpoint.path == "/v2/refunds/{Id}"
    told = rows("SELECT detail FROM event WHERE what = 'record kind changed' ORDER BY id")
    assert json.loads(told[-1][0])["changes"] == ["it was sent by EditRefund, PUT /refunds/{Id}"]
    shown = run("fields", "refund")
    assert "it is sent by EditRefund: `PUT /v2/refunds/{Id}`" in shown.stdout
    sent = run("sends", "3").stdout
    assert '"RefundedAt":"2026-01-05T10:00:00+00:00","Reason":"broken"' in sent
    # Another order of the fields is another body, and the same effect: by the key it had.
    reason = REFUND[REFUND.index("[fields.Reason]") : REFUND.index(REFERENCE)]
    at = REFUND.index("[fields.RefundedAt]")
    moved = REFUND[:at] + reason + REFUND[at:].replace(reason, "")
    applied(moved + PUT.replace("/refunds/", "/v2/refunds/"))
    sent_so = run("sends", "3").stdout
    assert '"Reason":"broken","RefundedAt":"2026-01-05T10:00:00+00:00"' in sent_so
    keys = [[one for one in told.splitlines() if "push key" in one] for told in (sent, sent_so)]
    assert keys[0] == keys[1]
    assert len(keys[0]) == 3
