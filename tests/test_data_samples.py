"""The sample data says what it is: its truth files agree with a plain reading of its bytes."""

import csv
import io
import json
import math
import re
import subprocess
import sys
from collections.abc import Iterator
from datetime import date, datetime
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

import pytest

from schemas.reasons import REASONS

SAMPLES = Path(__file__).parents[1] / "data_samples"
DELIVERIES = ("clean", "dirty", "correction")
IDENTITY = {
    "payments.csv": ("Id", "TenantsId"),
    "currency_rates.csv": ("Id", "TenantsId"),
    "invoice_files.csv": ("Id", "TenantsId"),
    "payment_gateways.csv": ("TenantsId", "PaymentActionsId", "Name"),
    "message_tones.csv": ("TenantsId", "AvatarsId", "Name"),
    "action_documents.csv": ("TenantsId", "ActionsId", "DocumentUrl"),
    "client_registrations.csv": ("EMail",),
    "form_replies.csv": ("CommsGuid", "CampaignActionsRequestsId"),
    "campaign_actions_form_responses.csv": ("Id",),
}
"""Other extracts have no key: their whole content is."""
NOT_BY_FILES = {
    "RecordTooLarge",
    "UnreadCell",
    "SecretLeftOut",
    "TenantNotBound",
    "EqualRows",
    "KeyCollision",
    "KeyPart",
    "RepairsNothing",
    "RepairedTwice",
    "AppliedOtherwise",
    "KeyOfAnother",
    "RecordOfAnother",
    "LeftOut",
    "NoValue",
    "OtherFeed",
    "LaterBatch",
    "SecondRecord",
    "Text",
    "StrayEscape",
    "Comment",
    "Constraint",
    "OtherCurrency",
    "Refused",
    "EchoDiffers",
    "InDoubt",
}
"""Reasons no sample leads to: over 4 MiB, corrections, a tenant, a profile, database, service."""
BITS = {"TenantsId": 32, "CurrenciesId": 32}
Record = dict[str, str]


def run(script: str, *arguments: object) -> None:
    subprocess.run([sys.executable, SAMPLES / script, *map(str, arguments)], check=True)


def stories(delivery: str) -> dict[str, Any]:
    told: dict[str, Any] = json.loads((SAMPLES / delivery / "expected.json").read_text())
    files: dict[str, Any] = told["files"]
    return files


def good_records(delivery: str, name: str) -> list[Record]:
    """The records of a file whose lines expected.json does not take out."""
    story = stories(delivery)[name]
    lines = (SAMPLES / delivery / name).read_bytes().split(b"\n")
    out = set()
    for each in (*story["rejected"], *story["superseded"]):
        out |= set(range(each["first_line"], each.get("last_line", each["first_line"]) + 1))
    kept = b"\n".join(line for number, line in enumerate(lines, 1) if number not in out)
    text = io.StringIO(kept.decode("utf-8-sig"), newline="")
    return list(csv.DictReader(text, strict=True))


def money(records: list[Record], currency: str, amounts: tuple[str, ...]) -> dict[str, Any]:
    totals: dict[str, Any] = {}
    for record in records:
        entry = totals.setdefault(record[currency], {"count": 0, **dict.fromkeys(amounts, 0)})
        entry["count"] += 1
        for amount in amounts:
            entry[amount] += Decimal(record[amount])
    return totals


def decimals(totals: dict[str, Any]) -> dict[str, Any]:
    return {
        currency: {name: value if name == "count" else Decimal(value) for name, value in of.items()}
        for currency, of in totals.items()
    }


def reconcile_sources(line: str, header: list[str]) -> list[tuple[str, str]]:
    """All faults of one generated line: slow, and obviously right."""
    if '"' in line:
        opens = re.search(r'(^|,)"', line) is not None
        return [("UnterminatedQuote" if opens else "StrayQuote", "")]
    cells = line.split(",")
    if len(cells) != len(header):
        return [("TooFewFields" if len(cells) < len(header) else "TooManyFields", "")]
    verdicts = ((judge_cell(name, text), name) for name, text in zip(header, cells, strict=True))
    return [(code, name) for code, name in verdicts if code]


def judge_cell(name: str, text: str) -> str:
    if not text:
        return "NotNull"
    if name.endswith("Id"):
        if not re.fullmatch("[+-]?[0-9]+", text):
            return "Integer"
        limit = 2 ** (BITS.get(name, 64) - 1)
        return "" if -limit <= int(text) < limit else "IntegerRange"
    return judge_date(text) if name == "PaymentDate" else judge_number(text)


