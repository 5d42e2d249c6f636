"""A correction is taken on the terms of the batch it corrects, and what it leaves out is kept."""

import csv
import io
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from connectors.errors import BatchUnknown, CorrectionError
from connectors.files.profiles.profile import DEFAULT, Profile
from connectors.postgres.batches.ledger import State
from flows.stages.rows.rejects import write_rejects
from flows.stages.sequence import Ended, import_delivery
from flows.stages.workspace import Workspace
from tests.conftest import Once
from tests.stages.payments import HEADER, line

REPAIRS = f"ReconRow,{HEADER}"
CHANGE = replace(DEFAULT, change_records=True)
BANK = replace(DEFAULT, feed="bank", tenant=7, budget_errors=2, delimiter=";", decimal=",")


def semicolons(*lines: str) -> list[str]:
    return [one.replace(",", ";").replace(".", ",") for one in lines]


@pytest.fixture
def bound(workspace: Workspace, tmp_path: Path, once: Once) -> Workspace:
    """A batch of a feed and a tenant: one row is clean, one rejected."""

    def build() -> None:
        path = tmp_path / "a.csv"
        path.write_text("\n".join(semicolons(HEADER, line(1), line(2, amount="ten"))) + "\n")
        ended = import_delivery(workspace, [str(path)], BANK)
        assert ended.batch.state is State.COMPLETE_WITH_ERRORS

    return once(build)


def deliver(workspace: Workspace, path: Path, profile: Profile = DEFAULT, corrects: int = 1) -> Any:
    return import_delivery(workspace, [str(path)], profile, corrects=corrects)


@pytest.mark.long
def test_tenant_feed_form_and_budget_are_those_of_the_corrected_batch(
    workspace: Workspace, rows: Any, tmp_path: Path, bound: Workspace
) -> None:
    ((path, _),) = write_rejects(workspace, 1, tmp_path / "out", with_secrets=False).items()
    head, two = path.read_text().splitlines()
    foreign = two.replace("ten", "10,50").replace(";7;", ";8;", 1)
    assert foreign != two
    bad = [two.replace("1:2", ""), two.replace("1:2", "1:1")]
    path.write_text("\n".join([head, foreign, *bad]) + "\n")
    ended = deliver(workspace, path)
    assert (ended.batch.feed, ended.batch.state) == ("bank", State.HELD)
    errors = rows("SELECT error_data FROM staged_payment WHERE batch_id = 2 ORDER BY record_number")
    assert "TenantNotBound" in errors[0][0]
    path.write_text("\n".join([head, two.replace("ten", "10,50")]) + "\n")
    assert deliver(workspace, path).batch.state is State.COMPLETE
    assert rows('SELECT "PaidAmount"::text, "TenantsId" FROM payment WHERE "Id" = 2') == [
        ("10.50", 7)
    ]


@pytest.mark.long(but=("profile2-of the feed bank",))
@pytest.mark.parametrize(
    ("profile", "message"),
    [
        (replace(DEFAULT, tenant=8), "bound to tenant 7"),
        (replace(BANK, tenant=8), "bound to tenant 7"),
        (replace(DEFAULT, feed="other"), "of the feed bank"),
    ],
)
def test_other_terms_are_refused_before_anything_is_kept(
    workspace: Workspace,
    rows: Any,
    tmp_path: Path,
    bound: Workspace,
    profile: Profile,
    message: str,
) -> None:
    path = tmp_path / "repair.csv"
    path.write_text(f"{REPAIRS}\n1:2,{line(2)}\n")
    with pytest.raises(CorrectionError, match=message):
        deliver(workspace, path, profile)
    with pytest.raises(BatchUnknown):
        deliver(workspace, path, corrects=99)
    assert rows("SELECT count(*) FROM batch") == [(1,)]


@pytest.mark.long
def test_a_profile_of_the_same_feed_says_how_the_correction_is_written(
    workspace: Workspace, rows: Any, tmp_path: Path, bound: Workspace
) -> None:
    path = tmp_path / "repair.csv"
    path.write_text(f"{REPAIRS}\n1:2,{line(2)}\n")
    ended = deliver(workspace, path, replace(DEFAULT, feed="bank", delimiter=","))
    assert ended.batch.state is State.COMPLETE
    assert rows("SELECT profile::json ->> 'tenant' FROM batch WHERE id = 2") == [("7",)]


