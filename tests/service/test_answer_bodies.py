"""What an answer's body says twice, or in a form that nobody can read, is no success."""

import json
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from connectors.errors import ServiceUnusable
from connectors.service import Verdict
from connectors.service.classify import COMPLETED, ClassifiedResponse, Classifier
from connectors.service.connection import Reply
from connectors.service.encoding import CSV, JSON, read_record
from schemas.operations import Operation
from schemas.tables import AVATAR
from tests.service.faulty_server import FaultyServer, always
from tests.service.faulty_server import Reply as Told
from tests.service.outbox import BY_NAME, client, request
from tests.service.test_garbage import KINDS, OPERATIONS, echo, reply

JUDGE = Classifier(ZoneInfo("UTC"), ())
TONE, FORM = BY_NAME["AddMessageTone"], BY_NAME["SaveCampaignActionClientForm"]
WRAPPER = "CampaignActionsFormResponses"
TONES = "TenantsId,AvatarsId,Name,ResponseStatus\r\n1,2,tone 1,{}\r\n"
AVATARS = ",".join(AVATAR.columns)


def judged(operation: Operation, content: str, kind: str = JSON) -> ClassifiedResponse:
    made = request(operation, 1)
    return JUDGE.single(made, read_record(made.jsondata), reply(content.encode(), kind))


def batch(content: str, kind: str) -> list[ClassifiedResponse]:
    rows = [request(TONE, number) for number in (1, 2)]
    answer = reply(content.encode(), kind)
    return JUDGE.batch([(made, read_record(made.jsondata)) for made in rows], answer)


def listed(content: str, kind: str) -> list[dict[str, Any]]:
    told = Told(headers=(("Content-Type", kind),), body=content)
    with FaultyServer(always(told)) as server, client(server.url) as service:
        return service.listing(BY_NAME["ListAvatars"]).rows


STATUSES = [
    # what is no ResponseStatus, in JSON and in JSV
    ('"failed"', "failed"),
    ('["X"]', "[X]"),
    ('[{"ErrorCode":"X"}]', "[{ErrorCode:X}]"),
    ('{"Errors":"Id is wrong"}', "{Errors:Id is wrong}"),
    ('{"Errors":{"ErrorCode":"NotNull"}}', "{Errors:{ErrorCode:NotNull}}"),
    ('{"Errors":{"0":1}}', "{Errors:{0:1}}"),
    ('{"ErrorCode":{"a":"X"}}', "{ErrorCode:{a:X}}"),
    ('{"ErrorCode":["X"]}', "{ErrorCode:[X]}"),
    ('{"Errors":[{"ErrorCode":["X"]}]}', "{Errors:[{ErrorCode:[X]}]}"),
    ('{"ErrorCode":"X","errorCode":null}', '{ErrorCode:X,errorCode:""}'),
    ('{"Errors":[{"FieldName":"X"}],"errors":[]}', "{Errors:[{FieldName:X}],errors:[]}"),
]
QUIET = [
    # one that tells of nothing
    ("null", ""),
    ("{}", "{}"),
    ('{"Errors":[]}', "{Errors:[]}"),
    ('{"ErrorCode":null,"Errors":null}', '{ErrorCode:""}'),
    ('{"Meta":{"a":"1","A":"2"}}', "{Meta:{a:1,A:2}}"),
]


