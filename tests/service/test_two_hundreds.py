"""200 is not yet a success: what an answer has to hold to be one."""

import json
from dataclasses import replace
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from connectors.service import Verdict
from connectors.service.classify import Classifier
from connectors.service.decoding import lowered
from connectors.service.echo import differing, shown_record
from connectors.service.encoding import read_record
from schemas.tables import INSERT_BATCH_DATA
from tests.service.faulty_server import CUT, Ending, FaultyServer, Reply, always
from tests.service.outbox import client, codes, record, request, requests
from tests.service.transcripts import recorded_reply

A, R, DIFFERS, D = (
    Verdict.ACKNOWLEDGED,
    Verdict.REFUSED,
    Verdict.DIFFERS,
    Verdict.IN_DOUBT,
)
PAYMENT = {
    "Id": 1,
    "TenantsId": 1,
    "ActionsId": 2,
    "DebtsId": 3,
    "PaymentDate": "2026-01-02T03:04:05+02:00",
    "PaidAmount": 10.5,
    "DiscountAmount": 0,
    "CurrenciesId": 1,
    "CurrencyRatesId": 4,
}
HTML = (("Content-Type", "text/html; charset=utf-8"),)
CSV = (("Content-Type", "text/csv"),)
HEADER = ",".join(PAYMENT)
ROW = "1,1,2,3,2026-01-02T03:04:05.0000000+02:00,10.5,0,1,4"
STATUS = {"ErrorCode": "NotNull", "Message": "no", "StackTrace": "at Secret.Code()"}


def payment(**changed: Any) -> dict[str, Any]:
    return {**PAYMENT, **changed}


def without(name: str) -> dict[str, Any]:
    return {key: value for key, value in PAYMENT.items() if key != name}


