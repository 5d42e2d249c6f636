"""Whatever form a feed states, what its rows are is not a matter of how they are read."""

from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import assume, event, given, settings
from hypothesis import strategies as st

from connectors.files.profiles.profile import DEFAULT, Profile, date_forms, number_form, written_of
from flows.stages.chunks.split_chunk import fast_rows
from schemas.cells.counted_times import EPOCHS
from schemas.cells.numbers import BLANK, GROUPS, NoNumberForm, check_forms
from tests.examples import examples
from tests.stages.payments import HEADER
from tests.stages.reading.test_fast_feeds import ODD, read
from tests.stages.reading.test_fast_path import compare

NAMES = HEADER.split(",")
DATE_FORMS = [
    None,
    *("%d.%m.%Y", "%d/%m/%y", "%Y%m%d", "%d%m%y", "%d %b %Y %H:%M", "%b %d, %Y", "%H:%M %d.%m.%Y"),
    *("%Y-%m-%d %H:%M:%S", "%y-%m-%dT%H:%M", "day %d of %m in %Y", "%j %Y", "%d.%m.%Y %I:%M %p"),
    *EPOCHS,
    ("%d.%m.%Y", "%d.%m.%Y %H:%M:%S"),
    ("excel", "%Y-%m-%d %H:%M:%S"),
]
ZONES = [
    {},
    {"offset": "Z"},
    {"offset": "+05:45"},
    {"zone": "Europe/Berlin"},
    {"zone": "Asia/Kolkata"},
]
AMOUNTS = [
    {},
    {"negative": ("1-",)},
    {"negative": ("(1)", "-1"), "currency": ("£1", "1 EUR")},
    {"negative": ("(1)", "-1"), "currency": ("Rs.1", "1 EUR")},
    {"negative": ("1 DR",), "positive": ("1 CR",)},
    {"negative": ("1",), "positive": ("-1",)},
    {"negative": ("\N{MINUS SIGN}1",), "currency": ("1 €",)},
    {"percent": "share"},
    {"negative": ()},
    {"zero": ("-", "n/a", "x")},
    {"implied_decimals": 2},
    {"decimals": 1},
    {"decimals": 0},
]


@st.composite
def profiles(draw: st.DrawFn) -> Profile:
    """A profile that states some forms; those it cannot state are drawn again."""
    fields = {
        "DiscountAmount": draw(st.sampled_from([{}, {"default": "0.00"}, {"default": "1.5"}])),
        "CurrenciesId": draw(
            st.sampled_from([{}, {"map": {"EUR": "978", "euro": "978", "E": "840", "": "1"}}])
        ),
        "DebtsId": draw(
            st.sampled_from(
                [{}, {"part": r"INV-0*(\d+)"}, {"part": r"([0-9]+)"}, {"part": r"a.([0-9]+)$"}]
            )
        ),
    }
    profile = replace(
        DEFAULT,
        **draw(st.sampled_from(AMOUNTS)),
        **draw(st.sampled_from(ZONES)),
        decimal=draw(st.sampled_from([".", ","])),
        thousands=draw(st.sampled_from(["", ".", ",", "'", BLANK])),
        groups=draw(st.sampled_from(sorted(GROUPS))),
        null=draw(st.sampled_from([("",), ("", "n/a"), ("", "-", "0"), ("", "NULL", " ")])),
        blanks=draw(st.sampled_from(["kept", "dropped"])),
        date_format=draw(st.sampled_from(DATE_FORMS)),
        date_zeros=draw(st.sampled_from(["kept", "dropped"])),
        leave_out=draw(st.sampled_from([{}, {"ActionsId": ("3", "")}, {"CurrenciesId": ("XXX",)}])),
        keep_only=draw(st.sampled_from([{}, {"CurrencyRatesId": ("1", "2", "3", "4", "5")}])),
        tenant=draw(st.sampled_from([None, 7])),
        fields={name: one for name, one in fields.items() if one},
    )
    try:
        check_forms(number_form(written_of(profile)))
    except NoNumberForm:
        assume(False)
    assume(profile.thousands != profile.decimal)
    return profile


def moment(profile: Profile, day: int) -> str:
    """A time as the profile's feed writes it."""
    at = datetime(1999, 12, 31, 23, 59) + timedelta(days=day, seconds=97 * day)  # noqa: DTZ001
    forms = date_forms(written_of(profile)).texts
    form = forms[day % len(forms)] if forms else None
    if form is None:
        return at.strftime("%Y-%m-%dT%H:%M:%S") + ("Z" if day % 4 else "")
    if form not in EPOCHS:
        return at.strftime(form)
    seconds = int((at - EPOCHS[form].epoch.replace(tzinfo=None)).total_seconds())
    if "excel" in form:
        return f"{seconds // 86_400}{profile.decimal}{25 * (day % 4):02}"
    return str(seconds * (1000 if form == "unix-ms" else 1))


@st.composite
def rows(draw: st.DrawFn, profile: Profile) -> list[list[str]]:
    """Records of a feed: most as they are to be, of some a cell is any other text."""
    amount = (*profile.negative[:1], *profile.positive)[draw(st.integers(0, 1))]
    zeros = "0" * draw(st.sampled_from([0, 0, 1, 12, 40]))
    found = []
    for number in range(draw(st.integers(4, 24))):
        cells = {
            **dict.fromkeys(NAMES, str(1 + number % 7)),
            "TenantsId": "7",
            "PaymentDate": moment(profile, draw(st.integers(0, 20_000))),
            "PaidAmount": amount.replace("1", f"{number}{profile.decimal}5{zeros}"),
            "DiscountAmount": draw(st.sampled_from([*[amount] * 6, "", "n/a"])),
            "CurrenciesId": "EUR" if "CurrenciesId" in profile.fields else "978",
            "DebtsId": f"a INV-00{number}" if "DebtsId" in profile.fields else str(number),
        }
        if draw(st.integers(0, 3)) == 0:
            cells[draw(st.sampled_from(NAMES))] = draw(st.sampled_from(ODD))
        found.append([*cells.values()])
    return found


@settings(max_examples=examples(1500, 20), deadline=None)
@given(data=st.data())
def test_the_fast_path_of_any_form_is_what_validating_says(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    profile = data.draw(profiles())
    quoted = [
        ",".join('"' + cell.replace('"', '""') + '"' for cell in row)
        for row in data.draw(rows(profile))
    ]
    path: Path = tmp_path_factory.mktemp("fast") / "payments.csv"
    path.write_text("\n".join([HEADER, *quoted, ""]))
    header, (chunk,) = read(path, profile)
    event("taken" if fast_rows(chunk, header, profile) else "not taken")
    compare(header, chunk, profile)
