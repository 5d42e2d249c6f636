"""Times in a draft: every form that fits is told."""

from collections.abc import Sequence
from datetime import date, timedelta
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flows.steps.draft_times import DAYS, TimesFound, times_of
from tests.feeds.test_draft import drafted
from tests.governance.conftest import recon as recon  # noqa: PLC0414 -- the fixture.
from tests.stages.payments import wide


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        (
            ("Date;Time;TimeZone", "13/02/2026;10:00:00;PST", "14/07/2026;09:30:00;PDT"),
            [
                '# If the columns "Date", "Time", "TimeZone" are one time, it is instead:',
                '# ? date_format = "%d/%m/%Y %H:%M:%S %Z"',
                '# ? zones = { PDT = "", PST = "" }  # what each means',
                "# ? [fields.PaymentDate]",
                '# ? from = ["Date", "Time", "TimeZone"]',
                '# ? join = " "',
            ],
        ),
        (
            ("Booked;TZ", "2026-02-13;CET"),
            ['# ? date_format = "%Y-%m-%d %Z"', '# ? from = ["Booked", "TZ"]'],
        ),
        (
            ("Day;At", "13.02.2026;1:30 PM"),
            ['# ? date_format = "%d.%m.%Y %I:%M %p"', '# ? from = ["Day", "At"]', "# ? zone ="],
        ),
    ],
)
def test_a_time_in_several_columns_is_told_with_the_names_of_its_zones(
    tmp_path: Path, lines: Sequence[str], told: Sequence[str]
) -> None:
    path = tmp_path / "a.csv"
    path.write_text("\n".join([*lines, ""]))
    text, _ = drafted(str(path))
    for one in told:
        assert one in text
    assert ("# ? zone =" in text) == ("# ? zone =" in told)


def test_days_and_digits_of_east_asia_are_told(tmp_path: Path) -> None:
    path, cell = tmp_path / "a.csv", wide("1,234")
    path.write_text(f"No,On,Paid\n1,2026年11月1日,1\n2,2026年9月30日,{cell}\n")
    text, draft = drafted(str(path))
    assert draft.date_format == "%Y年%m月%d日"
    assert f'# ? width = "folded"  # 1 cell has full-width digits, such as {cell}' in text


def test_full_width_digits_are_drafted_like_the_usual_ones(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    rows = ("1,2026年11月1日,1234,", "2,2026年9月30日,,20.50")
    path.write_text("".join(f"{row}\n" for row in ("No,On,In,Out", *map(wide, rows))))
    path.write_text(path.read_text().replace(wide(","), ","))
    text, draft = drafted(str(path))
    assert draft.date_format == "%Y年%m月%d日"
    assert '# ? "On" = "PaymentDate"' in text
    assert '# If the columns "In", "Out" are one amount, it is instead:' in text


@pytest.mark.long
@given(
    st.sampled_from(DAYS[:-1]),
    st.lists(
        st.dates(min_value=date(1970, 1, 1), max_value=date(2037, 1, 1)),
        min_size=1,
    ),
)
def test_the_form_that_times_were_written_in_is_among_those_told(
    form: str, days: list[Any]
) -> None:
    cells = [day.strftime(form) for day in days]
    found = times_of(cells)
    assert found is None or (form,) in (found.forms or [("%Y-%m-%d",)])
    assert found or all(map(str.isdigit, cells))


def test_days_are_looked_at_however_many_there_are() -> None:
    days = [(date(2026, 1, 1) + timedelta(days=n)).strftime("%d/%m/%Y") for n in range(400)]
    assert times_of(days) == TimesFound((("%d/%m/%Y",),), 0, "")


@pytest.mark.parametrize(
    ("cells", "forms"),
    [
        (["26/11/01", "26/11/28"], {"%d/%m/%y", "%y/%m/%d"}),
        (["26.11.01", "26.11.28"], {"%d.%m.%y", "%y.%m.%d"}),
        (["01/02/03"], {"%d/%m/%y", "%m/%d/%y", "%y/%m/%d"}),
        (["2026-11-03 10:11:12 -0500"], {"%Y-%m-%d %H:%M:%S %z"}),
        (["03-Nov-26"], {"%d-%b-%y"}),
        (["03 Nov 26"], {"%d %b %y"}),
        (["03/Nov/2026"], {"%d/%b/%Y"}),
        (["03NOV2026"], {"%d%b%Y"}),
    ],
)
def test_every_order_of_a_date_is_tried(cells: list[str], forms: set[str]) -> None:
    """Of two that fit neither is stated: a year at the front is read as a day without a word."""
    found = times_of(cells)
    assert found is not None
    assert {*chain(*found.forms)} == forms
