"""Planted errors against their truth file: all found, at the right line, with the right code."""

import csv
import json
from collections import defaultdict
from decimal import Decimal
from pathlib import Path
from typing import Any

from connectors.files.profiles.profile import DEFAULT
from data_samples.generate import write_payments
from flows.stages.sequence import import_delivery
from flows.stages.workspace import Workspace
from tests.examples import ALL

# As many faults of every kind in a seventh of the rows.
ROWS, SHARE = (20_000, 0.01) if ALL else (3_000, 0.07)
SEED = 7


def test_every_planted_error_is_found_and_no_other(
    workspace: Workspace, rows: Any, tmp_path: Path
) -> None:
    write_payments(tmp_path, ROWS, SHARE, SEED)
    ended = import_delivery(workspace, [str(tmp_path / "payments.csv")], DEFAULT)
    planted = defaultdict(list)
    with (tmp_path / "truth.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            planted[int(row["record_number"])].append(
                (int(row["first_line"]), int(row["last_line"]), row["ErrorCode"], row["FieldName"])
            )
    found = {
        number: [
            (first, last, error["ErrorCode"], error["FieldName"])
            for error in json.loads(error_data)
        ]
        for number, first, last, error_data in rows(
            "SELECT record_number, first_line, last_line, error_data FROM staged_row "
            "WHERE error_data IS NOT NULL"
        )
    }
    assert found == planted, f"seed {SEED}"
    truth = json.loads((tmp_path / "truth.json").read_text())
    count, keys = rows('SELECT count(*), sum("Id") FROM payment')[0]
    assert (count, str(keys)) == (truth["good_rows"], truth["hash_total_of_good_ids"])
    money = rows(
        'SELECT "CurrenciesId"::text, count(*), sum("PaidAmount"), sum("DiscountAmount") '
        "FROM payment GROUP BY 1"
    )
    assert {currency: tuple(sums) for currency, *sums in money} == {
        currency: (
            sums["count"],
            Decimal(sums["PaidAmount"]),
            Decimal(sums["DiscountAmount"]),
        )
        for currency, sums in truth["good_by_currency"].items()
    }
    assert all(chain.ties for chain in ended.report.chains)
