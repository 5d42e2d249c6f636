"""What the sandbox keeps: replacements, additions, listings, accounts; and two writers at once."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

from connectors.errors import DatabaseUnusable, ListingUnusable, SettingsError
from connectors.sandbox import Sandbox, SandboxOptions, User
from tests.conftest import Databases
from tests.sandbox.caller import Caller, basic
from tests.sandbox.conftest import Host, running
from tests.sandbox.records import PAYMENT, REGISTRATION, TONE

LISTINGS = [
    ("avatars", "avatar", "TenantsId,Name,Gender\n1,a,f\n2,b,\n1,c,m\n,,\n"),
    (
        "payment_plan_details",
        "payment_plan_detail",
        "PaymentPlansId,PlannedDate,PlannedAmount\n"
        "1,2026-01-02T05:00:00Z,10.50\n2,2026-01-02T06:00:00+01:00,0.1\n3,2026-01-03,7\n",
    ),
    ("insert_batch_data", "insert_batch_data", 'BatchId,Data,HasError\n1,"",True\n2,,False\n'),
]
FILTERS = [
    # path with its query, first field's values of the rows that come back
    ("/avatars", [1, 2, 1, None]),
    ("/avatars?TenantsId=1", [1, 1]),
    ("/avatars?tenantsid=1&Name=c", [1]),
    ("/avatars?Name=C", []),
    ("/avatars?Unknown=1", [1, 2, 1, None]),
    ("/avatars?Skip=1&Take=1", [1, 2, 1, None]),
    ("/payment_plan_details?PlannedAmount=10.5", [1]),
    ("/payment_plan_details?PlannedDate=2026-01-02T05:00:00Z", [1, 2]),
    ("/payment_plan_details?PlannedDate=2026-01-03", [3]),
    ("/insert_batch_data?HasError=true", [1]),
    ("/insert_batch_data?BatchId=2", [2]),
]


@pytest.fixture(scope="module")
def listed(pascal: Host, tmp_path_factory: pytest.TempPathFactory) -> Host:
    pascal.sandbox.clear()
    folder = tmp_path_factory.mktemp("listings")
    for path, record, text in LISTINGS:
        (folder / path).write_text(text)
        assert pascal.sandbox.load(record, folder / path) == text.count("\n") - 1
    return pascal


@pytest.mark.parametrize(("path", "expected"), FILTERS)
def test_listings_hold_what_equals_the_given_fields(
    listed: Host, path: str, expected: list[int | None]
) -> None:
    first = {"/avatars": "TenantsId", "/payment_plan_details": "PaymentPlansId"}
    field = first.get(path.partition("?")[0], "BatchId")
    rows = listed.caller.as_client("GET", path).json()
    assert [row.get(field) for row in rows] == expected


def test_listings_are_the_same_whatever_a_database_is_set_to(
    databases: Databases, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a database in LATIN1 it answered 500, and of another zone with other times."""
    for name, value in {"CLIENTENCODING": "LATIN1", "TZ": "Asia/Tokyo", "DATESTYLE": "SQL"}.items():
        monkeypatch.setenv(f"PG{name}", value)
    times, names = tmp_path / "times", tmp_path / "names"
    times.write_text("PaymentPlansId,PlannedDate\n1,2026-01-02T05:00:00Z\n")
    names.write_text("TenantsId,Name\n1,\u0141\u00f3d\u017a\n")
    with databases.new() as url, running(url) as host:
        for record, path in (("payment_plan_detail", times), ("avatar", names)):
            host.sandbox.load(record, path)
        (plan,) = host.caller.as_client("GET", "/payment_plan_details?format=json").json()
        (avatar,) = host.caller.as_client("GET", "/avatars?format=json").json()
        answer = host.caller.as_client("POST", "/message_tones", {**TONE, "Name": "\u0141"})
    assert plan["PlannedDate"].startswith("/Date(1767330000000")
    assert avatar["Name"] == "\u0141\u00f3d\u017a"
    assert (answer.status, answer.json()["Name"]) == (200, "\u0141")


