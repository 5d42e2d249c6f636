"""The sample deliveries pushed to the documented service itself, and its listings read back."""

import csv
import json
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from connectors.errors import ServiceUnusable
from connectors.files.profiles.profile import DEFAULT
from connectors.postgres.batches.ledger import State
from connectors.sandbox import Fault, FaultKind, Faults, Sandbox
from flows.stages.pull import compare, our_rows, pull
from flows.stages.reconcile.run import Asked, reconcile
from flows.stages.reconcile.scope import Scope
from flows.stages.sequence import import_delivery, push_batch
from flows.stages.workspace import Workspace
from flows.steps.rules.rules import Rules
from schemas.operations import PUSHES
from schemas.tables import INSERT_BATCH_DATA
from tests.examples import ALL, in_long
from tests.push.conftest import deliver, sandbox_at, towards

SAMPLES = Path(__file__).parents[2] / "data_samples"


STYLES = ("pascal-5 csv", "camel-core json")
MANY = ("currency_rates", "invoice_files", "payment_plan_details", "payments")
"""Samples of hundreds of rows."""


@pytest.fixture(params=STYLES)
def host(request: Any, database_url: str) -> Iterator[tuple[Sandbox, str, str]]:
    style, form = request.param.split()
    with sandbox_at(database_url, style=style, zone="UTC") as (sandbox, url):
        yield sandbox, url, form


@pytest.mark.long
@pytest.mark.parametrize("host", [STYLES[0], STYLES[1]], indirect=True)
def test_the_sample_delivery_is_at_the_service_to_the_cent(
    workspace: Workspace, rows: Any, host: tuple[Sandbox, str, str]
) -> None:
    _, url, form = host
    place = towards(workspace, url, form)
    ended = deliver(place, SAMPLES / "clean")
    report = ended.report
    assert (report.verdict, ended.exit_code) == ("complete", 0)
    assert {one.operation for one in report.pushed} == {one.name for one in PUSHES.values()}
    assert all(one.ties and set(one.states) == {"acknowledged"} for one in report.pushed)
    for record in ("payment", "currency_rate", "invoice_file", "message_tone", "action_document"):
        assert rows(f"SELECT count(*) FROM sandbox.{record}") == rows(
            f"SELECT count(*) FROM {record}"
        ), record
    ours = rows('SELECT "CurrenciesId", sum("PaidAmount") FROM payment GROUP BY 1 ORDER BY 1')
    theirs = rows(
        'SELECT "CurrenciesId", sum("PaidAmount"::numeric) FROM sandbox.payment '
        "GROUP BY 1 ORDER BY 1"
    )
    assert ours == theirs
    assert rows('SELECT count(*) FROM insert_batch_data WHERE NOT "Merged" AND "HasError"') == [
        (0,)
    ]
    before = rows("SELECT sum(attempts) FROM send")
    push_batch(place, ended.batch.id)
    assert rows("SELECT sum(attempts) FROM send") == before


@pytest.mark.long
def test_the_dirty_delivery_and_its_correction_meet_at_the_service(
    workspace: Workspace, rows: Any, host: tuple[Sandbox, str, str]
) -> None:
    _, url, form = host
    place = towards(workspace, url, form)
    dirty = deliver(place, SAMPLES / "dirty")
    assert dirty.batch.state is State.COMPLETE_WITH_ERRORS
    assert all(one.ties and set(one.states) == {"acknowledged"} for one in dirty.report.pushed)
    corrected = deliver(place, SAMPLES / "correction")
    assert all(one.ties for one in corrected.report.pushed)
    again = deliver(place, SAMPLES / "clean")
    assert again.report.verdict == "complete"
    (sent,) = rows(
        "SELECT count(*) FROM send WHERE batch_id = %s AND attempts > 0", [again.batch.id]
    )
    assert sent == (0,)


@pytest.mark.long
def test_a_role_that_may_not_register_stops_at_that_operation(
    workspace: Workspace, rows: Any, database_url: str
) -> None:
    from connectors.sandbox import SandboxOptions, User
    from tests.push.conftest import USER

    options = SandboxOptions(users=(User(USER.name, USER.password, ("Client",)),), password_cost=16)
    with (
        Sandbox(options, database_url).running() as url,
        pytest.raises(ServiceUnusable, match="are unsent and nothing is lost") as stop,
    ):
        deliver(
            towards(workspace, url),
            *(
                SAMPLES / "clean" / f"{one}.csv"
                for one in ("client_registrations", "message_tones")
            ),
        )
    assert USER.password not in str(stop.value)
    assert rows("SELECT DISTINCT state FROM send WHERE operation = 'ClientRegister'") == [
        ("unsent",)
    ]
    assert rows("SELECT state FROM batch") == [("merged",)]


