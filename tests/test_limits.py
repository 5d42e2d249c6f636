"""The limits: each has a lowest value, which is refused below and stated in the documentation."""

import re
from dataclasses import Field, fields
from pathlib import Path

import pytest

from connectors.errors import SettingsError
from connectors.settings import MOST, Limits, ceiling_of, floor_of, read_settings
from schemas.guards.leases import MOST_SECONDS

PAGE = Path(__file__).parents[1] / "docs" / "operations.md"


@pytest.mark.parametrize("limit", fields(Limits), ids=lambda limit: limit.name)
def test_below_its_floor_a_limit_is_refused(limit: "Field[int]") -> None:
    name, least = f"RECON_LIMIT_{limit.name.upper()}", floor_of(limit)
    assert getattr(read_settings({name: str(least)}).limits, limit.name) == least
    with pytest.raises(SettingsError, match=f"{name}='{least - 1}' is not .* from {least} to"):
        read_settings({name: str(least - 1)})


@pytest.mark.parametrize("limit", fields(Limits), ids=lambda limit: limit.name)
def test_above_the_highest_value_a_limit_is_refused(limit: "Field[int]") -> None:
    """A lease that is longer than the database lets one be was cut without a word."""
    name, most = f"RECON_LIMIT_{limit.name.upper()}", ceiling_of(limit)
    assert most == (MOST_SECONDS if limit.name == "lease_seconds" else MOST)
    assert getattr(read_settings({name: str(most)}).limits, limit.name) == most
    with pytest.raises(SettingsError, match=f"{name}='{most + 1}' is not .* to {most}"):
        read_settings({name: str(most + 1)})


def test_what_cuts_work_into_pieces_has_a_floor_that_work_ends_with() -> None:
    cutting = {"block_bytes", "check_bytes", "compare_bytes", "reconcile_bytes"}
    assert {limit.name for limit in fields(Limits) if floor_of(limit) > 1} == cutting


def test_the_page_states_default_and_floor_of_each() -> None:
    stated = re.findall(
        r"^\| `RECON_LIMIT_(\w+)` \| .* \| (\d+) \| (\d+) \|$", PAGE.read_text(), re.MULTILINE
    )
    assert stated == [
        (limit.name.upper(), str(limit.default), str(floor_of(limit))) for limit in fields(Limits)
    ]