def cell(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'


def tone(status: str) -> str:
    return f'{{"TenantsId":1,"AvatarsId":2,"Name":"tone 1","ResponseStatus":{status}}}'


def form(status: str) -> str:
    results = json.loads(echo(FORM, JSON))[WRAPPER]
    return f'{{"{WRAPPER}":{json.dumps(results)[:-1]},"ResponseStatus":{status}}}}}'


@pytest.mark.parametrize(("told", "jsv"), STATUSES)
def test_a_status_that_is_none_leaves_the_row_in_doubt(told: str, jsv: str) -> None:
    second = tone(told).replace("tone 1", "tone 2")
    found = [
        judged(TONE, tone(told)),
        judged(TONE, TONES.format(cell(jsv)), CSV),
        judged(FORM, form(told)),
        judged(FORM, f"{WRAPPER},ResponseStatus\r\n{cell('{Id:7}')},{cell(jsv)}\r\n", CSV),
        judged(FORM, f"{WRAPPER}\r\n{cell(f'{{Id:7,ResponseStatus:{jsv}}}')}\r\n", CSV),
        *batch(f"[{tone('null')},{second}]", JSON),
        *batch(f"{TONES.format('')}1,2,tone 2,{cell(jsv)}\r\n", CSV),
    ]
    assert [(one.verdict, one.in_doubt) for one in found] == [(None, True)] * 9


@pytest.mark.parametrize(("told", "jsv"), STATUSES)
def test_a_listing_with_a_status_that_is_none(told: str, jsv: str) -> None:
    for content, kind in (
        (f'[{{"Name":"a"}},{{"Name":"b","ResponseStatus":{told}}}]', JSON),
        (f"{AVATARS},ResponseStatus\r\n1,a,,,,,,{cell(jsv)}\r\n", CSV),
    ):
        with pytest.raises(ServiceUnusable, match=r"answered with an? "):
            listed(content, kind)


@pytest.mark.parametrize(("told", "jsv"), QUIET)
def test_a_status_that_tells_of_nothing(told: str, jsv: str) -> None:
    second = tone(told).replace("tone 1", "tone 2")
    found = [
        judged(TONE, tone(told)),
        judged(TONE, TONES.format(cell(jsv)), CSV),
        judged(FORM, form(told)),
        *batch(f"[{tone(told)},{second}]", JSON),
    ]
    assert {one.verdict for one in found} == {Verdict.ACKNOWLEDGED}


DECODER = json.JSONDecoder()
SPELLINGS = (str, str.lower, str.upper)


@KINDS
@OPERATIONS
def test_a_member_that_is_there_twice_shows_nothing(operation: Operation, kind: str) -> None:
    """Whichever is meant, the other says something else."""
    whole = echo(operation, kind).decode()
    kind = JSON if operation.response_name else kind
    assert judged(operation, whole, kind).verdict is Verdict.ACKNOWLEDGED
    for doubled in doubles(whole, kind):
        found = judged(operation, doubled, kind)
        assert (found.verdict, found.in_doubt) == (None, True), doubled


def doubles(whole: str, kind: str) -> list[str]:
    """The body with one more of each of its members, before or behind it, in any spelling."""
    if kind == CSV:
        header, row, _ = whole.split("\r\n")
        return [
            f"{spelled(name)},{header}\r\n,{row}\r\n"
            for name in header.split(",")
            for spelled in SPELLINGS
        ] + [f"{header},ResponseStatus,responseStatus\r\n{row},{{ErrorCode:X}},\r\n"]
    found = [whole[:-1] + ',"ResponseStatus":{"ErrorCode":"X"},"responseStatus":null}']
    for name in names(json.loads(whole)):
        for spelled in SPELLINGS:
            more = f'"{spelled(name)}":99'
            start = whole.index(f'"{name}":')
            value = start + len(f'"{name}":')
            value += len(whole[value:]) - len(whole[value:].lstrip())
            end = DECODER.raw_decode(whole, value)[1]
            found.append(f"{whole[:start]}{more},{whole[start:]}")
            found.append(f"{whole[:end]},{more}{whole[end:]}")
    return found


def names(tree: Any) -> set[str]:
    """Of the members of all objects."""
    if isinstance(tree, list):
        return {name for element in tree for name in names(element)}
    if isinstance(tree, dict):
        return tree.keys() | {name for member in tree.values() for name in names(member)}
    return set()


@pytest.mark.parametrize("spelled", SPELLINGS)
@pytest.mark.parametrize("name", [*AVATAR.columns, "ResponseStatus"])
def test_a_listing_with_a_member_twice(name: str, spelled: Any) -> None:
    row = "".join(f',"{column}":null' for column in AVATAR.columns)
    told = '{"ErrorCode":"X"}' if name == "ResponseStatus" else "null"
    twice = f'[{{"ResponseStatus":null{row},"{spelled(name)}":{told}}}]'
    for content, kind in (
        (twice, JSON),
        (f"{AVATARS},ResponseStatus,{spelled(name)}\r\n1,a,,,,,,,\r\n", CSV),
    ):
        with pytest.raises(ServiceUnusable, match="twice"):
            listed(content, kind)


def test_the_row_of_a_batch_that_is_named_twice_is_none() -> None:
    meta = {"AutoBatchIndex": "1", "autobatchindex": "0"}
    told = {"ResponseStatus": {"ErrorCode": "X", "Meta": meta}}
    rows = [request(TONE, number) for number in (1, 2)]
    answer = reply(json.dumps(told).encode(), JSON, 400)
    found = JUDGE.batch([(made, read_record(made.jsondata)) for made in rows], answer)
    assert [one.verdict for one in found] == [None, None]


@pytest.mark.parametrize(("told", "jsv"), STATUSES)
def test_a_batch_that_stopped_with_a_status_that_is_none(told: str, jsv: str) -> None:
    """It may be that of a row which the number counts."""
    rows = [request(TONE, number) for number in (1, 2)]
    for content, kind in (
        (f"[{tone(told)},{tone('null')}]", JSON),
        (f"{TONES.format(cell(jsv))}1,2,tone 2,\r\n", CSV),
    ):
        answer = Reply(409, {"content-type": kind, COMPLETED: "1"}, content.encode(), "said")
        found = JUDGE.batch([(made, read_record(made.jsondata)) for made in rows], answer)
        assert [(one.verdict, one.in_doubt) for one in found] == [(None, True)] * 2