@pytest.mark.long
def test_no_secret_is_told_anywhere(
    workspace: Workspace, rows: Any, host: tuple[Sandbox, str, str], tmp_path: Path
) -> None:
    _, url, form = host
    registrations = tmp_path / "registrations.csv"
    registrations.write_text(
        "EMail,FirstName,LastName,Password,ConfirmPassword,Company\n"
        "ann@example.com,Ann,Lee,canary-secret,canary-secret,Acme\n"
    )
    place = towards(workspace, url, form)
    deliver(place, registrations)
    twice = tmp_path / "again.csv"
    twice.write_text(registrations.read_text().replace("Acme", "Other"))
    refused = deliver(place, twice)
    assert [reason.code for reason in refused.report.reasons] == ["Conflict"]
    told = [path.read_text() for path in place.settings.reports.rglob("*") if path.is_file()]
    kept = rows("SELECT error_data, echo, service_id FROM send")
    assert "canary-secret" not in "".join(told) + str(kept)
    assert kept[0][2] is not None


@pytest.mark.long
def test_listings_are_staged_and_change_nothing_of_ours(
    workspace: Workspace, rows: Any, host: tuple[Sandbox, str, str]
) -> None:
    sandbox, url, form = host
    for record in ("avatar", "payment_plan_detail", "insert_batch_data"):
        sandbox.load(record, SAMPLES / "clean" / f"{_plural(record)}.csv")
    place = towards(workspace, url, form)
    first = pull(place)
    assert first.ended.batch.state is State.COMPLETE
    listed = {chain.record: dict(chain.states) for chain in first.ended.report.chains}
    for record, states in listed.items():
        (count,) = rows(f"SELECT count(*) FROM sandbox.{record}")[0]
        assert sum(totals.rows for totals in states.values()) == count
        assert set(states) <= {"listed", "superseded"}
    assert set(listed) == {"avatar", "payment_plan_detail", "insert_batch_data"}
    assert rows("SELECT count(*) FROM avatar") == [(0,)]
    assert rows("SELECT count(*) FROM insert_batch_data") == [(0,)]
    again = pull(place)
    assert again.ended.batch.id == first.ended.batch.id
    assert not again.ended.new
    pulls = rows("SELECT batch_id, detail FROM event WHERE what = 'pull' ORDER BY id")
    assert [batch for batch, _ in pulls] == [1, 1]
    proofs = [one["proof"] for one in json.loads(pulls[0][1])["listings"].values()]
    assert len(proofs) == 3
    assert all(proofs)


@pytest.mark.long
@pytest.mark.parametrize(
    ("record", "lines"),
    [
        ("avatar", ["TenantsId,Name,ImageUrl", "1,Ann,", "1,Bob,"]),
        (
            "payment_plan_detail",
            [
                "PaymentPlansId,PlannedDate,PlannedAmount,PlannedCurrenciesId,PaymentsId",
                "1,2026-01-02T00:00:00Z,10.50,978,",
                "1,2026-01-03T00:00:00Z,11.25,978,",
            ],
        ),
    ],
)
def test_the_listing_that_counts_is_the_one_given_last(
    workspace: Workspace, database_url: str, tmp_path: Path, record: str, lines: list[str]
) -> None:
    files = [tmp_path / "one.csv", tmp_path / "two.csv"]
    for number, file in enumerate(files, 1):
        file.write_text("\n".join([*lines[: number + 1], ""]))
    with sandbox_at(database_url) as (sandbox, url):
        place = towards(workspace, url)
        import_delivery(place, [str(files[0])], DEFAULT)
        verdicts, because = [], []
        for listed in (1, 2, 1):
            with workspace.database.connect() as connection:
                connection.execute(f"DELETE FROM sandbox.{record}")
            sandbox.load(record, files[listed - 1])
            pull(place, [_plural(record)])
            done = reconcile(
                place, Asked(Scope(), date(2026, 1, 31), Rules(references=frozenset()))
            )
            verdicts.append(done.run.verdict)
            because.append(done.report.cover.because)
    # What is only listed is a break, and no residual of what is in the database.
    assert because == [(), ("1 open break",), ()]
    assert verdicts == ["RECONCILED", "NOT_RECONCILED", "RECONCILED"]