TABLE: list[tuple[str, Reply, Verdict, list[tuple[str, str]]]] = [
    # name, answer, verdict, code and field of the errors
    ("the record", Reply(body=PAYMENT), A, []),
    ("the record, 201", Reply(201, body=PAYMENT), A, []),
    ("the record and more", Reply(body=payment(Extra=[1, {"a": None}])), A, []),
    ("small letters", Reply(body={k[0].lower() + k[1:]: v for k, v in PAYMENT.items()}), A, []),
    ("an empty status", Reply(body=payment(ResponseStatus={})), A, []),
    ("a status without errors", Reply(body=payment(ResponseStatus={"Errors": []})), A, []),
    ("a null status", Reply(body=payment(ResponseStatus=None)), A, []),
    ("a timestamp", Reply(body=payment(PaymentDate="/Date(1767323045000+0200)/")), A, []),
    ("seven digits", Reply(body=payment(PaymentDate="2026-01-02T03:04:05.0000000+02:00")), A, []),
    ("the record in CSV", Reply(headers=CSV, body=f"{HEADER}\r\n{ROW}\r\n"), A, []),
    ("CSV behind a BOM", Reply(headers=CSV, body=f"\ufeff{HEADER}\r\n{ROW}\r\n"), A, []),
    ("CSV with a status", Reply(headers=CSV, body=f"{HEADER},ResponseStatus\r\n{ROW},\r\n"), A, []),
    ("chunked", Reply(body=PAYMENT, chunked=True), A, []),
    (
        "whole, up to the end of the connection",
        Reply(
            body=b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n"
            + json.dumps(PAYMENT).encode(),
            ending=Ending.RAW,
        ),
        A,
        [],
    ),
    (
        "an interim answer first",
        Reply(
            body=b"HTTP/1.1 100 Continue\r\n\r\n"
            b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 188\r\n\r\n"
            + json.dumps(PAYMENT).encode().ljust(188),
            ending=Ending.RAW,
        ),
        A,
        [],
    ),
    ("HTML", Reply(headers=HTML, body="<title>Sign in</title>"), D, [("InDoubt", "")]),
    ("empty", Reply(body=b""), D, [("InDoubt", "")]),
    ("no content", Reply(204, body=b""), D, [("InDoubt", "")]),
    ("truncated JSON", Reply(body=b'{"Id":1,"Tenan'), D, [("InDoubt", "")]),
    ("truncated CSV", Reply(headers=CSV, body=f"{HEADER}\r\n{ROW}"), D, [("InDoubt", "")]),
    ("less than said", CUT, D, [("InDoubt", "")]),
    ("header only", Reply(headers=CSV, body=f"{HEADER}\r\n"), D, [("InDoubt", "")]),
    ("ragged", Reply(headers=CSV, body=f"{HEADER}\r\n{ROW},1\r\n"), D, [("InDoubt", "")]),
    ("two rows", Reply(headers=CSV, body=f"{HEADER}\r\n{ROW}\r\n{ROW}\r\n"), D, [
        ("InDoubt", "")]),
    ("an empty object", Reply(body={}), D, [("InDoubt", "")]),
    ("another record", Reply(body={"ok": True}), D, [("InDoubt", "")]),
    ("a list", Reply(body=json.dumps([PAYMENT])), D, [("InDoubt", "")]),
    ("a text", Reply(body=b'"done"'), D, [("InDoubt", "")]),
    ("not UTF-8", Reply(body=b'{"Id":"\xff"}'), D, [("InDoubt", "")]),
    ("bare NaN", Reply(body=json.dumps(payment(PaidAmount=float("nan")))), DIFFERS, [
        ("EchoDiffers", "PaidAmount")]),
    (
        "cut by the end of the connection",
        Reply(
            body=b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n"
            + json.dumps(without("CurrencyRatesId")).encode(),
            ending=Ending.RAW,
        ),
        D,
        [("InDoubt", "")],
    ),
    ("compressed", Reply(headers=(("Content-Encoding", "gzip"),), body=PAYMENT), D, [
        ("InDoubt", "")]),
    ("compressed after all", Reply(headers=(("Content-Encoding", "identity, gzip"),), body=PAYMENT),
     D, [("InDoubt", "")]),
    ("said not to be compressed", Reply(headers=(("Content-Encoding", "Identity"),), body=PAYMENT),
     A, []),
    ("no word on how it is compressed", Reply(headers=(("Content-Encoding", ""),), body=PAYMENT), A,
     []),
    ("its type said twice", Reply(headers=2 * (("Content-Type", "application/json"),),
        body=PAYMENT), A, []),
    ("two types", Reply(headers=(("Content-Type", "application/json"), *CSV), body=PAYMENT), D, [
        ("InDoubt", "")]),
    ("an ErrorCode", Reply(body={"ResponseStatus": STATUS}), R, [("NotNull", "")]),
    ("an ErrorCode beside the record", Reply(body=payment(ResponseStatus=STATUS)), R, [
        ("NotNull", "")]),
    ("field errors beside the record", Reply(body=payment(ResponseStatus={"Errors": [
        {"ErrorCode": "NotNull", "FieldName": "Id"}]})), R, [("NotNull", "Id")]),
    ("a field error without a code", Reply(body=payment(ResponseStatus={"Message": "no", "Errors": [
        {"FieldName": "Name", "Message": "bad"}]})), R, [("Refused", "Name")]),
    ("the same in CSV", Reply(headers=CSV, body=f"{HEADER},ResponseStatus\r\n{ROW},"
        '"{Errors:[{FieldName:Name,Message:bad}]}"\r\n'), R, [("Refused", "Name")]),
    ("a code behind the first error", Reply(body=payment(ResponseStatus={"Errors": [
        {"Message": "bad"}, {"ErrorCode": "X"}]})), R, [("Refused", ""), ("X", "")]),
    ("an error that names nothing", Reply(body=payment(ResponseStatus={"Errors": [
        {"Message": "bad"}]})), D, [("InDoubt", "")]),
    ("errors that are texts", Reply(body=payment(ResponseStatus={"Errors": ["bad"]})), D, [
        ("InDoubt", "")]),
    ("errors that are no list", Reply(body=payment(ResponseStatus={"Errors": {"0": 1}})), D, [
        ("InDoubt", "")]),
    ("a status that is a text", Reply(body=payment(ResponseStatus="failed")), D, [("InDoubt", "")]),
    ("an ErrorCode in small letters", Reply(body={"responseStatus": {"errorCode": "X"}}), R, [
        ("X", "")]),
    ("an ErrorCode in CSV", Reply(headers=CSV, body="ResponseStatus\r\n{ErrorCode:X}\r\n"), R, [
        ("X", "")]),
    ("another amount", Reply(body=payment(PaidAmount=10.51)), DIFFERS, [
        ("EchoDiffers", "PaidAmount")]),
    ("an amount as text", Reply(body=payment(PaidAmount="10,5")), D, [
        ("InDoubt", "")]),
    ("an amount as boolean", Reply(body=payment(DiscountAmount=False)), D, [
        ("InDoubt", "")]),
    ("a zero as null", Reply(body=payment(DiscountAmount=None)), DIFFERS, [
        ("EchoDiffers", "DiscountAmount")]),
    ("a gateway's", Reply(body={"id": "req-7f", "message": "queued for later"}), D, [
        ("InDoubt", "")]),
    ("a name of it alone", Reply(body={"Id": 1, "message": "queued for later"}), D, [
        ("InDoubt", "")]),
    ("another Id", Reply(body=payment(Id=2)), DIFFERS, [("EchoDiffers", "Id")]),
    ("an Id with a fraction", Reply(body=payment(Id=1.0)), D, [("InDoubt", "")]),
    ("a field less", Reply(body=without("CurrencyRatesId")), D, [
        ("InDoubt", "")]),
    ("the instant in another zone", Reply(body=payment(PaymentDate="2026-01-02T01:04:05Z")),
     DIFFERS, [("EchoDiffers", "PaymentDate")]),
    ("the time without offset", Reply(body=payment(PaymentDate="2026-01-02T03:04:05")), DIFFERS, [
        ("EchoDiffers", "PaymentDate")]),
    ("the day alone", Reply(body=payment(PaymentDate="2026-01-02")), DIFFERS, [
        ("EchoDiffers", "PaymentDate")]),
    ("two fields", Reply(body=payment(PaidAmount=1, DebtsId=None)), DIFFERS, [
        ("EchoDiffers", "DebtsId"), ("EchoDiffers", "PaidAmount")]),
]  # fmt: skip