def judge_date(text: str) -> str:
    try:
        return "" if datetime.fromisoformat(text).tzinfo else "OffsetMissing"
    except ValueError:
        return "DateTime"


def judge_number(text: str) -> str:
    try:
        value = Decimal(text)
    except InvalidOperation:
        return "Number"
    if not math.isfinite(float(text)):
        return "NotFinite"
    return "" if Decimal(repr(float(text))) == value else "Precision"


@pytest.mark.long
def test_samples_are_what_their_source_makes(tmp_path: Path) -> None:
    run("make_samples.py", "--out", tmp_path)
    made = {path.relative_to(tmp_path) for path in tmp_path.rglob("*") if path.is_file()}
    shipped = {
        path.relative_to(SAMPLES)
        for delivery in DELIVERIES
        for path in (SAMPLES / delivery).iterdir()
    }
    assert made == shipped | {Path("README.md"), Path("currencies.csv")}
    differing = [
        str(name)
        for name in made
        if (tmp_path / name).read_bytes() != (SAMPLES / name).read_bytes()
    ]
    assert differing == [], "run data_samples/make_samples.py"


def test_samples_stay_small() -> None:
    paths = [path for path in SAMPLES.rglob("*") if "__pycache__" not in path.parts]
    assert sum(path.stat().st_size for path in paths if path.is_file()) <= 3_000_000


@pytest.mark.parametrize("delivery", DELIVERIES)
def test_every_record_has_one_verdict(delivery: str) -> None:
    for name, story in stories(delivery).items():
        ended = story["accepted"] + len(story["rejected"]) + len(story["superseded"])
        assert story["rows"] == ended, name
        assert len(good_records(delivery, name)) == story["accepted"], name


@pytest.mark.parametrize("delivery", DELIVERIES)
def test_control_totals_are_those_of_the_file(delivery: str) -> None:
    checked = set()
    for name, story in stories(delivery).items():
        records = good_records(delivery, name)
        if "hash_total_of_ids" in story:
            assert int(story["hash_total_of_ids"]) == sum(int(row["Id"]) for row in records)
        if "control_totals" in story:
            planned = name == "payment_plan_details.csv"
            currency = "PlannedCurrenciesId" if planned else "CurrenciesId"
            amounts = ("PlannedAmount",) if planned else ("PaidAmount", "DiscountAmount")
            assert decimals(story["control_totals"]) == money(records, currency, amounts), name
            checked.add(name)
    assert checked == {"payments.csv", "payment_plan_details.csv"}


def test_dirty_and_its_correction_lead_to_clean() -> None:
    for name in stories("clean"):
        state: dict[tuple[str, ...], tuple[str, ...]] = {}
        corrections = good_records("correction", name) if name in stories("correction") else []
        for record in (*good_records("dirty", name), *corrections):
            columns = sorted(record)
            content = tuple(record[column] for column in columns)
            state[tuple(record[column] for column in IDENTITY.get(name, columns))] = content
        clean = [
            tuple(record[column] for column in sorted(record))
            for record in good_records("clean", name)
        ]
        assert sorted(state.values()) == sorted(clean), name


def test_dirty_shows_every_reason_a_file_can_have() -> None:
    shown = {
        each["ErrorCode"]
        for story in stories("dirty").values()
        for each in (*story["rejected"], *story["notes"])
    }
    assert shown == set(REASONS) - NOT_BY_FILES


def test_keys_are_unique_over_the_clean_delivery() -> None:
    found: dict[str, list[str]] = {}
    for name in ("payments.csv", "currency_rates.csv", "invoice_files.csv"):
        columns = tuple(good_records("clean", name)[0])
        found.setdefault(",".join(columns), []).extend(
            row["Id"] for row in good_records("clean", name)
        )
    for row in good_records("clean", "insert_batch_data.csv"):
        inner = json.loads(row["Jsondata"] or row["Data"])
        found[",".join(inner)].append(str(inner["Id"]))
    assert {len(numbers) - len(set(numbers)) for numbers in found.values()} == {0}
    assert sum(map(len, found.values())) == 1440 + 3000 + 1382 + 200


def test_every_payment_uses_the_latest_rate_of_its_tenant() -> None:
    rates = {row["Id"]: row for row in good_records("clean", "currency_rates.csv")}
    days: dict[str, list[date]] = {}
    for row in rates.values():
        days.setdefault(row["TenantsId"], []).append(date.fromisoformat(row["EffectiveDate"][:10]))
    for payment in good_records("clean", "payments.csv"):
        rate = rates[payment["CurrencyRatesId"]]
        day = date.fromisoformat(payment["PaymentDate"][:10])
        pair = {rate["FromCurrenciesId"], rate["ToCurrenciesId"]}
        latest = max(each for each in days[payment["TenantsId"]] if each <= day)
        assert rate["TenantsId"] == payment["TenantsId"], payment
        assert payment["CurrenciesId"] in pair, payment
        assert rate["EffectiveDate"][:10] == str(latest), payment


