"""Times read all at once are those that are read one by one."""

import random
from datetime import datetime, timedelta

import polars as pl
import pytest

from flows.steps.validate.quick_times import quick_counts, quick_texts
from flows.steps.validate.times import TimeForm
from schemas.cells.counted_times import EPOCHS
from schemas.cells.date_forms import DateForms
from schemas.cells.reading import UNFIT
from tests.examples import examples

ISO = "%Y-%m-%dT%H:%M:%S"
FORMS: tuple[tuple[str, ...], ...] = (
    (),
    ("%d.%m.%Y %H:%M:%S",),
    ("%Y%m%d%H%M%S",),
    ("%d/%m/%Y",),
    ("%Y-%m-%d %H:%M",),
    ("%m.%Y.%d",),
    ("%d%m%Y",),
    ("%d %% %m %Y",),
    ("%H uhr %M am %d.%m.%Y",),
    ("%d.%m.%Y %H:%M:%S.%f",),
    ("%Y%m%d%f",),
    ("unix",),
    ("unix-ms",),
    ("%d.%m.%Y", "%d.%m.%Y %H:%M:%S"),
    ("%d.%m.%Y %H:%M:%S", "%d.%m.%Y %H:%M:%S.%f"),
    ("%Y%m%d", "%Y%m%d%H%M%S", "%d.%m.%Y"),
    ("%d/%m/%Y", "%m/%d/%Y", "%d/%m/%y"),
    ("%d.%m.%Y", "%b %d, %Y", "%d%m%y"),
    ("unix", "unix-ms", "%Y%m%d", "%d.%m.%Y"),
)
"""What two of these forms read as two times is none."""
ZONES = (None, "Europe/Berlin", "America/Anchorage", "Asia/Kathmandu", "Africa/Monrovia", "UTC")
ODD = [
    "0000-01-01T00:00:00",
    "2026-01-01T00:00:60",
    "2026-02-30T00:00:00",
    "2026-01-01T24:00:00",
    "9999-12-31T23:59:59",
    "0001-01-01T00:00:00",
    " 2026-01-01T00:00:00\t",
    "2026-01-01T00:00:00Z",
    "2026-01-01",
    "2026-01-01 10:00",
    "31.12.2026 23:59:60",
    "31.12.9999 23:59:59",
    "01.01.0001 00:00:00",
    "1.2.2026 10:00:00",
    "00000000000000",
    "99991231235959",
    "\N{ARABIC-INDIC DIGIT ZERO}1.02.2026 10:00:00",
    "",
    "29.02.2023",
    "1767225600",
    " 1767225600 ",
    "1767225600.5",
    "0767225600",
    "1767225600000",
    "1767225600120",
    "29.02.2024",
    "20260229000000",
    "x",
]


def written(chance: random.Random, form: str) -> str:
    wall = datetime(1969, 12, 31) + timedelta(seconds=chance.randrange(4_000_000_000))  # noqa: DTZ001
    if chance.random() < 0.3:  # Near a change of the clocks.
        wall = datetime(2026, chance.choice((3, 10)), 29, chance.randrange(24), 30)  # noqa: DTZ001
    wall += timedelta(milliseconds=chance.choice((0, 0, 7, 120)))
    text = wall.strftime(form)
    if form in EPOCHS:
        text = str(chance.randrange(10 ** chance.choice((9, 10, 11, 13, 14))))
    if chance.random() < 0.2:
        at = chance.randrange(len(text) + 1)
        text = text[:at] + chance.choice("0195 .-:T") + text[at + chance.randint(0, 1) :]
    return text


@pytest.mark.parametrize("seed", range(examples(200, few=12)))
def test_all_at_once_is_one_by_one(seed: int) -> None:
    chance = random.Random(seed)
    forms = chance.choice(FORMS)
    zone = chance.choice(ZONES)
    offset = None if zone else chance.choice((None, 0, 60, -570))
    texts = [*ODD, *(written(chance, chance.choice(forms or (ISO,))) for _ in range(150)), None]
    if chance.random() < 0.5:  # As in a column of days, where each text is read once.
        texts = chance.choices(texts, k=len(texts) * 8)
    dates = DateForms(forms, zeros_dropped=chance.random() < 0.1)
    time = TimeForm(dates, offset_minutes=offset, zone=zone)
    found = pl.select(time.plain(pl.lit(pl.Series(texts, dtype=pl.String)))).to_series()
    assert found.to_list() == [None if one is None else time.of(one) for one in texts], (
        f"seed {seed}"
    )


def test_most_are_read_at_once() -> None:
    texts = pl.Series(["01.02.2026 10:30:00", "02.02.2026 23:59:59", "29.03.2026 10:00:00"])
    found = quick_texts(texts, "%d.%m.%Y %H:%M:%S", None, "Europe/Berlin").to_list()
    assert found == ["2026-02-01T10:30:00+01:00", "2026-02-02T23:59:59+01:00", None]


def test_most_of_a_list_are_read_at_once() -> None:
    forms = ("%d.%m.%Y", "%d.%m.%Y %H:%M:%S", "%d.%m.%Y %H:%M:%S.%f")
    texts = pl.Series(["01.02.2026", "01.02.2026 10:30:00", "01.02.2026 10:30:00.120", "1.2.2026"])
    found = TimeForm(DateForms(forms), offset_minutes=0).at_once(texts)
    assert found.to_list() == [
        "2026-02-01T00:00:00+00:00",
        "2026-02-01T10:30:00+00:00",
        "2026-02-01T10:30:00.12+00:00",
        None,
    ]


def test_most_counts_are_read_at_once() -> None:
    texts = pl.Series(["1767225600000", "1767225600120", "1767225600"])
    assert quick_counts(texts, "unix-ms").is_null().to_list() == [False, False, True]
    assert quick_counts(texts, "unix").is_null().to_list() == [True, True, False]


@pytest.mark.parametrize(
    ("zone", "day", "said"),
    [
        ("Pacific/Apia", "30.12.2011", None),
        ("Pacific/Apia", "29.12.2011", "2011-12-29T00:00:00-10:00"),
        ("Pacific/Apia", "31.12.2011", "2011-12-31T00:00:00+14:00"),
        ("Pacific/Kiritimati", "31.12.1994", None),
        ("America/Sao_Paulo", "04.11.2018", "2018-11-04T01:00:00-02:00"),
        ("America/Havana", "01.11.2026", "2026-11-01T00:00:00-04:00"),
    ],
)
def test_a_day_begins_on_that_day_or_is_none(zone: str, day: str, said: str | None) -> None:
    skipped = f"{day}{UNFIT} (the clocks skip this day in {zone})"
    assert TimeForm(DateForms(("%d.%m.%Y",)), zone=zone).of(day) == (said or skipped)