@pytest.mark.long
@pytest.mark.parametrize(("then", "stated"), [("last_wins", "conflict"), ("conflict", "last_wins")])
def test_rows_are_judged_as_those_of_the_corrected_batch(
    workspace: Workspace, rows: Any, tmp_path: Path, then: str, stated: str
) -> None:
    """Whatever a profile says that states how this file is written."""
    path = tmp_path / "a.csv"
    path.write_text("\n".join([HEADER, line(1), line(2, amount="ten")]) + "\n")
    deliver_first = replace(DEFAULT, feed="bank", duplicate=then, budget_read=0.0)
    import_delivery(workspace, [str(path)], deliver_first)
    path.write_text("\n".join(semicolons(REPAIRS, f"1:2,{line(1, amount='77')}")) + "\n")
    ended = deliver(workspace, path, replace(BANK, duplicate=stated, budget_errors=5))
    complete = State.COMPLETE if then == "last_wins" else State.COMPLETE_WITH_ERRORS
    assert ended.batch.state is complete
    assert rows("SELECT DISTINCT profile::json ->> 'budget_read' FROM batch") == [("0.0",)]


@pytest.mark.long
@pytest.mark.parametrize("numbered", [False, True])
def test_equal_rows_of_a_correction_are_judged_as_those_of_the_corrected_batch(
    workspace: Workspace, rows: Any, tmp_path: Path, numbered: bool
) -> None:
    """Whether its own rows are `numbered`, or those they repair: the other numbers are made."""
    by_number = replace(DEFAULT, feed="bank", record="payment", thousands="'")
    made = replace(by_number, fields={"Id": {"key": ("DebtsId", "PaymentDate")}})
    theirs, own = (made, by_number) if numbered else (by_number, made)
    path = tmp_path / "a.csv"

    def numbered_by(profile: Profile, *lines: str) -> list[str]:
        return [one.partition(",")[2] if profile is made else one for one in (HEADER, *lines)]

    bad = numbered_by(theirs, line(1, amount="ten"), line(2, amount="ten"))
    path.write_text("\n".join(bad) + "\n")
    import_delivery(workspace, [str(path)], theirs)
    names = ("ReconRow", "1:1", "1:2")
    repairs = zip(names, numbered_by(own, line(1), line(1)), strict=True)
    path.write_text("\n".join(map(",".join, repairs)) + "\n")
    deliver(workspace, path, own)
    assert rows("SELECT state, count(*) FROM staged_row GROUP BY 1 ORDER BY 1") == [
        ("conflict", 2),
        ("rejected", 2),
    ]


@pytest.mark.long
@pytest.mark.parametrize("stated", [None, "payment"])
def test_a_header_that_says_little_is_of_the_record_that_is_corrected(
    workspace: Workspace, tmp_path: Path, stated: str | None
) -> None:
    """Two columns of an avatar are taken for a message tone's; where a kind is stated it counts."""
    path = tmp_path / "avatars.csv"
    path.write_text("TenantsId,Name\nx,Ann\n")
    import_delivery(workspace, [str(path)], DEFAULT, record="avatar")
    path.write_text("ReconRow,TenantsId,Name\n1:1,7,Ann\n")
    ended = deliver(workspace, path, replace(DEFAULT, record=stated))
    assert ended.batch.state is (State.COMPLETE if stated is None else State.COMPLETE_WITH_ERRORS)
    assert [chain.record for chain in ended.report.chains] == (["avatar"] if stated is None else [])


@pytest.mark.long
def test_a_correction_of_a_correction_is_bound_as_the_first(
    workspace: Workspace, rows: Any, tmp_path: Path, bound: Workspace
) -> None:
    ((path, _),) = write_rejects(workspace, 1, tmp_path / "out", with_secrets=False).items()
    path.write_text(path.read_text().replace("ten", "eleven"))
    deliver(workspace, path)
    ((again, _),) = write_rejects(workspace, 2, tmp_path / "again", with_secrets=False).items()
    again.write_text(again.read_text().replace("eleven", "11").replace(";7;", ";8;", 1))
    deliver(workspace, again, corrects=2)
    assert rows("SELECT DISTINCT feed, profile::json ->> 'tenant' FROM batch") == [("bank", "7")]
    assert rows("SELECT state FROM staged_row WHERE batch_id = 3") == [("rejected",)]