def test_what_a_database_says_before_anything_is_served_is_told(
    databases: Databases, tmp_path: Path
) -> None:
    """It was a fault of the program where the tables were there, as on a database that is full."""
    avatars = tmp_path / "avatars"
    avatars.write_text("TenantsId,Name\n1,a\n")
    told = pytest.raises(DatabaseUnusable, match="The sandbox cannot use the database: ")
    with databases.new() as url, psycopg.connect(url, autocommit=True) as owner:
        with running(url) as host:
            owner.execute(
                "SELECT pg_terminate_backend(pid, 9999) FROM pg_stat_activity "
                "WHERE application_name = 'sandbox' AND datname = current_database()"
            )
            with told:
                host.sandbox.load("avatar", avatars)
        only_read = sql.SQL("ALTER DATABASE {} SET default_transaction_read_only = on")
        owner.execute(only_read.format(sql.Identifier(owner.info.dbname)))
        with told, running(url):
            pass


def test_an_empty_listing_is_its_header(host: Host) -> None:
    answer = host.caller.as_client("GET", "/avatars", accept="text/csv")
    assert answer.body == (
        "TenantsId,Name,Gender,AgeGroup,Style,ImageUrl,EthnicGroup,ResponseStatus\r\n"
    )


PLANS = (
    "PaymentPlansId,PlannedDate,PlannedAmount\n"
    "1,2026-01-02T05:00:00Z,10.50\n2,2026-07-02T06:00:00+01:00,1e16\n3,2026-01-03,7\n"
    "4,2026-01-02T03:04:05.1234567,-0.1\n5,2026-01-02T03:04:05.678Z,1E-05\n6,0001-01-01,\n"
    "7,2026-07-02T06:00:00,\n8,,\n"
)
HELD = (
    "BatchId,Data,HasError,Merged,Jsondata,ErrorData\n"
    '1,"a,b}c",True,False,"{""Id"":1,""Name"":""x }y""}","[{""ErrorCode"":""X""}]"\n'
    '2,"a}b",,True,"line\nline ""q""",\n3,"[1,2]",False,False,=1+1,\n4, blank ,True,,;|:=,\t\n'
    '5,"{a:b,c}",True,True,\u00e9\u2028,"}"\n'
)


@pytest.mark.parametrize("form", ["text/csv", "application/json"])
@pytest.mark.parametrize(
    ("style", "zone"),
    [("pascal-5", "America/New_York"), ("camel-core", "UTC"), ("pascal-5", "Asia/Kolkata")],
)
def test_a_listing_is_loaded_as_the_service_writes_it(
    database_url: str, tmp_path: Path, form: str, style: str, zone: str
) -> None:
    with running(database_url, style=style, zone=zone) as host:
        for record, text, count in (
            ("payment_plan_detail", PLANS, 8),
            ("insert_batch_data", HELD, 5),
        ):
            path = "/insert_batch_data" if record == "insert_batch_data" else f"/{record}s"
            file = tmp_path / record
            file.write_text(text)
            host.sandbox.load(record, file)
            first = host.caller.as_client("GET", path, accept=form).body
            host.sandbox.clear()
            file.write_bytes(first.encode())
            assert host.sandbox.load(record, file) == count
            assert host.caller.as_client("GET", path, accept=form).body == first


REFUSED = [
    ("avatar", "Nome\nx\n", ListingUnusable, "no column of avatar"),
    ("avatar", "TenantsId\nx\n", ListingUnusable, "record 1 "),
    ("avatar", "TenantsId\n1,2\n", ListingUnusable, "more cells than the header"),
    ("avatar", '[{"TenantsId":1},', ListingUnusable, "no whole JSON"),
    ("avatar", '[{"TenantsId":"x"}]', ListingUnusable, "record 1 "),
    ("avatar", '[{"Nome":"x"}]', ListingUnusable, "record 1 has no field of avatar"),
    ("avatar", "[1]", ListingUnusable, "record 1 has no field of avatar"),
    ("nothing", "", SettingsError, "'nothing' is no record"),
]


