"""Times of one column in several forms: each cell is read by one of them, and never by two."""

import re
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from connectors.errors import ProfileError
from connectors.files.profiles.profile_file import read_profile
from flows.stages.rows.rejects import write_rejects
from flows.stages.rows.writing import writing_of
from flows.stages.sequence import import_delivery
from flows.stages.workspace import Workspace
from flows.steps.validate.normalise import normalise
from schemas.cells.counted_times import EPOCHS
from schemas.cells.date_forms import DateForms
from schemas.cells.reading import UNFIT
from schemas.tables import EXTRACTS
from tests.examples import examples
from tests.stages.payments import line, write
from tests.stages.reading.test_writing import MONTHS


def read(cells: list[str], **stated: Any) -> list[str]:
    """What payment dates are by a profile with these keys."""
    writing = writing_of(read_profile({"feed": "x", **stated}))
    frame = normalise(EXTRACTS["payment"], pl.DataFrame({"0": cells}), ["PaymentDate"], writing, {})
    return frame["PaymentDate"].str.replace_all(UNFIT, "", literal=True).to_list()


DAY_OR_TIME = {"date_format": ["%d.%m.%Y", "%d.%m.%Y %H:%M:%S"], "offset": "+01:00"}
FRACTIONS = {"date_format": ["%d.%m.%Y %H:%M:%S", "%d.%m.%Y %H:%M:%S.%f"], "offset": "Z"}
MIXED = {"date_format": ["excel", "%d.%m.%Y"], "zone": "Europe/Berlin", "decimal": ","}
ZONED = {
    "date_format": ["%d.%m.%Y", "%d.%m.%Y %H:%M %Z"],
    "zones": {"PT": "America/Los_Angeles"},
    "zone": "Europe/Berlin",
}
NAMES = {"date_format": ["%d. %B %Y", "%d.%m.%Y"], "months": MONTHS, "offset": "Z"}


@pytest.mark.parametrize(
    ("stated", "cell", "time"),
    [
        (DAY_OR_TIME, "24.11.2026", "2026-11-24T00:00:00+01:00"),
        (DAY_OR_TIME, " 24.11.2026 10:15:00", "2026-11-24T10:15:00+01:00"),
        (DAY_OR_TIME, "4.11.2026 1:15:00", "2026-11-04T01:15:00+01:00"),
        (FRACTIONS, "24.11.2026 10:15:00", "2026-11-24T10:15:00+00:00"),
        (FRACTIONS, "24.11.2026 10:15:00.120", "2026-11-24T10:15:00.12+00:00"),
        (MIXED, "45292,75", "2024-01-01T18:00:00+01:00"),
        (MIXED, "01.07.2026", "2026-07-01T00:00:00+02:00"),
        (ZONED, "01.07.2026", "2026-07-01T00:00:00+02:00"),
        (ZONED, "01.07.2026 10:00 PT", "2026-07-01T10:00:00-07:00"),
        # A time that Berlin skips, which is none of Berlin.
        (ZONED, "29.03.2026 02:30 PT", "2026-03-29T02:30:00-07:00"),
        (NAMES, "3. MÄRZ 2026", "2026-03-03T00:00:00+00:00"),
        (NAMES, "03.03.2026", "2026-03-03T00:00:00+00:00"),
        # Both read it as one day, so that there is nothing to decide.
        ({"date_format": ["%b %d, %Y", "%B %d, %Y"]}, "May 5, 2026", "2026-05-05T00:00:00"),
    ],
)
def test_a_cell_is_read_by_the_form_that_it_has(
    stated: dict[str, Any], cell: str, time: str
) -> None:
    assert read([cell], **stated) == [time]