@pytest.mark.long
@pytest.mark.parametrize("repairs", [True, False])
def test_the_record_kind_is_that_of_the_first_batch(
    workspace: Workspace, rows: Any, tmp_path: Path, repairs: bool
) -> None:
    """However often a row is corrected, and whether it names what it repairs or has a key alone."""
    path = tmp_path / "avatars.csv"
    path.write_text("TenantsId,Name\nx,Ann\n")
    import_delivery(workspace, [str(path)], DEFAULT, record="avatar")
    for batch, tenant in ((1, "y"), (2, "z"), (3, "7")):
        head, row = ("ReconRow,", f"{batch}:1,") if repairs else ("", "")
        path.write_text(f"{head}TenantsId,Name\n{row}{tenant},Ann\n")
        ended = deliver(workspace, path, corrects=batch)
    assert ended.batch.state is State.COMPLETE
    assert [chain.record for chain in ended.report.chains] == ["avatar"]
    assert rows('SELECT "TenantsId", "Name" FROM avatar') == [(7, "Ann")]


@pytest.mark.long(but=("utf-8-False",))
@pytest.mark.parametrize(
    ("encoding", "taken"), [("utf-8", False), ("utf-8-sig", True), ("cp1252", True)]
)
def test_a_correction_is_not_read_in_another_encoding_than_it_was_saved_in(
    workspace: Workspace, rows: Any, tmp_path: Path, encoding: str, taken: bool
) -> None:
    """Each sign beyond ASCII of a text in UTF-8 is several in one of Windows, and no error."""
    path = tmp_path / "avatars.csv"
    path.write_bytes("TenantsId,Name\nx,Zürich\n".encode("cp1252"))
    swiss = replace(DEFAULT, feed="swiss", record="avatar", encoding="cp1252")
    import_delivery(workspace, [str(path)], swiss)
    path.write_bytes("ReconRow,TenantsId,Name\n1:1,7,Zürich\n".encode(encoding))
    if taken:
        assert deliver(workspace, path).batch.state is State.COMPLETE
        assert rows('SELECT "Name" FROM avatar') == [("Zürich",)]
    else:
        for profile in (DEFAULT, swiss):
            with pytest.raises(CorrectionError, match=r"saved as UTF-8, .* written in cp1252"):
                deliver(workspace, path, profile)
        stated = replace(swiss, encoding="utf-8")
        assert deliver(workspace, path, stated).batch.state is State.COMPLETE


GATEWAYS = "TenantsId,PaymentActionsId,Name,ServiceKey"
KEYS = 'SELECT "Name", "ServiceKey" FROM payment_gateway ORDER BY 1'


@pytest.fixture
def gateways(workspace: Workspace, tmp_path: Path) -> Ended:
    """Two live gateways, and a batch that changes one of them and has errors."""
    live = tmp_path / "live.csv"
    live.write_text(f"{GATEWAYS}\n7,1,Stripe,live-1\n7,2,Adyen,live-2\n")
    import_delivery(workspace, [str(live)], DEFAULT)
    path = tmp_path / "gateways.csv"
    path.write_text(f"{GATEWAYS}\n7,x,Stripe,next-1\n7,y,Adyen,\n8,1,Mollie,next-3\n")
    return import_delivery(workspace, [str(path)], DEFAULT)


def corrected(path: Path, *changes: tuple[str, str]) -> Path:
    text = path.read_text()
    for old, new in changes:
        assert old in text, text
        text = text.replace(old, new)
    path.write_text(text)
    return path