@pytest.mark.parametrize(("record", "text", "error", "message"), REFUSED)
def test_a_listing_that_cannot_be_loaded(
    host: Host, tmp_path: Path, record: str, text: str, error: type[Exception], message: str
) -> None:
    (tmp_path / "listing.csv").write_text(text)
    with pytest.raises(error, match=message):
        host.sandbox.load(record, tmp_path / "listing.csv")
    with pytest.raises(ListingUnusable, match="cannot be read"):
        host.sandbox.load("avatar", tmp_path / "missing.csv")


def kept(database_url: str, query: str) -> list[tuple[object, ...]]:
    with psycopg.connect(database_url) as connection:
        return connection.execute(query.encode()).fetchall()


def test_a_put_replaces_and_a_post_adds(host: Host, database_url: str) -> None:
    for amount in (1, 2.25, 0.1):
        host.caller.as_client("PUT", "/payments/12", {**PAYMENT, "PaidAmount": amount})
        host.caller.as_client("POST", "/message_tones", TONE)
    host.caller.as_client("PUT", "/payments/12", {**PAYMENT, "TenantsId": 2})
    payments = 'SELECT "TenantsId", "PaidAmount"::text FROM sandbox.payment ORDER BY 1'
    assert kept(database_url, payments) == [(1, "0.1"), (2, "10.5")]
    assert kept(database_url, "SELECT count(*) FROM sandbox.message_tone") == [(3,)]


def test_times_are_kept_as_instant_and_offset(host: Host, database_url: str) -> None:
    host.caller.as_client("PUT", "/payments/12", PAYMENT)
    columns = '("PaymentDate" AT TIME ZONE \'UTC\')::text, "PaymentDate_offset"'
    rows = kept(database_url, f"SELECT {columns} FROM sandbox.payment")
    assert rows == [("2026-01-02 01:04:05", 120)]


def test_records_and_accounts_outlive_the_host(host: Host, database_url: str) -> None:
    host.caller.as_client("PUT", "/payments/12", PAYMENT)
    registered = host.caller.as_client("POST", "/clientregister", REGISTRATION, user="partner")
    assert registered.status == 200
    # A host that forgets nothing when it starts.
    options = host.sandbox.options
    with Sandbox(options, database_url).running() as base_url, Caller(base_url) as caller:
        headers = {"Authorization": basic("a@b.co", "secret-word"), "Accept": "application/json"}
        assert caller.send("GET", "/avatars", None, headers).status == 200
        assert caller.as_client("GET", "/avatars").status == 200
    assert kept(database_url, "SELECT count(*) FROM sandbox.payment") == [(1,)]
    accounts = "SELECT count(*) FROM sandbox.user_account"
    assert kept(database_url, accounts) == [(len(options.users) + 1,)]


@pytest.mark.long
def test_a_user_of_the_next_start_is_whoever_signs_in_by_that_name(
    host: Host, database_url: str
) -> None:
    """Names and addresses are looked for in any case, the first account counts."""
    assert (
        host.caller.as_client("POST", "/clientregister", REGISTRATION, user="partner").status == 200
    )
    for name in ("CLIENT", REGISTRATION["EMail"].upper()):
        options = SandboxOptions(users=(User(name, "new", ("Partner",)),), password_cost=2**4)
        with Sandbox(options, database_url).running() as url, Caller(url) as caller:
            signed_in = {"Authorization": basic(name, "new")}
            assert caller.send("GET", "/avatars", None, signed_in).status == 200


def test_a_registration_makes_a_working_account(host: Host, database_url: str) -> None:
    body = {**REGISTRATION, "PartnerUserID": 9}
    answer = host.caller.as_client("POST", "/clientregister", body, user="partner")
    account = answer.json()
    assert (account["Email"], account["Roles"]) == ("a@b.co", ["Client", "x,y"])
    assert account["RefId"] == 9
    assert not {"Salt", "PasswordHash", "DigestHa1Hash", "RecoveryToken"} & account.keys()
    assert "secret-word" not in answer.body
    ((kept_password,),) = kept(
        database_url, 'SELECT "PasswordHash" FROM sandbox.user_account WHERE "Email" = \'a@b.co\''
    )
    assert str(kept_password).startswith("scrypt$")
    headers = {"Accept": "application/json", "Authorization": basic("A@B.CO", "secret-word")}
    assert host.caller.send("GET", "/avatars", None, headers).status == 200

    twice = host.caller.as_client("POST", "/clientregister", body, user="partner")
    assert (twice.status, twice.reason) == (409, "Conflict")


