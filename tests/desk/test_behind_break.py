"""What is behind a break: both sides, the file as delivered, what was sent, and the past."""

from collections.abc import Callable
from pathlib import Path

import pytest

from connectors.files.profiles.profile import DEFAULT
from connectors.postgres.batches.record_rows import RowPlace, row_beginning_at, target_row
from flows.stages.sequence import import_delivery
from flows.stages.workspace import Workspace
from schemas.key_texts import key_values
from schemas.tables import EXTRACTS, PAYMENT
from tests.desk.browser import Browser
from tests.governance.runs import found, ids, reconcile
from tests.push.conftest import deliver, towards
from tests.push.deliveries import GATEWAYS
from tests.service.faulty_server import OK, FaultyServer, status
from tests.stages.payments import line, write

New = Callable[[], Browser]
SECRET = "correct-horse-battery"
REFUSED = status(400, error_code="Url")


def paid(workspace: Workspace, folder: Path) -> str:
    """The address of a break about a payment that two batches wrote and somebody changed."""
    import_delivery(workspace, [write(folder / "one.csv", line(1, amount="10.50"))], DEFAULT)
    two = [line(9), line(1, amount="12.50")]
    import_delivery(workspace, [write(folder / "two.csv", *two)], DEFAULT)
    with workspace.database.connect() as connection:
        connection.execute("""UPDATE payment SET "PaidAmount" = 11 WHERE "Id" = 1""")
    place = {"file": "two.csv", "line": 3, "batch_id": 2}
    one = found("1/7", amount="1.5", expected="12.5", found="11", delta=-1.5, **place)
    run = reconcile(workspace, one)
    return f"/runs/{run.id}/breaks/{ids(one)[0]}"


@pytest.mark.long
def test_both_sides_stand_beside_each_other_with_the_exact_difference(
    workspace: Workspace, browser: New, tmp_path: Path
) -> None:
    page = browser().open(paid(workspace, tmp_path))
    for told in (
        "PaidAmount 12.5 11 \N{MINUS SIGN}1.50 DiscountAmount 0.5 0.5",
        "last written by batch 2 , two.csv, line 3 (record 2), updated",
        "1,7,1,2,2026-01-01T10:00:00+01:00,12.50,0.5,1,9",
        "recon row 2 two.csv --record 2",
        "No delivered row of this record was to be sent to the service.",
        "Before that: batch 1 , one.csv, line 2 (record 1), inserted",
    ):
        assert told in page.text, (told, page.text)


@pytest.mark.long
def test_the_row_at_a_line_is_the_one_with_the_key_or_the_first(
    workspace: Workspace, tmp_path: Path
) -> None:
    """A break about a field of the key names a key that no row has."""
    import_delivery(workspace, [write(tmp_path / "one.csv", line(1), line(2))], DEFAULT)
    with workspace.database.connect() as connection:
        for key in (None, {"Id": 2, "TenantsId": 7}, {"Id": 3, "TenantsId": 7}):
            assert row_beginning_at(connection, 1, "one.csv", 3, key) == RowPlace(1, 2)
        assert row_beginning_at(connection, 1, "one.csv", 4, None) is None


def test_a_kept_file_that_is_gone_or_other_is_said(
    workspace: Workspace, browser: New, tmp_path: Path
) -> None:
    address = paid(workspace, tmp_path)
    kept = [path for path in workspace.settings.archive.rglob("*") if path.is_file()]
    for path in kept:
        path.unlink()
    page = browser().open(address)
    assert page.status == 200
    assert "Import the same file again" in page.text
    assert "PaidAmount 12.5 11" in page.text, "what the database has is still there"


@pytest.mark.long
def test_a_record_that_can_hold_a_secret_is_not_quoted(
    workspace: Workspace, browser: New, tmp_path: Path
) -> None:
    file = tmp_path / "gateways.csv"
    file.write_text(f"{GATEWAYS}\n7,1,pay,{SECRET},u,r\n")
    import_delivery(workspace, [str(file)], DEFAULT)
    place = {"file": file.name, "line": 2, "batch_id": 1}
    one = found("1:gateways.csv:1", code="REJECTED", record="payment_gateway", field="", **place)
    run = reconcile(workspace, one)
    page = browser().open(f"/runs/{run.id}/breaks/{ids(one)[0]}")
    assert page.status == 200
    assert SECRET not in page.answer.text
    assert "can hold a secret, so their text is not shown" in page.text