@pytest.mark.long
def test_a_secret_that_was_left_out_keeps_what_was_delivered(
    workspace: Workspace, rows: Any, tmp_path: Path, gateways: Ended
) -> None:
    ((path, count),) = write_rejects(workspace, 2, tmp_path / "out", with_secrets=False).items()
    assert count == 2
    assert "next" not in path.read_text()
    assert path.stat().st_mode & 0o777 == 0o600
    # A row with an empty cell may have slipped: nothing of it is written.
    assert path.read_text().splitlines()[1:] == ["2:1,7,x,Stripe,", "2:2,,,,"]
    # The key of the row cannot be read, and a record of another delivery is to have what it says.
    repaired = corrected(path, (",x,", ",1,"), ("2:2,,,,", ""))
    ended = deliver(workspace, repaired, CHANGE, corrects=2)
    assert ended.batch.state is State.COMPLETE
    assert rows(KEYS) == [("Adyen", "live-2"), ("Mollie", "next-3"), ("Stripe", "next-1")]


def test_a_chain_of_corrections_keeps_the_first_secret(
    workspace: Workspace, rows: Any, tmp_path: Path, gateways: Ended
) -> None:
    ((path, _),) = write_rejects(workspace, 2, tmp_path / "out", with_secrets=False).items()
    deliver(workspace, corrected(path, (",x,", ",z,"), ("2:2,,,,", "")), corrects=2)
    ((again, _),) = write_rejects(workspace, 3, tmp_path / "again", with_secrets=False).items()
    assert again.read_text().splitlines()[1:] == ["3:1,,,,"]
    again.write_text(f"ReconRow,{GATEWAYS}\n3:1,7,1,Stripe,\n")
    ended = deliver(workspace, again, CHANGE, corrects=3)
    assert ended.batch.state is State.COMPLETE, ended.report.reasons
    assert rows(KEYS) == [("Adyen", "live-2"), ("Mollie", "next-3"), ("Stripe", "next-1")]


REFUSED = {
    "no such row": "2:9,7,1,Stripe,",
    "a name that is none": "x,7,1,Stripe,",
    "no name": ",7,1,Stripe,",
    "quoted and empty": '2:9,7,1,Stripe,""',
    "a row that may have slipped": "2:2,7,2,Adyen II,",
}


@pytest.mark.long(but=("no name",))
@pytest.mark.parametrize("text", REFUSED.values(), ids=REFUSED)
def test_a_secret_that_cannot_be_told_is_never_taken_for_none(
    workspace: Workspace,
    rows: Any,
    tmp_path: Path,
    gateways: Ended,
    text: str,
) -> None:
    before = rows(KEYS)
    path = tmp_path / "repair.csv"
    for corrects, row in ((2, text), (3, "3:1" + text[text.index(",") :])):
        path.write_text(f"ReconRow,{GATEWAYS}\n{row}\n")
        ended = import_delivery(workspace, [str(path)], DEFAULT, corrects=corrects)
        told = [reason.code for reason in ended.report.reasons]
        assert told == ["SecretLeftOut"], "also of what was refused for it"
    assert rows(KEYS) == before


@pytest.mark.long
def test_a_column_that_was_taken_out_is_left_out_too(
    workspace: Workspace, rows: Any, tmp_path: Path, gateways: Ended
) -> None:
    path = tmp_path / "repair.csv"
    path.write_text("ReconRow,TenantsId,PaymentActionsId,Name\n2:1,7,1,Stripe\n")
    deliver(workspace, path, CHANGE, corrects=2)
    assert ("Stripe", "next-1") in rows(KEYS)


OUTER = "Data,HasError,Merged,BatchId,Jsondata,ErrorData"
INSIDE = {
    "as an object": (
        DEFAULT,
        "",
        '{"TenantsId":"x","PaymentActionsId":"1","Name":"Stripe","ServiceKey":"next"}',
    ),
    "by place": (replace(DEFAULT, inner_record="payment_gateway"), "x,1,Stripe,next,u,v", ""),
}


@pytest.mark.long(but=("by place",))
@pytest.mark.parametrize(("profile", "data", "jsondata"), INSIDE.values(), ids=INSIDE)
def test_a_record_inside_keeps_its_secret_or_is_refused(
    workspace: Workspace, rows: Any, tmp_path: Path, profile: Profile, data: str, jsondata: str
) -> None:
    path = tmp_path / "batch.csv"
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([OUTER.split(","), [data, "", "", "1", jsondata, ""]])
    import_delivery(workspace, [str(path)], profile)
    ((rejects, _),) = write_rejects(workspace, 1, tmp_path / "out", with_secrets=False).items()
    assert "next" not in rejects.read_text()
    deliver(workspace, rejects)
    assert rows("SELECT state FROM staged_row WHERE batch_id = 2") == [("rejected",)]
    repaired = io.StringIO()
    inner = '{"TenantsId":7,"PaymentActionsId":1,"Name":"Stripe"}'
    csv.writer(repaired).writerows(
        [["ReconRow", *OUTER.split(",")], ["1:1", "", "", "", "1", inner, ""]]
    )
    rejects.write_text(repaired.getvalue())
    ended = deliver(workspace, rejects)
    told = [reason.code for reason in ended.report.reasons]
    assert (told, rows(KEYS)) in (([], [("Stripe", "next")]), (["SecretLeftOut"], []))