def test_a_host_without_validators_saves_nulls(database_url: str) -> None:
    with running(database_url, unvalidated=frozenset({"ClientRegister"})) as host:
        answer = host.caller.as_client("POST", "/clientregister", {"EMail": "x@y"}, user="partner")
        assert answer.status == 200
        headers = {"Accept": "application/json", "Authorization": basic("x@y", "None")}
        assert host.caller.send("GET", "/avatars", None, headers).status == 401


def test_a_registration_in_csv_has_the_38_columns_of_an_account(host: Host) -> None:
    answer = host.caller.as_client(
        "POST", "/clientregister", REGISTRATION, "text/csv", user="partner"
    )
    header, row, _ = answer.body.split("\r\n")
    assert (len(header.split(",")), header.split(",")[0]) == (38, "Id")
    assert "ResponseStatus" not in header
    assert '"[Client,""x,y""]",[],' not in row, "a list in a cell is always quoted"
    assert '"[Client,""x,y""]","[]",2026-01-02T03:04:05Z' in row


@pytest.mark.long
def test_two_writers_of_one_key_leave_one_whole_record(host: Host, database_url: str) -> None:
    def write(writer: int) -> set[int]:
        with Caller(host.caller.base_url) as caller:
            return {
                caller.as_client(
                    "PUT",
                    "/payments/12",
                    {**PAYMENT, "ActionsId": number, "DebtsId": number, "PaidAmount": number},
                ).status
                for number in range(writer * 100, writer * 100 + 25)
            }

    with ThreadPoolExecutor(4) as writers:
        assert set.union(*writers.map(write, range(4))) == {200}
    rows = kept(
        database_url, 'SELECT "ActionsId", "DebtsId", "PaidAmount"::int FROM sandbox.payment'
    )
    assert len(rows) == 1
    assert len(set(rows[0])) == 1, "the record is of one writer"


def test_two_registrations_of_one_address_make_one_account(host: Host) -> None:
    def register(_: int) -> int:
        with Caller(host.caller.base_url) as caller:
            answer = caller.as_client("POST", "/clientregister", REGISTRATION, user="partner")
            return answer.status

    with ThreadPoolExecutor(4) as writers:
        assert sorted(writers.map(register, range(4))) == [200, 409, 409, 409]


@pytest.mark.long
def test_more_callers_than_connections_to_the_database(host: Host) -> None:
    def call(_: int) -> int:
        with Caller(host.caller.base_url) as caller:
            return caller.as_client("POST", "/message_tones", TONE).status

    with ThreadPoolExecutor(32) as callers:
        assert set(callers.map(call, range(64))) == {200}


NAMES = {"EditPayment": "UpdatePayments"}


def test_operation_names_are_the_hosts(database_url: str) -> None:
    with running(database_url, operation_names=NAMES) as host:
        renamed = host.caller.as_client("PUT", "/csv/reply/UpdatePayments", "", "text/csv")
        assert renamed.reason == "NotNull"
        assert host.caller.as_client("PUT", "/csv/reply/EditPayment", "").status == 404
        answer = host.caller.as_client("PUT", "/payments/1", PAYMENT, "text/csv")
        assert answer.headers["content-disposition"] == "attachment;filename=UpdatePayments.csv"


def test_a_newer_host_quotes_the_file_name(camel: Host) -> None:
    answer = camel.caller.as_client("GET", "/avatars", accept="text/csv")
    assert answer.headers["content-disposition"] == 'attachment;filename="ListAvatars.csv"'