@pytest.mark.parametrize(
    ("reply", "verdict", "errors"),
    [row[1:] for row in TABLE],
    ids=[row[0] for row in TABLE],
)
def test_two_hundred(reply: Reply, verdict: Verdict, errors: list[tuple[str, str]]) -> None:
    with FaultyServer(always(reply)) as server, client(server.url, attempts=2) as service:
        (answer,) = service.send(requests("EditPayment", 1))
    assert (answer.verdict, codes(answer)) == (verdict, errors)
    assert answer.attempts == (2 if verdict is D else 1)
    assert all(error["Meta"]["stage"] == "push" for error in answer.errors)
    assert "Secret" not in str(answer)


def test_a_differing_echo_is_given_as_canonical_json() -> None:
    reply = Reply(body=payment(PaidAmount=10.510, PaymentDate="/Date(1767323045120+0200)/"))
    with FaultyServer(always(reply)) as server, client(server.url) as service:
        (answer,) = service.send(requests("EditPayment", 1))
    assert answer.echo == (
        '{"Id":1,"TenantsId":1,"ActionsId":2,"DebtsId":3,'
        '"PaymentDate":"2026-01-02T03:04:05.12+02:00","PaidAmount":10.51,"DiscountAmount":0,'
        '"CurrenciesId":1,"CurrencyRatesId":4}'
    )


def test_a_datetime_of_a_differing_echo_is_the_instant_it_is() -> None:
    rate = {**record_of("EditCurrencyRate"), "ExchangeRate": 2}
    reply = Reply(body={**rate, "EffectiveDate": "/Date(1767330000000-0500)/"})
    zone = "America/New_York"
    with FaultyServer(always(reply)) as server, client(server.url, zone=zone) as service:
        (answer,) = service.send(requests("EditCurrencyRate", 1))
    assert codes(answer) == [("EchoDiffers", "ExchangeRate")]
    assert '"EffectiveDate":"2026-01-02T00:00:00-05:00"' in str(answer.echo)


def test_a_secret_is_compared_and_not_shown() -> None:
    sent = {**record_of("AddPaymentGateway"), "ServiceKey": "sk_live_1"}
    reply = Reply(body={**sent, "ServiceKey": "sk_live_OTHER"})
    with FaultyServer(always(reply)) as server, client(server.url) as service:
        (answer,) = service.send([request("AddPaymentGateway", 1)])
    assert answer.verdict is DIFFERS
    assert codes(answer) == [("EchoDiffers", "ServiceKey")]
    assert "sk_live" not in repr(answer)


def record_of(name: str) -> dict[str, Any]:
    return dict(record(request(name, 1).operation, 1))


LISTS: list[tuple[list[str], Any, bool]] = [
    # Roles as sent, as they come back, whether they are the same
    (["a", "b"], ["a", "b"], True),
    (["a", "b"], "[a,b]", True),
    (["a", "b"], ["b", "a"], False),
    (["a"], [], False),
    (["a"], "", False),
    (["a"], None, False),
    ([], [], True),
    ([], "", True),
    ([], None, True),
    ([], ["a"], False),
]


