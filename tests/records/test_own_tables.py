"""What a file of a record kind may say: a field table, or refused with file, line and key."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from schemas.field import Kind, Rule
from schemas.own_definition import definition_of, table_of, toml_of
from schemas.own_endpoint import ENDPOINT_KEYS
from schemas.own_names import TEMPORARY, WORDS
from schemas.own_tables import (
    FIELD_KEYS,
    NAME,
    REFERENCE_KEYS,
    TABLE_KEYS,
    own_folder,
    read_own_tables,
)
from schemas.tables import DOCUMENTED
from tests import recon
from tests.records.test_own_kinds import REFUND

ROOT = Path(__file__).parents[2]


FEE = REFUND.replace('"refund"', '"fee"').replace('"Refund"', '"Fee"')


def read(folder: Path, *texts: str) -> str | None:
    for number, text in enumerate(texts):
        (folder / f"{number}.toml").write_text(text)
    return read_own_tables(folder, DOCUMENTED).fault


def test_a_file_is_a_field_table_like_the_documented_ones(tmp_path: Path) -> None:
    assert read(tmp_path, REFUND) is None
    (table,) = read_own_tables(tmp_path, DOCUMENTED).tables.values()
    assert (table.name, table.title, table.key) == ("refund", "Refund", ("Id", "TenantsId"))
    assert table.columns == tuple(tomllib.loads(REFUND)["fields"])
    assert table.by_name["RefundedAt"].kind is Kind.DATETIME_OFFSET
    assert (table.amounts, table.currency, table.tenant) == (
        ("Amount",),
        "CurrenciesId",
        "TenantsId",
    )
    assert (table.version, table.business_date) == ("RefundedAt", "RefundedAt")
    (reference,) = table.references
    assert (reference.field, reference.table, reference.column) == ("PaymentsId", "payment", "Id")


def test_spelling_and_comments_are_no_change(tmp_path: Path) -> None:
    read(tmp_path, REFUND)
    (one,) = read_own_tables(tmp_path, DOCUMENTED).tables.values()
    read(
        tmp_path,
        "# another comment\n"
        + REFUND.replace('key = ["Id", "TenantsId"]', 'key = [\n"Id",\n"TenantsId",\n]'),
    )
    (other,) = read_own_tables(tmp_path, DOCUMENTED).tables.values()
    assert definition_of(one) == definition_of(other)


def test_what_a_database_keeps_makes_the_same_file_again(tmp_path: Path) -> None:
    read(
        tmp_path,
        REFUND.replace(
            'type = "string"',
            'type = "string"\nnote = "of the clerk, \\"as told\\""\nrules = ["NotEmpty"]',
        ),
    )
    (one,) = read_own_tables(tmp_path, DOCUMENTED).tables.values()
    assert table_of("refund", definition_of(one)) == one
    assert read(tmp_path, toml_of(one)) is None
    (again,) = read_own_tables(tmp_path, DOCUMENTED).tables.values()
    assert again == one


def test_a_field_is_a_secret_of_every_kind_or_of_none(tmp_path: Path) -> None:
    secret = REFUND.replace('type = "string"', 'type = "string"\nsecret = true')
    assert read(tmp_path, secret) is None
    (one,) = read_own_tables(tmp_path, DOCUMENTED).tables.values()
    assert (one.secrets, one.unquotable) == (("Reason",), True)
    assert table_of("refund", definition_of(one)) == one
    of_key = secret.replace('"TenantsId"]', '"Reason"]').replace(
        "secret", "required = true\nsecret"
    )
    assert "fields.Reason.secret is for a field that is not of the key" in str(
        read(tmp_path, of_key)
    )
    fault = read(tmp_path, secret, FEE)
    assert fault is not None
    assert "1.toml, line 35: fields.Reason is the name of a secret of refund. Make it" in fault


@pytest.mark.parametrize("name", ["Name", "NAME", "PaidAmount", "ErrorCode"])
def test_a_secret_has_no_name_that_is_shown_elsewhere(tmp_path: Path, name: str) -> None:
    shown = REFUND.replace("[fields.Reason]", f"[fields.{name}]")
    secret = shown.replace('type = "string"', 'type = "string"\nsecret = true')
    fault = read(tmp_path, secret)
    assert fault is not None
    assert f"fields.{name}.secret is for no field with the name of one that is shown, of " in fault
    assert read(tmp_path, shown) is None


def test_where_kinds_are_defined() -> None:
    assert own_folder({}) == Path(".recon/records")
    assert own_folder({"RECON_HOME": "/srv/recon"}) == Path("/srv/recon/records")
    assert own_folder({"RECON_HOME": "/srv/recon", "RECON_RECORDS": "/etc/kinds"}) == Path(
        "/etc/kinds"
    )
    assert read_own_tables(Path("/nowhere/at/all"), DOCUMENTED).tables == {}


VERSION = 'offset"\nrequired = true\nversion = true'
TWICE = '[[references]]\nfield = "PaymentsId"\nrecord = "payment"\n'
REFUSED = [
    # before, after, what is said
    ('name = "refund"', 'name = "Refund"', "0.toml, line 2: name = 'Refund' is no name"),
    ('name = "refund"', 'name = "payment"', "name = 'payment' is taken"),
    ('name = "refund"', 'name = "batch"', "name = 'batch' is taken"),
    ('name = "refund"', 'name = "order"', "name = 'order' is a word of SQL. Find another one."),
    ('name = "refund"', 'name = "tablesample"', "name = 'tablesample' is a word of SQL"),
    ('name = "refund"', 'name = "row"', "'row' is taken: there is a staged_row already. Find"),
    ('name = "refund"', 'name = "payment_key"', "there is a payment_key already, a part of pay"),
    ('name = "refund"', 'name = "payment_range"', "there is a staged_payment_range already, a"),
    ('name = "refund"', 'name = "note_batch"', "name = 'note_batch' is taken. Find another one."),
    (
        'name = "refund"',
        'name = "r\u00fcck"',
        "is no name. Use up to 40 signs: a to z, digits and _",
    ),
    ('name = "refund"', 'name = "record"', "name = 'record' is taken"),
    ('name = "refund"', 'name = "staged_x"', "name = 'staged_x' is taken"),
    ('name = "refund"', 'name = "pg_class"', "name = 'pg_class' is taken"),
    ('name = "refund"', "name = 7", "name = 7 is none"),
    ('name = "refund"', "", "name is missing"),
    ('title = "Refund"', "titel = 1", "line 3: titel is not a key. Did you mean title?"),
    ('title = "Refund"', 'title = "Re\\nfund"', "line 3: title = 'Re\\nfund' is nothing to show"),
    ('title = "Refund"', 'title = " "', "title = ' ' is nothing to show"),
    ('type = "string"', 'type = "string"\nnote = "\\u0007"', "fields.Reason.note = '\\x07'"),
    ('key = ["Id", "TenantsId"]', "", "key is missing"),
    ('key = ["Id", "TenantsId"]', "key = []", "line 4: key has no field. Name those that tell"),
    ('key = ["Id", "TenantsId"]', 'key = ["Id", "Id"]', "key has Id more than once. Name it once."),
    ('key = ["Id", "TenantsId"]', 'key = ["Idd"]', "Did you mean Id?"),
    ('key = ["Id", "TenantsId"]', 'key = ["Reason"]', "fields.Reason is of the key"),
    ('currency = "CurrenciesId"', "", "currency is missing"),
    ('currency = "CurrenciesId"', 'currency = "Reason"', "currency has to be of type integer"),
    ('currency = "CurrenciesId"', 'currency = "PaymentsId"', "currency has to be of type integer"),
    (VERSION, VERSION.replace("true", "false", 1), "RefundedAt.version is for a field that all"),
    (VERSION, VERSION.replace("required = true", 'rules = ["NotNull"]'), "for a field that all"),
    ('"double"', '"money"', "fields.Amount.type = 'money' is none"),
    ('"double"', '"string"', "fields.Amount.amount is for a double"),
    ("[fields.Reason]", "[fields.reason]", "fields.reason = 'reason' is no name"),
    ("[fields.Reason]", "[fields.ID]", "fields.ID is Id in other letters"),
    ("[fields.Reason]", "[fields.BreakId]", "fields.BreakId is the name of a column of rejects"),
    ("[fields.Reason]", "[fields.Reconrow]", "is the name of a column of rejects"),
    ('type = "string"', 'type = "string"\nsecret = "yes"', "fields.Reason.secret = 'yes' is none"),
    ('type = "string"', 'type = "boolean"\nsecret = true', "fields.Reason.secret is for a string"),
    ("[fields.Reason]", "[fields.PassWord]", "fields.PassWord is the name of a secret of client_"),
    ('type = "string"', 'type = "string"\nrules = ["Phone"]', "fields.Reason.rules = 'Phone'"),
    ('type = "string"', 'type = "string"\nversion = true', "is for a datetime or an integer"),
    ('type = "string"', 'type = "string"\nbusiness_date = true', "is for a datetime"),
    ('type = "string"', 'type = "datetime"\nversion = true', "is said of another field already"),
    ('type = "string"', "", "fields.Reason.type is missing"),
    ('record = "payment"', 'record = "paymnt"', "Did you mean payment?"),
    ('record = "payment"', 'record = "response_status"', "line 40: references.record ="),
    ('record = "payment"', 'record = "insert_batch_data"', "references.record ="),
    ('record = "payment"', 'record = "refund"', "lead from refund back to it"),
    ('name = "refund"', 'name = "missing"', "name = 'missing' is taken"),
    ('title = "Refund"', 'title = "PAYMENT"', "line 3: title = 'PAYMENT' is the title of payment"),
    ('key = ["Id", "TenantsId"]', 'key = ["Id", "Amount"]', "line 23: fields.Amount.amount is for"),
    ('type = "64-bit integer"', 'type = "64-bit integer"\nrules = ["NotEmpty"]', "for a string"),
    ('record = "payment"', 'record = "payment"\ncolumn = "Idd"', "Did you mean Id?"),
    ('record = "payment"', 'record = "payment"\ncolumn = "PaidAmount"', "from an integer to"),
    ('field = "PaymentsId"', 'field = "PaymentId"', "Did you mean PaymentsId?"),
    ("[[references]]", f"{TWICE}[[references]]", "references.field = 'PaymentsId' refers already"),
    ('["Id", "TenantsId"]', str([f"F{n}" for n in range(33)]), "key has 33 fields. Use up to 32."),
    ("[fields.Reason]", "[Fields.Reason]", "line 35: Fields is not a key. Did you mean fields?"),
    ("[fields.Id]", "[fields.Id", "0.toml: cannot be read"),
    ("[fields.Id]", f"[fields.{'.'.join('a' * 900)}]", "0.toml: cannot be read: its lists or tab"),
    ("[fields.Reason]", '[fields."a]b"]', "0.toml, line 35: fields.a]b = 'a]b' is no name"),
    ("[fields.Reason]", '[fields."a\\nb"]', "line 35: fields.a\\nb = 'a\\nb' is no name"),
]


@pytest.mark.parametrize(("before", "after", "said"), REFUSED)
def test_a_file_that_cannot_be_meant_is_refused(
    tmp_path: Path, before: str, after: str, said: str
) -> None:
    assert before in REFUND
    fault = read(tmp_path, REFUND.replace(before, after, 1))
    assert fault is not None
    assert said in fault
    assert fault.startswith(str(tmp_path / "0.toml"))
    assert len(fault.splitlines()) == 1, "one fault of the file, and one line"


@pytest.mark.long
def test_what_waits_was_made_by_the_same_definitions(tmp_path: Path) -> None:
    told = "from connectors.forms import form_of_code; print(form_of_code())"
    forms = set()
    for text in (REFUND, REFUND.replace("Reason", "Clerk")):
        (tmp_path / "refund.toml").write_text(text)
        where = {**os.environ, "RECON_RECORDS": str(tmp_path)}
        forms.add(subprocess.check_output([sys.executable, "-c", told], env=where, cwd=ROOT))
    assert len(forms) == 2


def test_what_an_editor_keeps_beside_a_file_is_none(tmp_path: Path) -> None:
    (tmp_path / ".#kind.toml").write_text("no = definition")
    assert read(tmp_path, REFUND) is None


def test_the_ending_of_a_file_is_in_any_case(tmp_path: Path) -> None:
    (tmp_path / "REFUND.TOML").write_text(REFUND)
    assert [*read_own_tables(tmp_path, DOCUMENTED).tables] == ["refund"]


def test_what_cannot_be_read_is_said_with_what_to_do(tmp_path: Path) -> None:
    text, folder, other, nothing, nowhere = (tmp_path / f"{at}.toml" for at in range(5))
    text.write_bytes(REFUND.encode("utf-16"))
    folder.mkdir()
    other.write_text("#" * (1 << 20) + "\n")
    nothing.symlink_to("/dev/null")
    nowhere.symlink_to("gone.toml")
    fault = read_own_tables(tmp_path, DOCUMENTED).fault or ""
    assert fault.splitlines() == [
        f"{text}: cannot be read: it is not UTF-8 text: byte 0. Save it in UTF-8.",
        f"{folder}: is no file. Take it away, or give it another ending.",
        f"{other}: cannot be read: it has more than 1048576 bytes.",
        f"{nothing}: is no file. Take it away, or give it another ending.",
        f"{nowhere}: cannot be read: No such file or directory.",
    ]


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    """Every command did, for ever."""
    os.mkfifo(tmp_path / "refund.toml")
    said = "from schemas.tables import OWN; print(OWN.fault)"
    where = {**os.environ, "RECON_RECORDS": str(tmp_path)}
    told = subprocess.check_output([sys.executable, "-c", said], env=where, cwd=ROOT, timeout=30)
    assert told.decode().strip() == (
        f"{tmp_path}/refund.toml: is no file. Take it away, or give it another ending."
    )


def test_what_belongs_to_a_kind_is_no_other_one(tmp_path: Path) -> None:
    named = FEE.replace('"fee"', '"refund_key"')
    fault = read(tmp_path, named, REFUND)
    assert fault == (
        f"{tmp_path}/1.toml, line 2: name = 'refund' is taken: there is a refund_key already. "
        "Find another one."
    )
    fault = read(tmp_path, REFUND, named)
    assert fault == (
        f"{tmp_path}/1.toml, line 2: name = 'refund_key' is taken: there is a refund_key already, "
        "a part of refund. Find another one."
    )


def test_what_the_database_has_or_takes_for_a_word_is_no_name(rows: Any, tmp_path: Path) -> None:
    there = rows("SELECT relname::text FROM pg_class WHERE relnamespace = 'recon'::regnamespace")
    names = [name for (name,) in there if NAME.fullmatch(name)]
    assert {"note_batch", "staged_row", "batch_id_seq", "payment_key"} <= {*names}
    for number, name in enumerate(names):
        (tmp_path / f"{number}.toml").write_text(REFUND.replace('"refund"', f'"{name}"'))
    fault = read_own_tables(tmp_path, DOCUMENTED).fault or ""
    told = re.findall(r"name = '(.*)' is taken", fault)
    assert {*names} - {*told} == set()
    words = rows("SELECT word FROM pg_get_keywords() WHERE catcode IN ('R', 'T')")
    assert {word for (word,) in words} <= WORDS


def test_two_kinds_have_two_titles(tmp_path: Path) -> None:
    said = "is the title of refund. Find another one."
    shouted = FEE.replace('"Fee"', '"REFUND"')
    assert read(tmp_path, REFUND, shouted) == f"{tmp_path}/1.toml, line 3: title = 'REFUND' {said}"
    # A kind that states none is called by its name.
    untitled = FEE.replace('"fee"', '"fees"').replace('title = "Fee"\n', "")
    fault = read(tmp_path, untitled, FEE.replace('"Fee"', '"Fees"'))
    assert fault == f"{tmp_path}/1.toml, line 3: title = 'Fees' is the title of fees. " + (
        "Find another one."
    )


def test_a_tenant_in_other_letters_is_refused(tmp_path: Path) -> None:
    """Taken as any field it would say of no record whose it is, and all could be seen by all."""
    fee = """name = "fee"
