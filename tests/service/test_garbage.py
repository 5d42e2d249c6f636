"""Whatever bytes an answer holds, it is judged; and no part of an answer passes for all of it."""

import json
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from connectors.service import Verdict
from connectors.service.classify import Classifier
from connectors.service.connection import Reply
from connectors.service.encoding import CSV, JSON, body, read_record
from schemas.operations import Operation
from tests.examples import examples
from tests.service.outbox import WRITES, request

JUDGE = Classifier(ZoneInfo("America/New_York"), ("p@ss",))
OPERATIONS = pytest.mark.parametrize("operation", WRITES, ids=lambda operation: operation.name)
KINDS = pytest.mark.parametrize("kind", [CSV, JSON])
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=5)
    | st.sampled_from(
        ["/Date(999999999999999)/", "9" * 5000, "2026-01-02", "[a,", "{", "--5", "٣"]
    ),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=5,
)


def reply(content: bytes, kind: str, code: int = 200, proof: str = "said") -> Reply:
    return Reply(code, {"content-type": kind}, content, proof)


def echo(operation: Operation, kind: str) -> bytes:
    """The body of an answer that shows the first record."""
    made = request(operation, 1)
    sent = body(
        kind, operation.table, [(read_record(made.jsondata), made.jsondata)], UTC, many=False
    )
    if operation.name == "ClientRegister":
        return _with_key(sent, kind)
    if operation.response_name is None:
        return sent
    told = json.loads(made.jsondata)
    shown = {name: told[name] for name in ("Comments", "CampaignActionFiles")}
    results = {"Id": 7, "CampaignActionsId": 3, "ActionTimestamp": "2026-01-02"}
    results |= {"FormMetaResponses": shown}
    return json.dumps({"CampaignActionsFormResponses": results}).encode()


def _with_key(sent: bytes, kind: str) -> bytes:
    """The record of an answer that has a key, which was not sent."""
    if kind == JSON:
        return b'{"Id":7,' + sent[1:]
    header, row, end = sent.split(b"\r\n")
    return b"\r\n".join((b"Id," + header, b"7," + row, end))


UTC = ZoneInfo("UTC")


@KINDS
@OPERATIONS
def test_no_part_is_taken_for_the_whole(operation: Operation, kind: str) -> None:
    made = request(operation, 1)
    whole = echo(operation, kind)
    kind = JSON if operation.response_name else kind
    sent = read_record(made.jsondata)
    assert JUDGE.single(made, sent, reply(whole, kind)).verdict is Verdict.ACKNOWLEDGED
    for proof in ("said", ""):
        for end in range(len(whole)):
            judged = JUDGE.single(made, sent, reply(whole[:end], kind, proof=proof))
            assert judged.verdict is None, whole[:end]
            assert judged.in_doubt


@pytest.mark.parametrize("depth", [31, 32, 600])
def test_json_that_is_deeper_than_any_record(depth: int) -> None:
    """What decodes and is too deep for a walk over it ended the run, and every run after it."""
    made = request("EditPayment", 1)
    wrong = json.loads(echo(made.operation, JSON)) | {"PaidAmount": 99.0}
    deep = json.dumps(wrong)[:-1] + ', "Extra": ' + "[" * depth + "]" * depth + "}"
    judged = JUDGE.single(made, read_record(made.jsondata), reply(deep.encode(), JSON))
    assert judged.verdict is (Verdict.DIFFERS if depth < 32 else None)
    assert judged.in_doubt is (depth >= 32)


@KINDS
@OPERATIONS
@settings(max_examples=examples(60), deadline=None, derandomize=True)
@given(data=st.data())
def test_torn_bytes(operation: Operation, kind: str, data: st.DataObject) -> None:
    made = request(operation, 1)
    whole = echo(operation, kind)
    place = data.draw(st.integers(0, len(whole)))
    length = data.draw(st.integers(0, 4))
    torn = whole[:place] + data.draw(st.binary(max_size=4)) + whole[place + length :]
    code = data.draw(st.sampled_from([200, 201, 204, 302, 400, 404, 409, 500]))
    answer = reply(torn, kind, code)
    judged = JUDGE.single(made, read_record(made.jsondata), answer)
    assert code < 300 or judged.verdict in (None, Verdict.REFUSED)
    assert len(JUDGE.batch([(made, read_record(made.jsondata))] * 3, answer)) == 3


@OPERATIONS
@settings(max_examples=examples(80), deadline=None, derandomize=True)
@given(data=st.data())
def test_any_json(operation: Operation, data: st.DataObject) -> None:
    """Values of every shape in the place of every field, of the status and of the whole."""
    made = request(operation, 1)
    fields = [field.name for field in operation.table] + ["Id", "CampaignActionsFormResponses"]
    tree: Any = data.draw(
        st.dictionaries(st.sampled_from([*fields, "ResponseStatus", "FormMetaResponses"]), VALUES)
        | VALUES
    )
    code = data.draw(st.sampled_from([200, 400, 500]))
    JUDGE.single(made, read_record(made.jsondata), reply(json.dumps(tree).encode(), JSON, code))


@OPERATIONS
@settings(max_examples=examples(80), deadline=None, derandomize=True)
@given(data=st.data())
def test_any_csv(operation: Operation, data: st.DataObject) -> None:
    made = request(operation, 1)
    names = [field.name for field in operation.table] + ["ResponseStatus", "Id"]
    header = data.draw(st.lists(st.sampled_from(names), min_size=1, max_size=8))
    cells = st.text(max_size=6) | st.sampled_from(["9" * 5000, "{ErrorCode:X}", "٣", "--5", "1_0"])
    row = data.draw(st.lists(cells, min_size=len(header), max_size=len(header)))
    quoted = ['"' + cell.replace('"', '""') + '"' for cell in row]
    text = f"{','.join(header)}\r\n{','.join(quoted)}\r\n"
    JUDGE.single(made, read_record(made.jsondata), reply(text.encode(), CSV))