@pytest.mark.parametrize(("sent", "echoed", "same"), LISTS)
def test_a_list_comes_back_as_it_was_sent(sent: list[str], echoed: Any, same: bool) -> None:
    made = request("ClientRegister", 1, {"Roles": json.dumps(sent)})
    values = read_record(made.jsondata)
    shown = shown_record(made.operation, {**lowered(json.loads(made.jsondata)), "roles": echoed})
    found = [one.field.name for one in differing(made.operation, values, shown, ZoneInfo("UTC"))]
    assert found == ([] if same else ["Roles"])


REPLY = request("SaveCampaignActionClientForm", 1)
MAPS: list[tuple[dict[str, Any], Any, bool]] = [
    # A map as sent, as it comes back, whether they are the same
    ({"a": "1", "b": "x"}, {"b": "x", "a": "1"}, True),
    ({"a": "1", "b": "x"}, "{a:1,b:x}", True),
    ({"a": "1"}, {"a": "1", "b": None}, True),
    ({"a": "1", "b": None}, {"a": "1"}, True),
    ({"a": "1", "b": None}, "{a:1}", True),
    ({"a": "1"}, {"a": "2"}, False),
    ({"a": "1"}, "{a:2}", False),
    ({"a": "1"}, {"a": "1", "b": "x"}, False),
    ({"a": "1", "b": "x"}, {"a": "1"}, False),
    ({"a": "1"}, {"A": "1"}, False),
    ({"a": "1"}, {}, False),
    ({"a": "1"}, None, False),
]


@pytest.mark.parametrize(("sent", "echoed", "same"), MAPS)
def test_a_map_comes_back_as_it_was_sent(sent: dict[str, Any], echoed: Any, same: bool) -> None:
    """Only an answer has one today: it is sent here as what it answers."""
    operation = replace(REPLY.operation, request=REPLY.operation.response)
    name = "FormMetaCustomResponses"
    found = differing(operation, {name: sent}, {name.lower(): echoed}, ZoneInfo("UTC"))
    assert [one.field.name for one in found] == ([] if same else [name])


FLAG = replace(REPLY.operation, request=INSERT_BATCH_DATA.name, response=INSERT_BATCH_DATA.name)
FLAGS: list[tuple[bool, Any, bool]] = [
    # A flag as sent, as it comes back, whether they are the same
    (True, True, True),
    (True, "True", True),
    (True, "false", False),
    (True, False, False),
    (True, 1, False),
    (True, "yes", False),
    (True, None, False),
    (False, False, True),
    (False, "false", True),
    (False, "true", False),
    (False, True, False),
    (False, None, False),
]


@pytest.mark.parametrize(("sent", "echoed", "same"), FLAGS)
def test_a_flag_comes_back_as_it_was_sent(sent: bool, echoed: Any, same: bool) -> None:
    """Only what is listed has one today: it is sent here as what is listed."""
    found = differing(FLAG, {"HasError": sent}, {"haserror": echoed}, ZoneInfo("UTC"))
    assert [one.field.name for one in found] == ([] if same else ["HasError"])


FORM = "CampaignActionsFormResponses"
RESULTS = {"Comments": 'He said "no", {then} left', "CampaignActionFiles": [
    {"Name": "a,b.pdf", "FileSize": "12"}]}  # fmt: skip