def test_a_listing_that_is_cut_short_is_not_taken(
    workspace: Workspace, rows: Any, database_url: str
) -> None:
    faults = Faults(faults=(Fault(FaultKind.TRUNCATED_BODY, every=1),))
    with sandbox_at(database_url, faults=faults) as (sandbox, url):
        sandbox.load("avatar", SAMPLES / "clean" / "avatars.csv")
        with pytest.raises(ServiceUnusable):
            pull(towards(workspace, url, attempts=2), ["avatars"])
    assert rows("SELECT count(*) FROM batch") == [(0,)]


@pytest.mark.parametrize("host", [in_long(STYLES[0]), STYLES[1]], indirect=True)
def test_our_rows_in_the_services_shape_come_back_the_same(
    workspace: Workspace, host: tuple[Sandbox, str, str], tmp_path: Path
) -> None:
    sandbox, url, form = host
    delivery = [
        str(one) for one in (SAMPLES / "dirty").glob("*.csv") if ALL or one.stem not in MANY
    ]
    batch = import_delivery(workspace, delivery, DEFAULT).batch
    with workspace.database.connect() as connection:
        rows = [dict(row) for row in our_rows(connection)]
    path = tmp_path / "rows.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(INSERT_BATCH_DATA.columns)
        writer.writerows([row[name] for name in INSERT_BATCH_DATA.columns] for row in rows)
    sandbox.load("insert_batch_data", path)
    place = towards(workspace, url, form)
    (compared,) = compare(place)
    assert (compared.batch_id, compared.same, compared.differs) == (batch.id, len(rows), False)
    with workspace.database.connect() as connection:
        connection.execute(
            'UPDATE sandbox.insert_batch_data SET "HasError" = NOT "HasError" '
            'WHERE "Data" = (SELECT min("Data") FROM sandbox.insert_batch_data)'
        )
    (compared,) = compare(place)
    assert (compared.differs, compared.otherwise) == (True, 1)


@pytest.mark.long
def test_what_two_sides_number_in_their_own_way_is_compared_by_content(
    workspace: Workspace, rows: Any, host: tuple[Sandbox, str, str], tmp_path: Path
) -> None:
    """The service's BatchIds are 4101 and so on; ours are 1 and 2."""
    sandbox, url, form = host
    path = SAMPLES / "clean" / "insert_batch_data.csv"
    sandbox.load("insert_batch_data", path)
    place = towards(workspace, url, form)
    nothing_here = compare(place)
    assert {(one.same, one.here, one.differs) for one in nothing_here} == {(0, (), True)}
    import_delivery(workspace, [str(SAMPLES / "dirty" / "payments.csv")], DEFAULT)
    import_delivery(workspace, [str(path)], DEFAULT)
    before = compare(place)
    assert all(one.same == one.theirs and not one.missing for one in before), before
    assert {batch for one in before for batch, _ in one.here} == {2}
    assert len(before) > 1
    # Another BatchId for the same rows changes nothing about them.
    sandbox_rows = 'UPDATE sandbox.insert_batch_data SET "BatchId" = "BatchId" + 10 RETURNING 1'
    rows(sandbox_rows)
    assert [one.same for one in compare(place)] == [one.same for one in before]
    rows(sandbox_rows.replace("+", "-"))
    # One row listed twice, one not at all.
    (first, last) = rows(
        'SELECT min("Data"), max("Data") FROM sandbox.insert_batch_data WHERE "BatchId" = 4101'
    )[0]
    rows('DELETE FROM sandbox.insert_batch_data WHERE "Data" = %s RETURNING 1', [first])
    rows(
        'INSERT INTO sandbox.insert_batch_data ("Data", "HasError", "BatchId") '
        "VALUES (%s, FALSE, 4101) RETURNING 1",
        [last],
    )
    found = compare(place)[0]
    assert (found.batch_id, found.differs, found.missing) == (4101, True, 1)
    assert found.theirs - found.same == 1
    # None at all.
    rows("DELETE FROM sandbox.insert_batch_data RETURNING 1")
    found = compare(place)
    assert [one.batch_id for one in found] == [one.batch_id for one in before]
    assert all((one.theirs, one.same, one.differs) == (0, 0, True) for one in found)


def _plural(record: str) -> str:
    return record if record == "insert_batch_data" else record + "s"