key = ["Id"]
[fields.Id]
type = "integer"
required = true
[fields.Tenantsid]
type = "integer"
"""
    said = "fields.Tenantsid is TenantsId in other letters. Write it TenantsId."
    assert read(tmp_path, fee) == f"{tmp_path}/0.toml, line 6: {said}"
    assert read(tmp_path, fee.replace("Tenantsid", "TenantsId")) is None


def test_two_files_do_not_define_one_kind(tmp_path: Path) -> None:
    fault = read(tmp_path, REFUND, REFUND)
    assert fault is not None
    assert "1.toml, line 2: name = 'refund'" in fault
    assert "0.toml defines it too" in fault


def test_everything_that_is_wrong_is_said_at_once(tmp_path: Path) -> None:
    wrong = (
        REFUND.replace('"double"', '"money"')
        .replace("title", "titel")
        .replace('type = "string"', "")
        .replace("required", "requird", 1)
    )
    fee = FEE.replace('"payment"', '"refund"')
    fault = read(tmp_path, wrong, fee.replace('["Id", "TenantsId"]', '["Idd"]'))
    assert fault is not None
    told = [line.removeprefix(f"{tmp_path}/").split(" ", 4)[:4] for line in fault.splitlines()]
    assert told == [
        ["0.toml,", "line", "3:", "titel"],
        ["0.toml,", "line", "9:", "fields.Id.requird"],
        ["0.toml,", "line", "21:", "fields.Amount.type"],
        ["0.toml,", "line", "35:", "fields.Reason.type"],
        ["1.toml,", "line", "4:", "key"],
    ]


FAULTS = [
    # before, after, the line and the key that are told of it
    ('name = "refund"', 'name = "Refund"', "2: name ="),
    ('title = "Refund"', 'title = " "', "3: title ="),
    ('key = ["Id", "TenantsId"]', 'key = ["Idd", "Tenant"]', "4: key = 'Idd'"),
    ('key = ["Idd", "Tenant"]', 'key = ["Idd", "Tenant"]', "4: key = 'Tenant'"),
    ('currency = "CurrenciesId"', 'currency = "Currency"', "5: currency ="),
    ('type = "double"\nrequired = true', 'type = "money"\nrequired = 1', "21: fields.Amount.type"),
    ("required = 1", "required = 1", "22: fields.Amount.required"),
    ('type = "string"', 'type = "text"\nrules = ["A", "B"]', "36: fields.Reason.type"),
    ('["A", "B"]', '["A", "B"]', "37: fields.Reason.rules = 'A'"),
    ('["A", "B"]', '["A", "B"]', "37: fields.Reason.rules = 'B'"),
    (VERSION, VERSION.replace("true", "false", 1), "32: fields.RefundedAt.version is for"),
    ('field = "PaymentsId"', 'field = "Payment"', "40: references.field ="),
    ('record = "payment"', 'record = "payments"', "41: references.record ="),
    ("same_tenant = true", "same_tenant = 1", "42: references.same_tenant ="),
]


def test_no_fault_hides_another(tmp_path: Path) -> None:
    """Whoever mends what was told has a record kind."""
    text = REFUND
    for before, after, _ in FAULTS:
        assert before in text
        text = text.replace(before, after, 1)
    fault = read(tmp_path, text, FEE)
    assert fault is not None
    begin = f"{tmp_path}/0.toml, line "
    told = sorted(line.removeprefix(begin) for line in fault.splitlines())
    for line, said in zip(told, sorted(said for *_, said in FAULTS), strict=True):
        assert line.startswith(said)


def test_a_kind_that_may_be_in_a_file_with_faults_is_not_missing(tmp_path: Path) -> None:
    fee = FEE.replace('"payment"', '"refund"')
    for text in (REFUND.replace('"refund"', '"Refund"'), 'name = "Refund"', "name ="):
        fault = read(tmp_path, text, fee)
        assert fault is not None
        assert "1.toml" not in fault
    # One that can be read has only other fields than meant: what is known of it is told.
    fault = read(
        tmp_path, REFUND.replace('"double"', '"money"'), fee.replace('"refund"', '"refnd"')
    )
    assert fault is not None
    assert fault.splitlines()[1].startswith(f"{tmp_path}/1.toml, line 40: references.record = ")


def test_a_rule_that_is_said_twice_is_one_rule(tmp_path: Path) -> None:
    """Else a row would have the same reason twice, and be counted twice under it."""
    rules = 'type = "string"\nrequired = true\nrules = ["NotNull", "Email", "Email"]'
    assert read(tmp_path, REFUND.replace('type = "string"', rules)) is None
    (table,) = read_own_tables(tmp_path, DOCUMENTED).tables.values()
    assert table.by_name["Reason"].validations == (Rule.NOT_NULL, Rule.EMAIL)


def test_a_folder_that_is_named_is_there(tmp_path: Path) -> None:
    fault = read_own_tables(tmp_path / "nowhere", DOCUMENTED, named=True).fault
    assert fault == f"{tmp_path}/nowhere: RECON_RECORDS names it, and it is no folder."


def test_nothing_is_served_or_registered_where_a_file_has_a_fault(tmp_path: Path) -> None:
    """Forms and paths would be there without any kind of one's own."""
    (tmp_path / "refund.toml").write_text(REFUND)
    (tmp_path / "broken.toml").write_text("name = refund")
    ours = {"RECON_RECORDS": str(tmp_path), "PREFECT_API_URL": "http://127.0.0.1:9/api"}
    nowhere = "postgresql://127.0.0.1:9/none"
    for command in (["deploy"], ["sandbox", "--database", nowhere]):
        done = recon.run(nowhere, tmp_path / "home", *command, **ours)
        assert done.returncode == 2
        assert "broken.toml: cannot be read" in done.stderr
    # A run that names a kind says what is wrong with the file, and not that there is no such kind.
    said = (
        "from flows.resolve import resolve; from flows.tasks.delivery import Delivery; "
        "given = {'batch_id': 1, 'decision': 'resend', 'reason': 'r', 'by': 'o'}; "
        "resolve.validate_parameters(given | {'operation': 'EditRefund'}); "
        "print(Delivery(paths=['a'], record='refund').record)"
    )
    done = subprocess.run(
        [sys.executable, "-c", said],
        env=os.environ | ours,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == "refund\n", done.stderr


def test_records_of_one_tenant_all_have_one(tmp_path: Path) -> None:
    """Of a record without a tenant nobody can say whether another one is of the same."""
    tenant = '[fields.TenantsId]\ntype = "integer"\nrequired = true'
    assert tenant in REFUND
    text = REFUND.replace(tenant, tenant.replace("true", "false"))
    fault = read(tmp_path, text.replace('key = ["Id", "TenantsId"]', 'key = ["Id"]'))
    assert fault is not None
    assert "same_tenant is for records that all have a TenantsId: required." in fault


def test_tables_of_a_moment_are_no_record_kinds() -> None:
    """PostgreSQL looks among them first, so a kind of that name would not be found."""
    source = "\n".join(path.read_text() for path in (ROOT / "connectors").rglob("*.py"))
    assert set(re.findall(r"TEMP TABLE ([a-z_]+)", source)) <= TEMPORARY


def test_no_row_of_kinds_that_refer_to_each_other_could_come_first(tmp_path: Path) -> None:
    fee = FEE.replace('"payment"', '"refund"')
    fault = read(tmp_path, REFUND.replace('"payment"', '"fee"'), fee)
    assert fault is not None
    assert "0.toml, line 38: references lead from refund back to it" in fault
    assert "1.toml, line 38: references lead from fee back to it" in fault


def test_kinds_refer_to_each_other(tmp_path: Path) -> None:
    fee = FEE.replace('"payment"', '"refund"')
    assert read(tmp_path, REFUND, fee) is None


def test_the_example_of_the_page_is_a_record_kind(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "records.md").read_text()
    # The second one is what is added to the first.
    example, more = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)
    assert read(tmp_path, f"{example}\n{more}") is None
    keys = re.findall(r"^\| `([a-z_]+)` \|", page, re.MULTILINE)
    assert keys == [*TABLE_KEYS, *FIELD_KEYS, *REFERENCE_KEYS, *ENDPOINT_KEYS]
