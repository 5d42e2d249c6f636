"""A scope of tenants reads what is theirs: rows that name them, and what their batches brought."""

from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

from connectors.files.profiles.profile import DEFAULT
from connectors.postgres.batches.ledger import find_batch
from flows.stages.reconcile.run import reconcile
from flows.stages.reconcile.scope import Asked, Scope
from flows.stages.reconcile.sources import Gathered, gather_sources
from flows.stages.reconcile.tied import found_in
from flows.stages.sequence import import_delivery
from flows.stages.workspace import Workspace
from flows.steps.rules.rules import Rules
from flows.steps.totals import Totals, add
from schemas.tables import EXTRACTS
from tests.conftest import Once
from tests.stages.payments import line, write

DETAIL = (
    "PaymentPlansId,PlannedDate,PlannedAmount,PlannedCurrenciesId,PaymentsId,StatusCodesId\n"
    "{0},2026-01-02T00:00:00Z,10.50,1,{0},1\n"
)
USERS = "Id,UserName,Email\n{0},user{0},user{0}@example.com\n"


@pytest.fixture
def place(workspace: Workspace, tmp_path: Path, once: Once) -> Workspace:
    """A delivery bound to tenant 7, one bound to 8, and one to none with rows of both."""

    def build() -> None:
        for number, tenant in ((7, 7), (8, 8), (9, None)):
            folder = tmp_path / str(number)
            rows = [line(number, tenant=tenant or 7), line(number * 10, tenant=tenant or 8)]
            # A row of which nobody can tell whose it is.
            rows.append(line(number * 100).replace(f"{number * 100},7,", f"{number * 100},?,"))
            files = [write(folder / f"payments-{number}.csv", *rows)]
            for name, text in {"details": DETAIL, "users": USERS}.items():
                path = folder / f"{name}-{number}.csv"
                path.write_text(text.format(number))
                files.append(str(path))
            import_delivery(workspace, files, replace(DEFAULT, tenant=tenant))

    return once(build)


def gathered(place: Workspace, scope: Scope) -> Gathered:
    with place.database.connect() as connection:
        return gather_sources(place, connection, scope, {})


KEYS = {"payment": "Id", "payment_plan_detail": "PaymentPlansId", "user_account": "Id"}


@pytest.mark.long
@pytest.mark.parametrize("side", ["extract", "database"])
def test_it_reads_rows_of_its_tenants_and_of_their_batches(place: Workspace, side: str) -> None:
    frames = getattr(gathered(place, Scope(tenants=(7,))).sources, side)
    read = {record: {*frames[record][key].drop_nulls()} for record, key in KEYS.items()}
    unread = {700} if side == "extract" else set()
    assert read == {
        "payment": {7, 70, 9, *unread},
        "payment_plan_detail": {7},
        "user_account": {7},
    }


@pytest.mark.long
@pytest.mark.parametrize("record", KEYS)
def test_reports_of_tenants_and_what_names_none_add_up_to_everything(
    place: Workspace, record: str
) -> None:
    def totals(scope: Scope) -> tuple[Totals, Totals]:
        one, table = gathered(place, scope), EXTRACTS[record]
        found = found_in(table, one.sources.extract[record])
        nameless = (of for (_, kind), of in one.nameless.items() if kind == record)
        return tuple(add(of for of, _ in some) for some in (found.values(), nameless))  # type: ignore[return-value]

    (seven, nobody), (eight, the_same) = (totals(Scope(tenants=(one,))) for one in (7, 8))
    assert (nobody, nobody.rows) == (the_same, 1)
    assert totals(Scope()) == (seven + eight + nobody, Totals())


@pytest.mark.long
def test_page_one_says_what_only_the_report_of_everything_has(place: Workspace) -> None:
    def notes(scope: Scope) -> list[str]:
        report = reconcile(place, Asked(scope, date(2026, 1, 31), Rules(), by="ann")).report
        assert report.changes is not None
        return [one for one in report.changes.notes if "everything alone" in one]

    assert notes(Scope(tenants=(7,))) == [
        "Rows that name no tenant, of deliveries that are bound to none, are in the report of "
        "everything alone: 1 row of payment (PaidAmount 10.50 in currency 1; DiscountAmount 0.50 "
        "in currency 1), 1 row of payment plan detail (PlannedAmount 10.50 in currency 1), 1 row "
        "of user account record"
    ]
    assert notes(Scope()) == []


@pytest.mark.long
def test_page_one_says_how_many_of_these_have_no_readable_amount(
    workspace: Workspace, tmp_path: Path
) -> None:
    of_nobody = [line(2, amount="12.25"), line(3, amount="abc"), line(4, amount="1")]
    of_nobody[2] = of_nobody[2].replace(",1,9", ",12,9")
    rows = [line(1), *(one.replace(",7,", ",?,", 1) for one in of_nobody)]
    import_delivery(workspace, [write(tmp_path / "payments.csv", *rows)], DEFAULT)
    asked = Asked(Scope(tenants=(7,)), date(2026, 1, 31), Rules(), by="ann")
    report = reconcile(workspace, asked).report
    assert report.changes is not None
    (note,) = [one for one in report.changes.notes if "everything alone" in one]
    assert note.partition("alone: ")[2] == (
        "3 rows of payment (PaidAmount 12.25 in currency 1; DiscountAmount 1.00 in currency 1; "
        "PaidAmount 1.00 in currency 12; DiscountAmount 0.50 in currency 12; "
        "1 without a readable PaidAmount)"
    )


def test_it_names_no_file_of_a_delivery_for_others(place: Workspace) -> None:
    one = gathered(place, Scope(tenants=(7,)))
    assert {Path(extract.name).stem.partition("-")[2] for extract in one.extracts} == {"7", "9"}
    assert one.untied == ()
    with place.database.connect() as connection:
        assert {find_batch(connection, number).tenant for number in one.batches} == {7, None}


@pytest.mark.long
def test_everything_is_everything(place: Workspace) -> None:
    sources = gathered(place, Scope()).sources
    assert {*sources.extract["user_account"]["Id"]} == {7, 8, 9}
    assert {*sources.database["payment_plan_detail"]["PaymentPlansId"]} == {7, 8, 9}


def test_what_nobody_delivered_is_read_where_the_target_has_it(place: Workspace) -> None:
    """No extract has invoice files: what is there was brought by somebody else."""
    with place.database.connect() as connection:
        connection.execute(
            """INSERT INTO invoice_file ("Id", "TenantsId", "DebtsId", "InvoiceUrl", batch_id,
               extract_id, record_number) VALUES (1, 8, 2, 'https://i/1', 1, 1, 0)"""
        )
    scopes = [Scope(), Scope(tenants=(8,)), Scope(tenants=(7,)), Scope(feeds=("default",))]
    sides = [gathered(place, scope).sources for scope in scopes]
    assert ["invoice_file" in one.database for one in sides] == [True, True, False, False]
    report = reconcile(place, Asked(scopes[1], date(2026, 1, 31), Rules())).report
    told = report.breaks.where("code", "MISSING_IN_EXTRACT").where("record", "invoice_file")
    assert [(one.key, one.side, one.state) for one in told] == [("1/8", "D", "NEW")]
    expected = {one.record: one.expected for one in report.cover.truths}
    assert (expected["payment"], expected["invoice_file"]) == ("E", "")
