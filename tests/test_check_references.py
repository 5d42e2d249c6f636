"""What `recon check` says of references, and that the import then does the same."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from connectors.files.profiles.profile import DEFAULT, Profile
from flows.stages.examining.examine import FileVerdict, examine
from flows.stages.sequence import import_delivery
from flows.stages.workspace import Workspace
from tests.recon import run
from tests.stages.payments import HEADER

RATES = "Id,TenantsId,FromCurrenciesId,ToCurrenciesId,ExchangeRate,EffectiveDate"
COMPLETE = replace(DEFAULT, complete=True)


def payment(number: int, rate: int, tenant: int = 7, amount: str = "1.5") -> str:
    return f"{number},{tenant},1,2,2026-01-01T10:00:00Z,{amount},0,1,{rate}"


PAYMENTS = [
    payment(1, 5),  # Answered by the delivery.
    payment(2, 6),  # Nobody knows it.
    payment(3, 6),
    payment(4, 5, tenant=8),  # Known, of another tenant.
    payment(5, 8),  # Named by two rates in conflict.
    payment(6, 9, amount="x"),  # A row in error refers to nothing.
    payment(2, 6),  # The same row again.
]


@pytest.fixture
def delivery(tmp_path: Path) -> Path:
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "payments.csv").write_text("\n".join([HEADER, *PAYMENTS]) + "\n")
    rates = [f"{n},7,1,2,{value},2026-01-01T00:00:00" for n, value in ((5, 1), (8, 1), (8, 2))]
    (folder / "rates.csv").write_text("\n".join([RATES, *rates]) + "\n")
    return folder


def checked(workspace: Workspace, delivery: Path, profile: Profile) -> dict[str, FileVerdict]:
    verdicts = examine(workspace.settings, [str(delivery)], profile)
    return {verdict.name: verdict for verdict in verdicts}


@pytest.mark.parametrize("policy", ["flag", "reject"])
def test_what_the_delivery_does_not_answer_is_counted(
    policy: str, workspace: Workspace, delivery: Path
) -> None:
    verdict = checked(workspace, delivery, replace(DEFAULT, reference=policy))["payments.csv"]
    assert [one.record_number for one in verdict.rejects] == [6]
    assert [tuple(one) for one in verdict.unsettled] == [
        ("payment", "CurrencyRatesId", "currency_rate", 4, 3)
    ]


def test_a_complete_delivery_is_rejected_in_the_check_as_in_the_import(
    workspace: Workspace, delivery: Path, rows: Callable[..., list[tuple[Any, ...]]]
) -> None:
    found = checked(workspace, delivery, COMPLETE)
    assert not any(verdict.unsettled for verdict in found.values())
    said = {
        (name, reject.record_number, error["ErrorCode"], error["Message"])
        for name, verdict in found.items()
        for reject in verdict.rejects
        for error in reject.errors
    }
    with workspace.database.connect() as connection:
        connection.execute(
            "INSERT INTO currency_rate VALUES (6, 7, 1, 2, 1.5, '2026-01-01', 0, 0, 0, 0)"
        )
    import_delivery(workspace, [str(delivery)], COMPLETE)
    imported = rows(
        "SELECT e.name, s.record_number, error ->> 'ErrorCode', error ->> 'Message' "
        "FROM staged_row s JOIN extract e ON e.id = s.extract_id, "
        "json_array_elements(s.error_data::json) error WHERE s.error_data IS NOT NULL"
    )
    assert said == set(imported)
    codes = {(number, code) for name, number, code, _ in said if name == "payments.csv"}
    assert codes == {
        (2, "ReferenceMissing"),
        (3, "ReferenceMissing"),
        (4, "ReferenceTenant"),
        (5, "ReferenceMissing"),
        (6, "Number"),
    }


@pytest.mark.long
def test_the_command_tells_them(database_url: str, delivery: Path, tmp_path: Path) -> None:
    (delivery / "rates.csv").unlink()
    (delivery / "payments.csv").write_text("\n".join([HEADER, payment(1, 5)]) + "\n")
    done = run(database_url, tmp_path, "check", str(delivery))
    code, told = done.returncode, done.stdout
    assert code == 0
    assert "1 row, 0 with errors" in told
    assert "not settled: 1 row with CurrencyRatesId of 1 currency_rate record" in told
    done = run(database_url, tmp_path, "check", "--json", str(delivery))
    code, told = done.returncode, done.stdout
    (unsettled,) = json.loads(told)["files"][0]["unsettled"]
    assert (code, unsettled["rows"], unsettled["of"]) == (0, 1, "currency_rate")
    profile = tmp_path / "feed.toml"
    profile.write_text('feed = "bank-x"\n[policy]\ncomplete = true\n')
    done = run(database_url, tmp_path, "check", "--profile", str(profile), str(delivery))
    code, told = done.returncode, done.stdout
    assert code == 1
    assert "ReferenceMissing" in told
