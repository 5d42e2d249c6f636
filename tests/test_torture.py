"""Hostile payment files, each with its right answer in torture/expected.json."""

import json
from pathlib import Path
from typing import Any

import pytest

from connectors.files.profiles.profile import DEFAULT
from connectors.settings import Settings
from flows.stages.examining.examine import FileVerdict, examine
from flows.stages.sequence import import_delivery
from flows.stages.workspace import Workspace
from tests.stages.payments import line, write

TORTURE = Path(__file__).parent / "torture"
EXPECTED = json.loads((TORTURE / "expected.json").read_text())


def reconcile_sources(path: Path, tmp_path: Path) -> FileVerdict:
    (verdict,) = examine(Settings(tmp_path), [str(path)], DEFAULT)
    return verdict


def differences(verdict: FileVerdict, answer: dict[str, Any]) -> list[str]:
    """Why a verdict is not this answer; empty: it is."""
    if "file_rejected" in answer:
        return [] if verdict.refused in answer["file_rejected"] else [f"refused {verdict.refused}"]
    if verdict.refused:
        return [f"refused {verdict.refused}: {verdict.message}"]
    flagged = [reject.record_number for reject in verdict.rejects]
    found = []
    if verdict.rows_in != answer["rows_in"]:
        found.append(f"{verdict.rows_in} rows")
    if "flagged_rows" in answer and flagged != answer["flagged_rows"]:
        found.append(f"flagged {flagged}")
    if "flagged_max" in answer and not (
        answer["flagged_min"] <= len(flagged) <= answer["flagged_max"]
    ):
        found.append(f"{len(flagged)} flagged")
    for row, fields in answer.get("fields", {}).items():
        reject = next((one for one in verdict.rejects if one.record_number == int(row)), None)
        named = {error["FieldName"] for error in reject.errors} if reject else set()
        if named != set(fields):
            found.append(f"row {row}: {sorted(named)} instead of {fields}")
    return found


@pytest.mark.parametrize("name", EXPECTED["cases"])
def test_case_has_its_one_right_answer(name: str, tmp_path: Path) -> None:
    case = EXPECTED["cases"][name]
    verdict = reconcile_sources(TORTURE / "cases" / name, tmp_path)
    answers = [case["expect"], *([case["also_ok"]] if "also_ok" in case else [])]
    found = [differences(verdict, answer) for answer in answers]
    assert [] in found, (case["why"], found)


@pytest.mark.parametrize("name", EXPECTED["ambiguous"])
def test_ambiguous_case_stays_inside_its_accepted_answers(name: str, tmp_path: Path) -> None:
    case = EXPECTED["ambiguous"][name]
    verdict = reconcile_sources(TORTURE / "ambiguous" / name, tmp_path)
    found = [differences(verdict, answer) for answer in case["acceptable"]]
    assert [] in found, (case["why"], case["must_never"], found)


def test_a_header_without_records_says_zero_rows(tmp_path: Path) -> None:
    verdict = reconcile_sources(TORTURE / "ambiguous" / "header_only.csv", tmp_path)
    assert "0 rows" in (verdict.message or "")


def test_a_time_without_offset_is_never_given_one(tmp_path: Path) -> None:
    verdict = reconcile_sources(TORTURE / "ambiguous" / "date_forms.csv", tmp_path)
    codes = {one.record_number: one.errors[0]["ErrorCode"] for one in verdict.rejects}
    assert codes == {
        1: "OffsetMissing",
        2: "OffsetMissing",
        5: "DateTime",
        6: "DateTime",
        7: "DateTime",
        8: "Precision",
        9: "DateTime",
        10: "DateTime",
        11: "DateTime",
    }


CLEAN_IDS = {
    name: case["expect"]["clean_ids"]
    for name, case in EXPECTED["cases"].items()
    if "clean_ids" in case["expect"]
}


def test_every_clean_row_of_every_case_is_in_the_database(workspace: Workspace, rows: Any) -> None:
    """One delivery of all cases: a refused file costs no other file, a bad row no other row."""
    ended = import_delivery(workspace, [str(TORTURE / "cases")], DEFAULT)
    names = {file.name: file for file in ended.report.files}
    assert set(names) == set(EXPECTED["cases"])
    found = {row[0] for row in rows('SELECT "Id" FROM payment')}
    for name, ids in CLEAN_IDS.items():
        assert set(ids) <= found, name
    assert all(chain.ties for chain in ended.report.chains)
    instants = rows(
        """SELECT to_char("PaymentDate", 'YYYY-MM-DD"T"HH24:MI:SS"Z"') FROM payment p
        JOIN extract e ON e.id = p.extract_id WHERE e.name = 'ok_dst_hours.csv' ORDER BY "Id" """
    )
    assert [row[0] for row in instants] == EXPECTED["cases"]["ok_dst_hours.csv"]["utc"]


def test_a_conflict_between_two_files_is_found_without_a_database(tmp_path: Path) -> None:
    """The row is told with its text and line; a repeat of the same content is none."""
    write(tmp_path / "a.csv", line(1), line(2), line(3))
    write(tmp_path / "b.csv", line(3), line(2, amount="9.99"))
    first, second = examine(Settings(tmp_path), [str(tmp_path)], DEFAULT)
    (one,), (other,) = first.rejects, second.rejects
    assert (one.line, one.data) == (3, line(2))
    assert (other.line, other.data) == (3, line(2, amount="9.99"))
    assert {error["ErrorCode"] for error in one.errors + other.errors} == {"ConflictingKey"}


@pytest.mark.long
def test_a_manifest_is_compared_without_a_database(tmp_path: Path) -> None:
    write(tmp_path / "a.csv", line(1), line(2))
    stated = {"files": {"a.csv": {"rows": 3}, "missing.csv": {"rows": 1}}}
    (tmp_path / "manifest.json").write_text(json.dumps(stated))
    verdicts = examine(Settings(tmp_path), [str(tmp_path)], DEFAULT)
    assert {(one.name, one.refused) for one in verdicts} == {
        ("a.csv", "incomplete_file"),
        ("missing.csv", "incomplete_file"),
    }
    assert "stated 3, the file has 2" in (verdicts[0].message or "")
