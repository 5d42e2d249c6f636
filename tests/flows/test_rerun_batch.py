"""The flow `rerun-batch`: on where it stopped, from the start, or only the rows that failed."""

from pathlib import Path
from typing import Any

import psycopg
import pytest

from connectors.errors import ReconError
from flows.stages.rows.rejects import write_rejects
from flows.stages.workspace import Workspace
from tests.flows.runs import artifact, flow_run, kept_files, run
from tests.flows.test_import_batch import FAIL_ONCE, on_payment
from tests.stages.payments import line, write

pytestmark = pytest.mark.flows

RATES = (
    "Id,TenantsId,FromCurrenciesId,ToCurrenciesId,ExchangeRate,EffectiveDate\n"
    "9,7,1,2,1.1,2026-01-01T00:00:00\n"
)


def rerun(batch_id: int, **terms: Any) -> Any:
    from flows.rerun_batch import rerun_batch

    return rerun_batch(batch_id, return_state=True, **terms)


def changes() -> list[tuple[str, ...]]:
    return [tuple(row.values()) for row in artifact("rerun-diff").table]


@pytest.mark.long
def test_a_batch_goes_on_where_it_stopped(tmp_path: Path, rows: Any, database_url: str) -> None:
    on_payment(database_url, FAIL_ONCE)
    assert run(write(tmp_path / "a.csv", line(1), line(2, amount="x"))).name == "Failed"
    state = rerun(1)
    assert (state.name, flow_run(state).name) == ("CompletedWithErrors", "rerun batch 1")
    assert rows('SELECT "Id" FROM payment') == [(1,)]
    assert changes() == [
        ("1", "payment", "rejected", "1", "1", "0"),
        ("1", "payment", "inserted", "0", "1", "+1"),
        ("1", "payment", "pending", "1", "0", "−1"),  # noqa: RUF001
    ]
    assert "Rows of batch 1 by state" in artifact("rerun-diff").description
    began = rows("SELECT batch_id, detail::json ->> 'name' FROM event WHERE what = 'run began'")
    assert began == [(1, "import a.csv"), (1, "rerun batch 1")]


@pytest.mark.long
def test_a_corrected_file_takes_the_failed_rows_in(
    tmp_path: Path, rows: Any, workspace: Workspace
) -> None:
    feed = tmp_path / "bank.toml"
    feed.write_text('feed = "bank"\n')
    path = write(tmp_path / "a.csv", line(1), line(2, amount="x"), line(3, amount="y"))
    run(path, profile=str(feed), tenant=7)
    ((rejects, _),) = write_rejects(workspace, 1, tmp_path / "out", with_secrets=False).items()
    rejects.write_text(rejects.read_text().replace(",x,", ",2.50,"))
    state = rerun(1, only="failed rows", corrected_file=str(rejects))
    assert state.name == "CompletedWithErrors"
    assert "Batch 2: 1 of 2 rows carries HasError" in state.message
    assert rows('SELECT "Id" FROM payment ORDER BY 1') == [(1,), (2,)]
    assert rows("SELECT feed, corrects, profile::json ->> 'tenant' FROM batch WHERE id = 2") == [
        ("bank", 1, "7")
    ]
    assert changes() == [
        ("1", "payment", "rejected", "2", "1", "−1"),  # noqa: RUF001
        ("1", "payment", "corrected", "0", "1", "+1"),
        ("1", "payment", "inserted", "1", "1", "0"),
        ("2", "payment", "rejected", "0", "1", "+1"),
        ("2", "payment", "inserted", "0", "1", "+1"),
    ]


@pytest.mark.long
def test_failed_rows_as_delivered_are_judged_anew(tmp_path: Path, rows: Any) -> None:
    feed = tmp_path / "strict.toml"
    feed.write_text('feed = "strict"\n[policy]\nreference = "reject"\n')
    run(write(tmp_path / "a.csv", line(1), line(2, amount="x")), profile=str(feed))
    assert rows("SELECT count(*) FROM payment") == [(0,)]
    rates = tmp_path / "currency_rates.csv"
    rates.write_text(RATES)
    rate = run(str(rates))
    assert rate.name == "Completed", rate.message
    state = rerun(1, only="failed rows")
    assert state.name == "CompletedWithErrors"
    assert rows('SELECT "Id" FROM payment') == [(1,)]
    assert dict(rows("SELECT record_number, state FROM staged_row WHERE batch_id = 1")) == {
        1: "corrected",
        2: "rejected",
    }


@pytest.mark.long
def test_a_batch_without_failed_rows_has_none_to_take_in(tmp_path: Path, rows: Any) -> None:
    run(write(tmp_path / "a.csv", line(1)))
    state = rerun(1, only="failed rows")
    assert state.name == "Completed"
    assert rows("SELECT count(*) FROM batch") == [(1,)]