def read_truth(folder: Path) -> Iterator[tuple[int, str, str]]:
    with (folder / "truth.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            number = int(row["record_number"])
            assert int(row["first_line"]) == int(row["last_line"]) == number + 1
            yield number, row["ErrorCode"], row["FieldName"]


@pytest.mark.long
@pytest.mark.parametrize(("rows", "arguments"), [(3000, ("--bad-share", 0.3)), (500, ("--clean",))])
def test_generated_payments_agree_with_their_truth(
    tmp_path: Path, rows: int, arguments: tuple[object, ...]
) -> None:
    run("generate.py", "payments", "--rows", rows, *arguments, "--seed", 11, "--out", tmp_path)
    truth = json.loads((tmp_path / "truth.json").read_text())
    bad = {number: (code, field) for number, code, field in read_truth(tmp_path)}
    header, *lines = (tmp_path / "payments.csv").read_text(encoding="utf-8").splitlines()
    good: list[Record] = []
    conflicting: list[str] = []
    for number, line in enumerate(lines, 1):
        expected = [bad[number]] if number in bad else []
        if expected == [("ConflictingKey", "Id")]:
            conflicting.append(line.split(",")[0])
            expected = []
        elif not expected:
            good.append(dict(zip(header.split(","), line.split(","), strict=True)))
        assert reconcile_sources(line, header.split(",")) == expected, (number, line)
    assert (truth["rows"], truth["bad_rows"]) == (len(lines), len(bad)) == (rows, len(bad))
    assert truth["good_rows"] == len(good) == len({row["Id"] for row in good})
    assert len(bad) == (900 if "--clean" not in arguments else 0)
    assert sorted(conflicting) == sorted([*set(conflicting), *set(conflicting)])
    assert not set(conflicting) & {row["Id"] for row in good}
    found = money(good, "CurrenciesId", ("PaidAmount", "DiscountAmount"))
    assert decimals(truth["good_by_currency"]) == found
    assert int(truth["hash_total_of_good_ids"]) == sum(int(row["Id"]) for row in good)


@pytest.mark.long
def test_generated_faults_are_spread_and_an_open_quote_stands_before_a_good_record(
    tmp_path: Path,
) -> None:
    run("generate.py", "payments", "--rows", 3000, "--bad-share", 0.5, "--out", tmp_path)
    kinds = json.loads((tmp_path / "truth.json").read_text())["bad_rows_by_kind"]
    assert set(kinds.values()) == {100}
    assert len(kinds) == 15
    bad = {number: code for number, code, _ in read_truth(tmp_path)}
    after = [bad.get(number + 1) for number, code in bad.items() if code == "UnterminatedQuote"]
    assert after == [None] * 100
    assert max(bad) < 3000 or bad[3000] != "UnterminatedQuote"


@pytest.mark.long
def test_generated_payments_depend_on_the_seed_alone(tmp_path: Path) -> None:
    for name, seed in (("one", 7), ("same", 7), ("other", 8)):
        arguments = ("--rows", 300, "--bad-share", 0.1, "--seed", seed, "--out", tmp_path / name)
        run("generate.py", "payments", *arguments)
    for file in ("payments.csv", "truth.csv", "truth.json"):
        first = (tmp_path / "one" / file).read_bytes()
        assert first == (tmp_path / "same" / file).read_bytes()
        assert first != (tmp_path / "other" / file).read_bytes()


@pytest.mark.long
def test_generated_payments_refer_to_generated_rates(tmp_path: Path) -> None:
    run("generate.py", "payments", "--rows", 500, "--clean", "--out", tmp_path)
    run("generate.py", "currency_rates", "--out", tmp_path)
    with (tmp_path / "currency_rates.csv").open(newline="") as file:
        rates = {row["Id"]: row for row in csv.DictReader(file)}
    with (tmp_path / "payments.csv").open(newline="") as file:
        for payment in csv.DictReader(file):
            rate = rates[payment["CurrencyRatesId"]]
            assert rate["TenantsId"] == payment["TenantsId"]
            assert rate["EffectiveDate"] == payment["PaymentDate"][:10]
            assert payment["CurrenciesId"] in {"1", rate["ToCurrenciesId"]}