MADE = {"Id": 7, "CampaignActionsId": 3, "ActionTimestamp": "/Date(1767323045000)/"}
NOTHING = {"Id": 0, "CampaignActionsId": 0, "ActionTimestamp": "/Date(-62135596800000-0000)/"}
RESPONSES: list[tuple[str, Reply, Verdict]] = [
    ("the results", Reply(body={FORM: {**MADE, "FormMetaResponses": RESULTS}}), A),
    (
        "beside the results",
        Reply(
            body={
                FORM: {
                    **MADE,
                    "FormMetaComments": RESULTS["Comments"],
                    "FormMetaFilesResponses": RESULTS["CampaignActionFiles"],
                }
            }
        ),
        A,
    ),
    (
        "small letters",
        Reply(
            body={
                "campaignActionsFormResponses": {
                    "id": 7,
                    "campaignActionsId": 3,
                    "actionTimestamp": "2026-01-02T03:04:05.1234567Z",
                    "formMetaResponses": {
                        "comments": RESULTS["Comments"],
                        "campaignActionFiles": [{"name": "a,b.pdf", "fileSize": "12"}],
                    },
                }
            }
        ),
        A,
    ),
    (
        "the record without wrapper",
        Reply(
            headers=CSV,
            body="Id,CampaignActionsId,ActionTimestamp,FormMetaResponses\r\n7,3,2026-01-02,"
            '"{Comments:""He said """"no"""", {then} left"",'
            'CampaignActionFiles:[{Name:""a,b.pdf"",FileSize:12}]}"\r\n',
        ),
        A,
    ),
    ("the record without results", Reply(body={FORM: MADE}), DIFFERS),
    (
        "two places that differ",
        Reply(body={FORM: {**MADE, "FormMetaResponses": RESULTS, "FormMetaComments": "other"}}),
        DIFFERS,
    ),
    ("an ErrorCode inside", Reply(body={FORM: {
        **MADE, "FormMetaResponses": RESULTS, "ResponseStatus": {"ErrorCode": "Conflict"}}}), R),
    ("errors inside that name nothing", Reply(body={FORM: {
        **MADE, "FormMetaResponses": RESULTS, "ResponseStatus": {"Errors": ["bad"]}}}), D),
    ("a text for the status inside", Reply(body={FORM: {
        **MADE, "FormMetaResponses": RESULTS, "ResponseStatus": "failed"}}), D),
    ("an empty status inside", Reply(body={FORM: {
        **MADE, "FormMetaResponses": RESULTS, "ResponseStatus": {}}}), A),
    ("an empty wrapper", Reply(body={FORM: {}}), D),
    ("the Id alone", Reply(body={FORM: {"Id": 7}}), D),
    ("a gateway's", Reply(body={"id": 7, "message": "queued"}), D),
    ("what the framework makes of nothing", Reply(body={FORM: NOTHING}), D),
    ("the same in CSV", Reply(headers=CSV, body=f"{FORM},ResponseStatus\r\n"
        '"{Id:0,CampaignActionsId:0,ActionTimestamp:0001-01-01}",\r\n'), D),
    ("nothing and files", Reply(body={FORM: {**NOTHING, "FormMetaFilesResponses": []}}), D),
    ("no wrapper", Reply(body={"ResponseStatus": {}}), D),
]  # fmt: skip


@pytest.mark.parametrize(
    ("reply", "verdict"), [row[1:] for row in RESPONSES], ids=[row[0] for row in RESPONSES]
)
def test_the_answer_to_a_form_reply(reply: Reply, verdict: Verdict) -> None:
    """One without comments and files has nothing that could come back."""
    empty = request(
        "SaveCampaignActionClientForm", 1, {"Comments": None, "CampaignActionFiles": None}
    )
    with FaultyServer(always(reply)) as server, client(server.url) as service:
        (answer,) = service.send([REPLY])
    with FaultyServer(always(reply)) as server, client(server.url) as service:
        (bare,) = service.send([empty])
    assert bare.verdict is (A if verdict is DIFFERS else verdict)
    assert answer.verdict is verdict
    assert answer.service_id == (None if verdict in (D, R) else "7")


FILES = '[{"Name":"f,1","FileSize":"3"}]'
SAID: list[tuple[dict[str, Any], list[str]]] = [
    # a form reply, what is said of the recorded answer to it: it has other comments in one place
    ({"Comments": 'a, "b"'}, ["""'Comments' was sent as a, "b", answered as he said "hi"."""]),
    ({"Comments": 'he said "hi"'}, [
        """'Comments' was sent as he said "hi", answered as a, "b"."""]),
    ({"Comments": None, "CampaignActionFiles": '[{"Name":"g"}]'}, [
        "'CampaignActionFiles' was sent as [{'Name': 'g'}], "
        "answered as [{'Name': 'f,1', 'FileSize': '3'}]."]),
]  # fmt: skip


@pytest.mark.parametrize("exchange", ["form-json", "form-csv"])
@pytest.mark.parametrize(("changed", "said"), SAID)
def test_what_is_said_of_a_form_reply_that_differs(
    exchange: str, changed: dict[str, Any], said: list[str]
) -> None:
    made = request(REPLY.operation, 1, {"CampaignActionFiles": FILES, **changed})
    sent, reply = read_record(made.jsondata), recorded_reply(exchange)
    found = Classifier(ZoneInfo("UTC"), ()).single(made, sent, reply)
    assert (found.verdict, found.service_id) == (DIFFERS, "1")
    assert [error["Message"] for error in found.errors] == said