@pytest.mark.long
def test_secrets_of_failed_rows_stay_out_of_what_prefect_keeps(
    tmp_path: Path, rows: Any, prefect_home: Path
) -> None:
    path = tmp_path / "registrations.csv"
    path.write_text(
        "EMail,FirstName,LastName,Password,ConfirmPassword,Company\n"
        "nobody,Ann,Lee,canary-secret,canary-secret,Acme\n"
    )
    run(str(path))
    assert rerun(1, only="failed rows").name == "CompletedWithErrors"
    assert rows('SELECT "Password" FROM staged_client_registration WHERE batch_id = 2') == [
        ("canary-secret",)
    ]
    assert [one for one in kept_files(prefect_home) if b"canary-secret" in one.read_bytes()] == []


@pytest.mark.long
def test_a_held_batch_is_read_from_the_start_while_nothing_is_applied(
    tmp_path: Path, rows: Any
) -> None:
    path = write(tmp_path / "a.csv", line(1), line(1), line(2, amount="x"))
    run(path, max_errors=0)
    staged = rows("SELECT record_number, state FROM staged_row ORDER BY 1")
    assert rerun(1, from_stage="stage").name == "Held"
    assert rows("SELECT record_number, state FROM staged_row ORDER BY 1") == staged
    assert rows("SELECT count(*) FROM event WHERE what = 'rewound'") == [(1,)]
    assert rerun(1, from_stage="stage", over_budget="load").name == "CompletedWithErrors"
    assert rows('SELECT "Id" FROM payment') == [(1,)]
    refused = rerun(1, from_stage="stage")
    assert refused.name == "Failed"
    assert "rows of it are in the database" in refused.message


@pytest.mark.long
def test_half_of_a_batch_in_the_database_is_too_much_to_read_it_anew(
    tmp_path: Path, rows: Any, database_url: str
) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "currency_rates.csv").write_text(RATES)
    write(tmp_path / "in" / "payments.csv", line(1))
    on_payment(database_url, FAIL_ONCE)
    assert run(str(tmp_path / "in")).name == "Failed"
    assert rows("SELECT state FROM batch") == [("checked",)]
    assert "rows of it are in the database" in rerun(1, from_stage="stage").message
    assert rerun(1).name == "Completed"


@pytest.mark.long
def test_a_report_is_only_recounted(tmp_path: Path, rows: Any, database_url: str) -> None:
    run(write(tmp_path / "a.csv", line(1), line(2, amount="x")), max_errors=0)
    assert rerun(1, from_stage="report").name == "Held"
    rerun(1, over_budget="load")
    assert rerun(1, from_stage="report").name == "CompletedWithErrors"
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute("DELETE FROM recon.payment")
    state = rerun(1, from_stage="report")
    assert state.name == "Failed"
    assert "no longer ties" in state.message


@pytest.mark.long
@pytest.mark.parametrize(
    ("batch", "terms", "told"),
    [
        (7, {}, "There is no batch 7"),
        (1, {"corrected_file": "a.csv"}, "Choose failed rows"),
        (1, {"only": "failed rows", "from_stage": "stage"}, "no earlier stage"),
        (1, {"only": "failed rows", "corrected_file": "/nowhere.csv"}, "no such file or folder"),
    ],
)
def test_what_cannot_be_meant_fails_with_a_text_that_says_what_to_do(
    tmp_path: Path, batch: int, terms: Any, told: str
) -> None:
    run(write(tmp_path / "a.csv", line(1), line(2, amount="x")))
    state = rerun(batch, **terms)
    assert state.name == "Failed"
    assert isinstance(state.result(raise_on_failure=False), ReconError)
    assert told in state.message


@pytest.mark.parametrize("terms", [{"batch_id": 0}, {"from_stage": "apply"}, {"only": "some"}])
def test_parameters_out_of_their_bounds_are_refused_before_the_run(terms: dict[str, Any]) -> None:
    from prefect.exceptions import ParameterTypeError

    from flows.rerun_batch import rerun_batch

    with pytest.raises(ParameterTypeError):
        rerun_batch.validate_parameters({"batch_id": 1} | terms)


def test_a_corrected_file_with_a_secret_in_its_address_is_refused() -> None:
    from prefect.exceptions import ParameterTypeError

    from flows.rerun_batch import rerun_batch

    with pytest.raises(ParameterTypeError, match="carries a login") as refused:
        rerun_batch.validate_parameters(
            {"batch_id": 1, "corrected_file": "https://ann:secret@example.com/a.csv"}
        )
    assert "secret@" not in str(refused.value)
