"""The sample deliveries: clean; dirty, then its correction; each as its expected.json says."""

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from connectors.files.profiles.profile import DEFAULT
from connectors.postgres.batches.ledger import State
from flows.stages.sequence import Ended, import_delivery
from flows.stages.workspace import Workspace
from schemas.derived.sql import TARGETS
from schemas.derived.views import quoted
from schemas.kinds import stored_columns
from schemas.tables import EXTRACTS

SAMPLES = Path(__file__).parents[1] / "data_samples"


def expected(delivery: str) -> dict[str, Any]:
    return json.loads((SAMPLES / delivery / "expected.json").read_text())["files"]


def take(workspace: Workspace, delivery: str, **options: Any) -> Ended:
    return import_delivery(workspace, [str(SAMPLES / delivery)], DEFAULT, **options)


def content(rows: Any) -> dict[str, list[tuple[object, ...]]]:
    """Everything the target tables hold, whoever wrote it."""
    state = {}
    for name in TARGETS:
        columns = ", ".join(quoted(column) for column in stored_columns(EXTRACTS[name]))
        state[name] = sorted(rows(f"SELECT {columns} FROM {name}"), key=repr)
    return state


@pytest.mark.long(but=("dirty",))
@pytest.mark.parametrize("delivery", ["clean", "dirty", "correction"])
def test_every_row_ends_as_expected(workspace: Workspace, rows: Any, delivery: str) -> None:
    ended = take(workspace, delivery)
    files = {file.name: file for file in ended.report.files}
    answers = expected(delivery)
    assert set(files) == set(answers)
    assert all(chain.ties for chain in ended.report.chains)
    for name, answer in answers.items():
        assert files[name].record == answer["record_kind"]
        assert files[name].rows == answer["rows"], name
        found = rows(
            "SELECT record_number, first_line, error_data FROM staged_row r "
            "JOIN extract e ON e.id = r.extract_id WHERE e.name = %s "
            "AND r.state IN ('rejected', 'conflict') ORDER BY record_number",
            [name],
        )
        told = [(number, line, reasons(errors)) for number, line, errors in found]
        assert told == [
            (one["record_number"], one["first_line"], [(one["ErrorCode"], one["FieldName"])])
            for one in answer["rejected"]
        ], name
        superseded = rows(
            "SELECT record_number FROM staged_row r JOIN extract e ON e.id = r.extract_id "
            "WHERE e.name = %s AND state = 'superseded' AND r.record <> 'insert_batch_data' "
            "ORDER BY 1",
            [name],
        )
        assert [row[0] for row in superseded] == [
            one["record_number"] for one in answer["superseded"]
        ], name


def reasons(error_data: str) -> list[tuple[str, str]]:
    return [
        (error["ErrorCode"], "" if error["ErrorCode"] == "InnerRecord" else error["FieldName"])
        for error in json.loads(error_data)
    ]


@pytest.mark.long
def test_control_totals_are_those_of_the_delivery(workspace: Workspace) -> None:
    ended = take(workspace, "clean")
    wanted = expected("clean")["payments.csv"]["control_totals"]
    inner = expected("clean")["insert_batch_data.csv"]["inner"]["payment"]["to_merge"]
    (payments,) = [chain for chain in ended.report.chains if chain.record == "payment"]
    held = payments.lines[-1].totals.as_json()["amounts"]
    for currency, sums in held.items():
        for name, value in sums.items():
            total = sum(_money(part, currency, name) for part in (wanted, inner["control_totals"]))
            assert _decimal(value) == total, (currency, name)


def _money(totals: Any, currency: str, name: str) -> Any:
    return _decimal(totals[currency][name]) if currency in totals else _decimal("0")


def _decimal(text: str) -> Any:
    return Decimal(text)


@pytest.mark.long
def test_the_same_delivery_twice_changes_nothing(workspace: Workspace, rows: Any) -> None:
    first = take(workspace, "clean")
    before = content(rows), counts(rows)
    second = take(workspace, "clean")
    assert second.batch.id == first.batch.id
    assert not second.new
    assert f"batch {first.batch.id}" in second.messages[0]
    assert (content(rows), counts(rows)) == before


def counts(rows: Any) -> list[tuple[object, ...]]:
    return rows("SELECT (SELECT count(*) FROM staged_row), (SELECT count(*) FROM batch)")


@pytest.mark.long
def test_dirty_then_corrected_is_clean(workspace: Workspace, rows: Any) -> None:
    dirty = take(workspace, "dirty")
    assert dirty.batch.state is State.COMPLETE_WITH_ERRORS
    correction = take(workspace, "correction", corrects=dirty.batch.id)
    assert correction.batch.state is State.COMPLETE
    reached = content(rows)
    clean = take(workspace, "clean")
    verdicts = {state for chain in clean.report.chains for state in chain.states}
    assert verdicts <= {"unchanged", "superseded"}
    assert content(rows) == reached