def test_no_value_is_shown_of_a_record_with_secrets_that_the_service_refused(
    workspace: Workspace, browser: New, tmp_path: Path
) -> None:
    """It may be refused because a lost cell moved the secret into a field that is none."""
    file = tmp_path / "gateways.csv"
    file.write_text(f"{GATEWAYS}\n7,1,{SECRET},url,u,r\n7,2,pay,key,u,r\n")
    with FaultyServer(lambda seen: REFUSED if SECRET in seen.body else OK) as server:
        deliver(towards(workspace, server.url), file)
    texts = []
    for number, name in ((1, SECRET), (2, "pay")):
        place = {"file": file.name, "line": number + 1, "batch_id": 1}
        key = f"1:{file.name}:{number}"
        one = found(key, code="REFUSED", record="payment_gateway", field="", **place)
        run = reconcile(workspace, one)
        texts.append(browser().open(f"/runs/{run.id}/breaks/{ids(one)[0]}").answer.text)
        assert (name in texts[-1]) is (number == 2), texts[-1]
    assert "no value of it is shown" in texts[0]
    assert "differs" not in texts[1].partition("<h2>Both sides</h2>")[2], "one side is not shown"


@pytest.mark.long
def test_a_role_that_loads_nothing_is_shown_what_it_may_read(
    workspace: Workspace, controller: str, desk_as: Callable[[str], str], tmp_path: Path
) -> None:
    address = paid(workspace, tmp_path)
    page = Browser(desk_as(controller)).open(address)
    page.client.close()
    assert page.status == 200
    assert "PaidAmount 12.5 11" in page.text
    assert "1,7,1,2,2026-01-01T10:00:00+01:00,12.50" in page.text
    assert "may not read earlier versions of the record" in page.text


@pytest.mark.parametrize(
    ("key", "names"),
    [
        ("12/7", {"Id": 12, "TenantsId": 7}),
        ("12/7#2", {"Id": 12, "TenantsId": 7}),
        ("12/7#6:b.csv:2", {"Id": 12, "TenantsId": 7}),
        ("-3/7", {"Id": -3, "TenantsId": 7}),
        ("12", None),  # The number of a debt, perhaps.
        ("/9", None),
        ("6:payments.csv:3", None),
        ("1/2/3", None),
        (None, None),
    ],
)
def test_a_key_is_that_of_a_row_where_it_names_all_of_it(
    key: str | None, names: dict[str, int] | None
) -> None:
    assert key_values(PAYMENT, key) == names


@pytest.mark.long
@pytest.mark.parametrize("placed", [True, False])
def test_a_record_whose_key_has_a_text_is_found_by_it_or_by_its_row(
    workspace: Workspace, browser: New, tmp_path: Path, placed: bool
) -> None:
    for number in (1, 2):
        file = tmp_path / f"{number}.csv"
        file.write_text(f"{GATEWAYS}\n7,1,a/b,key,u{number},r\n")
        import_delivery(workspace, [str(file)], DEFAULT)
    # The row that the break is about was written over since.
    place = {"file": "1.csv", "line": 2, "batch_id": 1} if placed else {}
    for key in ("7/1/a/b", "1:1.csv:1"):
        one = found(key, code="VALUE", record="payment_gateway", field="NotifyUrl", **place)
        run = reconcile(workspace, one)
        page = browser().open(f"/runs/{run.id}/breaks/{ids(one)[0]}")
        if placed or key == "7/1/a/b":
            assert "last written by batch 2 , 2.csv" in page.text, page.text
        else:
            assert "Too little is known of the record to look it up" in page.text
        assert "The database has no such record now" not in page.text


@pytest.mark.long
def test_a_file_that_was_refused_is_no_record_that_was_delivered(
    workspace: Workspace, browser: New, tmp_path: Path
) -> None:
    import_delivery(workspace, [write(tmp_path / "other.csv", line(1))], DEFAULT)
    one = found(
        "1/pay.csv",
        code="FILE_REFUSED",
        record="",
        field="",
        amount=None,
        file="pay.csv",
        batch_id=1,
    )
    page = browser().open(f"/runs/{reconcile(workspace, one).id}/breaks/{ids(one)[0]}")
    assert "in batch 1 , pay.csv" in page.text
    assert 'href="/batches/1"' in page.answer.text
    assert "Both sides" not in page.text


def test_no_secret_is_asked_for_of_any_record(workspace: Workspace) -> None:
    with workspace.database.connect() as connection:
        for table in EXTRACTS.values():
            assert target_row(connection, table, key=None, by=RowPlace(1, 1)) is None