@pytest.mark.parametrize(
    ("stated", "cell", "why"),
    [
        (
            DAY_OR_TIME,
            "2026-11-24",
            "(not written as %d.%m.%Y; not written as %d.%m.%Y %H:%M:%S)",
        ),
        (DAY_OR_TIME, "30.02.2026", "(not written as %d.%m.%Y: no such day or time exists; not"),
        (MIXED, "45292,75 h", "(not written as %d.%m.%Y; not a number of days of excel)"),
        (MIXED, "45292.75", "; not a number of days of excel: decimal sign is ',')"),
        ({"date_format": "unix"}, "1,5", "(not a number of seconds of unix: decimal sign is '.')"),
        (ZONED, "01.07.2026 10:00", "with PT for %Z)"),
        (NAMES, "3. March 2026", "Dezember for %B; not written as %d.%m.%Y)"),
        (
            {"date_format": DAY_OR_TIME["date_format"], "zone": "Europe/Berlin"},
            "29.03.2026 02:30:00",
            "(the clocks skip this time in Europe/Berlin)",
        ),
    ],
)
def test_a_cell_in_none_of_them_is_told_all(stated: dict[str, Any], cell: str, why: str) -> None:
    (text,) = read([cell], **stated)
    assert text.startswith(f"{cell} (")
    assert why in text


def test_a_cell_that_two_forms_read_as_two_times_is_none() -> None:
    """A profile is refused where its forms are such; no row depends on that."""
    said = DateForms(("%d/%m/%Y", "%m/%d/%Y")).wall("01/02/2026")
    assert said == "2026-02-01T00:00:00 as %d/%m/%Y, and 2026-01-02T00:00:00 as %m/%d/%Y"
    assert DateForms(("%d/%m/%Y", "%m/%d/%Y")).wall("01/13/2026") == datetime(2026, 1, 13)  # noqa: DTZ001


@pytest.mark.parametrize(
    ("forms", "text"),
    [
        (["%d/%m/%Y", "%m/%d/%Y"], "03/02/2001"),
        (["%d.%m.%y", "%y.%m.%d"], "03.02.01"),
        (["%d.%m.%Y", "%d.%m.%Y %H:%M", "%d.%m.%Y %M:%H"], "03.02.2001 04:05"),
        (["%Y%m%d", "%d%m%Y"], "20010203"),
        (["%Y%m%d", "unix"], "20010203"),
        (["excel", "excel-1904"], "61"),
        (["unix", "unix-ms"], "100000000000"),
        (["excel", "%y%m%d"], "010203"),
    ],
)
def test_forms_that_read_one_text_as_two_times_are_refused(forms: list[str], text: str) -> None:
    with pytest.raises(ProfileError, match=rf"^date_format: '{re.escape(text)}' is .* as .*, and "):
        read_profile({"feed": "x", "date_format": forms})
    field = {"PaymentDate": {"date_format": forms}}
    with pytest.raises(ProfileError, match=r"^fields.PaymentDate.date_format: "):
        read_profile({"feed": "x", "record": "payment", "fields": field})


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"date_format": []}, "is a list of 0 forms. Write one to 8"),
        ({"date_format": [f"%d.%m.%Y{'x' * n}" for n in range(9)]}, "is a list of 9 forms"),
        ({"date_format": ["%d.%m.%Y", "%d.%m"]}, "does not give day, month and year"),
        ({"date_format": ["%d.%m.%Y", 1]}, "is not a text in quotes"),
        ({"date_format": ["unix", "excel-1904"], "date_zeros": "dropped"}, "date_zeros is about"),
        ({**ZONED, "date_format": ["%d.%m.%Y %Z", "%d.%m.%y %Z"]}, "both say what a time means"),
        ({"date_format": ["%d.%m.%Y", "%d.%m.%y"], "zones": {"PT": "Z"}}, "in times as %Z"),
        ({"date_format": ["%d.%m.%Y", "%m %Y %d"], "months": MONTHS}, "for a date_format with %B"),
    ],
)
def test_a_list_that_cannot_be_meant(keys: dict[str, Any], said: str) -> None:
    with pytest.raises(ProfileError, match=said):
        read_profile({"feed": "x", **keys})


def test_a_profile_is_what_it_says_in_any_order() -> None:
    one, other = (
        read_profile({"feed": "x", "date_format": forms})
        for forms in (["%d.%m.%Y", "%d.%m.%Y %H:%M"], ["%d.%m.%Y %H:%M", *["%d.%m.%Y"] * 2])
    )
    assert one.hash == other.hash
    single = read_profile({"feed": "x", "date_format": ["%d.%m.%Y"]})
    assert single == read_profile({"feed": "x", "date_format": "%d.%m.%Y"})


