import csv
import io
import json
from dataclasses import fields, replace
from decimal import Decimal

import polars as pl
import pytest

from flows.report.reconciled.data import (
    QUOTED,
    breaks_csv,
    breaks_frame,
    totals_json,
    write_parquet,
)
from flows.steps.reconcile.report import ReconciliationReport
from flows.steps.reconcile.reported_breaks import BreakLine, Breaks
from tests.report.reconciliation.sample import REPORTS, everything
from tests.report.sample_reports import HOSTILE

NAMES = ["class" if field.name == "group" else field.name for field in fields(BreakLine)]


def lines_of(content: bytes) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(content.decode(), newline=""), strict=True))


def with_first(**other: str) -> ReconciliationReport:
    """A report of one break, which says something else."""
    report = everything()
    return replace(report, breaks=Breaks.of([replace(report.breaks[0], **other)]))


def test_a_hash_total_is_a_text_that_no_reader_rounds() -> None:
    report, long = everything(), 2**53 + 1
    controls = [replace(one, expected_keys=long, found_keys=long) for one in report.controls]
    chain = [replace(one, keys=long) for one in report.chain]
    told = json.loads(totals_json(replace(report, controls=tuple(controls), chain=tuple(chain))))
    keys = {one[name] for one in told["controls"] for name in ("expected_keys", "found_keys")}
    assert keys | {one["keys"] for one in told["chain"]} == {"9007199254740993"}


def test_the_csv_read_back_is_the_breaks() -> None:
    told = lines_of(breaks_csv(breaks_frame(everything())))
    assert list(told[0]) == [*NAMES, "currency_code", QUOTED]
    for line, one in zip(told, everything().breaks, strict=True):
        for name in NAMES:
            value = getattr(one, "group" if name == "class" else name)
            shown = line[name]
            if name in line[QUOTED].split():
                assert shown[0] == "'"
                shown = shown[1:]
            if isinstance(value, Decimal):
                assert Decimal(shown) == value
            else:
                assert shown == ("" if value is None else str(value)), name


@pytest.mark.parametrize("text", ["=1+1", "+x", "-x", "@x", "\t=1", " =1", "|x", "%x", "\0=1"])
def test_what_a_spreadsheet_takes_for_a_formula_is_quoted_and_named(text: str) -> None:
    report = with_first(key=text, note=text)
    [line] = lines_of(breaks_csv(breaks_frame(report)))
    assert line["key"] == f"'{text}"
    assert line[QUOTED] == "key note"


@pytest.mark.parametrize("text", ["-12.50", "+3", "12", "", "x=1", "'=1"])
def test_numbers_and_other_texts_are_left_as_they_are(text: str) -> None:
    report = with_first(key=text)
    [line] = lines_of(breaks_csv(breaks_frame(report)))
    assert line["key"] == text
    assert line[QUOTED] == ""


def test_nothing_and_the_empty_text_differ() -> None:
    content = breaks_csv(breaks_frame(everything())).decode()
    first, value = content.split("\r\n")[1], next(x for x in content.split("\r\n") if "eeeeee" in x)
    assert '"D",,,,130.25,' in first
    assert '{% raw %}",""' in value


def test_every_line_ends_in_crlf_and_there_is_one_without_breaks() -> None:
    head = breaks_csv(breaks_frame(REPORTS["reconciled"]()))
    assert head == (",".join([*NAMES, "currency_code", QUOTED]) + "\r\n").encode()


def test_the_parquet_file_holds_delivered_text_verbatim_and_exact_decimals() -> None:
    content = io.BytesIO()
    write_parquet(breaks_frame(everything()), content)
    content.seek(0)
    frame = pl.read_parquet(content)
    assert frame.columns == [*NAMES, "currency_code"]
    assert frame["key"][1] == HOSTILE["formula"]
    assert frame["delta"][-1] == Decimal("12345678901234567.890000000000000001")
    assert frame["expected"].to_list() == [one.expected for one in everything().breaks]
    assert frame.schema["first_seen"] == pl.Date()


def test_the_totals_are_canonical_and_exact() -> None:
    content = totals_json(everything())
    told = json.loads(content)
    again = json.dumps(told, sort_keys=True, ensure_ascii=False, indent=1) + "\n"
    assert content == again.encode()
    assert {field.name for field in fields(everything())} == set(told)
    assert told["controls"][1]["expected"]["PaidAmount"] == (
        "99999999999999999999.999999999999999999"
    )
    assert told["proofs"][0]["lines"][2]["amount"] == "-255.5"
    assert told["cover"]["as_of"] == "2026-03-09"
    assert told["breaks"]["all"] == 7
    assert told["breaks"]["state"] == {"ACCEPTED": 1, "NEW": 5, "OPEN": 1}
    assert told["breaks"]["class"] == {"ACCURACY": 4, "COMPLETENESS": 2, "RATE": 1}
