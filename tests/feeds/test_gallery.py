"""The gallery of feeds: each with a clean file, a dirty one, and what has to become of them."""

import json
import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from connectors.files.profile_file import load_profile
from connectors.postgres.ledger import State
from flows.stages.examine import examine
from flows.stages.sequence import import_delivery
from flows.stages.try_profile import try_profile
from flows.stages.workspace import Workspace

GALLERY = Path(__file__).parents[2] / "docs" / "feeds"
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


@pytest.mark.long(but=("accounting-list", "ecb-history"))
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


@pytest.mark.long(but=("accounting-list", "ecb-daily", "mainframe"))
@pytest.mark.parametrize("feed", FEEDS)
def test_trying_shows_where_every_required_field_comes_from(still: Workspace, feed: str) -> None:
    profile = load_profile(GALLERY / feed / "profile.toml")
    tried = try_profile(still.settings, file_of(feed, "clean"), profile, record=None, rows=2)
    assert [one.field for one in tried.fields if one.required and one.comes_from == "nothing"] == []
    assert len(tried.rows) == 2
    for row in tried.rows:
        assert None not in [value for _, value in row.values.values()]


def test_the_page_lists_every_feed() -> None:
    page = (GALLERY / "README.md").read_text()
    assert sorted(re.findall(r"^\| \[([a-z-]+)\]", page, re.MULTILINE)) == FEEDS