@pytest.mark.long
def test_rejects_are_corrected_in_any_of_the_forms(
    workspace: Workspace, rows: Any, tmp_path: Path
) -> None:
    cells = ["01.07.2026", "01.07.2026 10:15:00", "2026-07-01", "01.07.2026 25:00:00"]
    iso = "2026-01-01T10:00:00+01:00"
    lines = [line(number).replace(iso, cell) for number, cell in enumerate(cells, 1)]
    profile = read_profile({"feed": "days", **DAY_OR_TIME, "offset": "Z"})
    import_delivery(workspace, [write(tmp_path / "a.csv", *lines)], profile)
    ((rejects, count),) = write_rejects(workspace, 1, tmp_path / "1", with_secrets=False).items()
    assert count == 2
    text = rejects.read_text(encoding="utf-8")
    rejects.write_text(text.replace("2026-07-01", "02.07.2026").replace("25:00", "23:00"))
    import_delivery(workspace, [str(rejects)], profile, corrects=1)
    found = rows('SELECT "PaymentDate" AT TIME ZONE \'UTC\' FROM payment ORDER BY "Id"')
    told = ["2026-07-01 00:00:00", "2026-07-01 10:15:00", "2026-07-02 00:00:00"]
    assert [str(wall) for (wall,) in found] == [*told, "2026-07-01 23:00:00"]


POOL = (
    *("%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%d/%m/%y", "%y/%m/%d", "%Y-%m-%d", "%d %b %Y"),
    *("%B %d, %Y", "%Y%m%d", "%d%m%Y", "%d%m%y", "%y%m%d", "%j.%Y", "%G-W%V-%u"),
    *("%d.%m.%Y %H:%M", "%d.%m.%Y %I:%M %p", "%Y-%m-%d %H:%M:%S", "%Y-%m-%d %H:%M:%S.%f"),
    *("%Y%m%d%H%M%S", "%d%m%y%H%M", "%y%m%d%H%M", "%Y-%m-%dT%H:%M:%S%z", "%H:%M %d.%m.%Y"),
    *EPOCHS,
)


def written(wall: datetime, form: str) -> tuple[str, datetime]:
    """A time in a form, and as much of it as the form says."""
    if form in EPOCHS:
        unit, epoch = EPOCHS[form].seconds, EPOCHS[form].epoch
        count = int((wall - epoch.replace(tzinfo=None)) / timedelta(seconds=float(unit)))
        return str(count), epoch + timedelta(seconds=float(count * unit))
    zone = timezone(timedelta(hours=1)) if "%z" in form else None
    text = wall.replace(tzinfo=zone).strftime(form)
    return text, datetime.strptime(text, form)  # noqa: DTZ007


@pytest.mark.long
@settings(max_examples=examples(600, 20), deadline=None)
@given(
    forms=st.lists(st.sampled_from(POOL), min_size=2, max_size=4, unique=True),
    walls=st.lists(
        st.datetimes(datetime(1974, 1, 1), datetime(2068, 12, 31)),  # noqa: DTZ001
        min_size=1,
        max_size=8,
    ),
)
def test_what_is_written_in_one_of_the_forms_is_read_back(
    forms: list[str], walls: list[datetime]
) -> None:
    """Or the forms are refused, with a text that each of two reads by itself as another time."""
    try:
        profile = read_profile({"feed": "x", "date_format": forms})
    except ProfileError as error:
        told = re.search(r"date_format: '(.*)' is .* as (.*), and .* as (.*)\. Nobody", str(error))
        assert told is not None
        one, other = (DateForms((form,)).wall(told[1]) for form in (told[2], told[3]))
        assert isinstance(one, datetime)
        assert isinstance(other, datetime)
        assert one.isoformat() != other.isoformat()
        return
    assert profile.date_format == tuple(sorted(forms))
    pairs = [written(wall, form) for wall in walls for form in forms]
    back = read([text for text, _ in pairs], date_format=forms)
    assert [datetime.fromisoformat(text) for text in back] == [time for _, time in pairs]