@pytest.mark.long
def test_secret_constants_are_inherited(workspace: Workspace, rows: Any, tmp_path: Path) -> None:
    profile = replace(DEFAULT, feed="shop", constants={"ServiceKey": "constant-1"})
    path = tmp_path / "gateways.csv"
    path.write_text("TenantsId,PaymentActionsId,Name\n7,x,Stripe\n")
    import_delivery(workspace, [str(path)], profile)
    for form in (DEFAULT, replace(DEFAULT, feed="shop", delimiter=",")):
        path.write_text(
            f"ReconRow,TenantsId,PaymentActionsId,Name\n1:1,7,{len(form.feed)},Stripe\n"
        )
        assert deliver(workspace, path, form).batch.state is State.COMPLETE
    assert {key for _, key in rows(KEYS)} == {"constant-1"}


@pytest.mark.long
def test_a_correction_refers_to_the_records_of_the_delivery_it_repairs(
    workspace: Workspace, rows: Any, tmp_path: Path
) -> None:
    """Where each delivery brings all that it refers to, it is part of that one; and of no other."""
    head = "Id,TenantsId,FromCurrenciesId,ToCurrenciesId,ExchangeRate,EffectiveDate"
    rates = tmp_path / "currency_rates.csv"
    brings_all = replace(DEFAULT, complete=True)

    def rate(number: int, exchange: str = "1.5") -> str:
        return f"{number},7,1,2,{exchange},2026-01-01T00:00:00"

    rates.write_text(f"{head}\n{rate(5)}\n")
    import_delivery(workspace, [str(rates)], DEFAULT)
    rates.write_text(f"{head}\n{rate(9)}\n{rate(8, 'x')}\n")
    payments = tmp_path / "payments.csv"
    wrong = [line(1), *(line(number, amount="ten") for number in (2, 3, 4))]
    payments.write_text("\n".join([HEADER, *wrong]) + "\n")
    ended = import_delivery(workspace, [str(rates), str(payments)], brings_all)
    assert ended.batch.state is State.COMPLETE_WITH_ERRORS
    named = {}
    for path in write_rejects(workspace, ended.batch.id, tmp_path / "out", with_secrets=False):
        for row in csv.DictReader(io.StringIO(path.read_text())):
            named[row["Id"], "ExchangeRate" in row] = row["ReconRow"]

    def repair(*pairs: tuple[int, int], amount: str, form: Profile = DEFAULT) -> list[str]:
        """What becomes of payments that name these rates."""
        repaired = [
            f"{named[str(number), False]},{line(number, amount=amount).removesuffix('9')}{of}"
            for number, of in pairs
        ]
        payments.write_text("\n".join([REPAIRS, *repaired]) + "\n")
        batch = deliver(workspace, payments, form, ended.batch.id).batch.id
        told = "SELECT state FROM staged_row WHERE batch_id = %s ORDER BY record_number"
        return [state for (state,) in rows(told, [batch])]

    # Of these rates one was rejected, and one was brought by another delivery.
    found = repair((2, 9), (3, 8), (4, 5), amount="1")
    assert found == ["inserted", "rejected", "rejected"]
    # However the file of the correction is written.
    assert repair((4, 5), amount="3", form=replace(DEFAULT, delimiter=",")) == ["rejected"]
    rates.write_text(f"ReconRow,{head}\n{named['8', True]},{rate(8)}\n")
    assert deliver(workspace, rates, DEFAULT, ended.batch.id).batch.state is State.COMPLETE
    assert repair((3, 8), amount="2") == ["inserted"], "another correction brought it"
