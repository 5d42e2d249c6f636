"""The gallery of feeds: each with a clean file, a dirty one, and what has to become of them."""

import json
import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from connectors.files.profiles.profile_file import load_profile
from connectors.postgres.batches.ledger import State
from flows.stages.examining.examine import examine
from flows.stages.examining.try_profile import try_profile
from flows.stages.sequence import import_delivery
from flows.stages.workspace import Workspace

GALLERY = Path(__file__).parents[2] / "docs" / "feeds"
PROFILES = GALLERY.parent / "profiles.md"
FEEDS = sorted(one.parent.name for one in GALLERY.glob("*/profile.toml"))
CURRENCY = {"payment": "CurrenciesId", "currency_rate": "ToCurrenciesId"}


def file_of(feed: str, sort: str) -> str:
    (path,) = (GALLERY / feed).glob(f"{sort}.*")
    return str(path)


def truth_of(feed: str) -> dict[str, Any]:
    shape: dict[str, Any] = json.loads((GALLERY / feed / "truth.json").read_text())
    return shape


@pytest.mark.long
@pytest.mark.parametrize("feed", FEEDS)
def test_a_clean_file_is_imported_to_the_cent(workspace: Workspace, rows: Any, feed: str) -> None:
    profile, truth = load_profile(GALLERY / feed / "profile.toml"), truth_of(feed)["clean"]
    batch = import_delivery(workspace, [file_of(feed, "clean")], profile).batch
    assert batch.state is State.COMPLETE
    count, record = truth.pop("rows"), profile.record
    assert rows(f"SELECT count(*) FROM {record}") == [(count,)]
    for field, sums in truth.items():
        found = rows(f'SELECT "{CURRENCY[record]}"::text, sum("{field}") FROM {record} GROUP BY 1')
        assert dict(found) == {currency: Decimal(total) for currency, total in sums.items()}


@pytest.mark.long(but=("accounting-list", "ecb-history", "marketplace"))
@pytest.mark.parametrize("feed", FEEDS)
def test_of_a_dirty_file_each_wrong_row_is_told(still: Workspace, feed: str) -> None:
    profile, truth = load_profile(GALLERY / feed / "profile.toml"), truth_of(feed)["dirty"]
    (verdict,) = examine(still.settings, [file_of(feed, "dirty")], profile)
    told = verdict.refused or sorted(
        [one.line, error["FieldName"], error["ErrorCode"]]
        for one in verdict.rejects
        for error in one.errors
    )
    assert told == truth, verdict.message


@pytest.mark.parametrize(
    ("beginning", "end"),
    [(b"20270101;4;20271101", b"20271130"), (b"20260701;4;20261201", b"20270131")],
)
def test_no_booking_of_another_year_is_read_as_one_of_this(
    still: Workspace, tmp_path: Path, beginning: bytes, end: bytes
) -> None:
    """Days and numbers have no year in this file: its first line alone says which one it is."""
    clean = Path(file_of("booking-export", "clean")).read_bytes()
    other = clean.replace(b"20260101;4;20261101", beginning, 1).replace(b"20261130", end, 1)
    (tmp_path / "other.csv").write_bytes(other)
    profile = load_profile(GALLERY / "booking-export" / "profile.toml")
    (verdict,) = examine(still.settings, [str(tmp_path / "other.csv")], profile)
    told = [(one.line, error["FieldName"]) for one in verdict.rejects for error in one.errors]
    assert told == [(line, "PaymentDate") for line in (3, 4, 5)], verdict.message


@pytest.mark.parametrize("page", [GALLERY / "central-bank" / "profile.toml", PROFILES])
def test_a_number_of_units_with_a_gap_is_none(page: Path) -> None:
    section = r"\[fields.ExchangeRate.per\]\ncolumn = .*\npart = '(.*)'"
    (part,) = re.findall(section, page.read_text())
    assert [re.search(part, name) for name in ("10 000 IDR", "1 000 IDR")] == [None, None]
    assert re.findall(part, "1000 IDR") == ["1000"]


@pytest.mark.long(but=("accounting-list", "ecb-daily", "mainframe"))
@pytest.mark.parametrize("feed", FEEDS)
def test_trying_shows_where_every_required_field_comes_from(still: Workspace, feed: str) -> None:
    profile = load_profile(GALLERY / feed / "profile.toml")
    tried = try_profile(still.settings, file_of(feed, "clean"), profile, record=None, rows=2)
    assert [one.field for one in tried.fields if one.required and one.comes_from == "nothing"] == []
    assert len(tried.rows) == 2
    for row in tried.rows:
        assert None not in [value for _, value in row.values.values()]


def test_no_two_senders_make_the_same_numbers() -> None:
    """Two banks have a rate of one day, and the later import would replace that of the other."""
    keys = {
        feed: key
        for feed in FEEDS
        for key in load_profile(GALLERY / feed / "profile.toml").keys.values()
    }
    assert all(key.namespace for key in keys.values())
    assert keys.pop("ecb-daily") == keys["ecb-history"]
    assert len({key.namespace for key in keys.values()}) == len(keys)


def test_the_page_lists_every_feed() -> None:
    page = (GALLERY / "README.md").read_text()
    assert sorted(re.findall(r"^\| \[([a-z-]+)\]", page, re.MULTILINE)) == FEEDS
