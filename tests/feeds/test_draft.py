"""`recon profile draft`: what a file tells of itself is stated, what it does not is marked."""

import json
import re
import tempfile
from dataclasses import replace
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from connectors.errors import DeliveryError, ExtractRefused
from connectors.files.profiles.profile import Profile
from connectors.files.profiles.profile_file import read_profile
from connectors.settings import read_settings
from flows.stages.draft.profile import draft_profile
from flows.stages.examining.try_profile import try_profile
from schemas.toml_text import read_toml
from tests.examples import examples, in_long
from tests.feeds.test_gallery import FEEDS, GALLERY, file_of
from tests.governance.conftest import recon as recon  # noqa: PLC0414 -- the fixture.

TORTURE = sorted((Path(__file__).parents[1] / "torture").glob("*/*"))
STATED = ("encoding", "decimal", "thousands", "negative", "date_format")
DIVIDED = [
    feed for feed in FEEDS if "positions" not in (GALLERY / feed / "profile.toml").read_text()
]
"""Feeds with a sign between their cells: a layout of a fixed width is in no file."""


def drafted(
    path: str, record: str | None = "payment", sheet: str | None = None
) -> tuple[str, Profile]:
    text = draft_profile(read_settings(), path, "x", record, sheet)
    return text, read_profile(read_toml(text))


@pytest.mark.parametrize("feed", DIVIDED)
def test_what_a_file_of_the_gallery_tells_is_stated_as_its_profile_has_it(feed: str) -> None:
    shape = read_toml((GALLERY / feed / "profile.toml").read_text())
    text, draft = drafted(file_of(feed, "clean"), sheet=shape.get("sheet"))
    told = read_toml(text)
    assert told.get("sheet") == shape.get("sheet")
    for key in STATED:
        if isinstance(told.get(key), list):
            assert set(told[key]) <= set(shape[key]), key
        elif key in told:
            assert told[key] == shape.get(key, told[key]), key
    if shape.get("header_line") == "found":
        # Of a list in pages several lines look like one.
        assert told.get("header_line") in (2, 3, 4) or "# ? header_line = " in text
    elif "header_lines" not in shape:
        assert draft.header_line == shape.get("header_line", 1)
    assert ("# ? footer" in text) == ("footer" in shape)


PAID, DAY = "PaidAmount", "PaymentDate"
OTHERS = ("TenantsId", "ActionsId", "DebtsId", "DiscountAmount", "CurrenciesId", "CurrencyRatesId")
FORMS = ("%Y-%m-%d", "%d.%m.%Y", "%m/%d/%Y", "%d/%m/%Y", "%d %b %Y %H:%M", "%Y%m%d", "%y-%m-%d")
LEFT = "# ? zone = "
"""What a draft cannot know of times without an offset."""


@pytest.mark.long
@settings(max_examples=examples(300, 25))
@given(
    st.sampled_from(",;\t|"),
    st.sampled_from([(".", ""), (",", ""), (",", "."), (".", ","), (".", "'")]),
    st.sampled_from(FORMS),
    st.booleans(),
    st.permutations(("Id", PAID, DAY, *OTHERS)),
    st.lists(
        st.tuples(
            st.integers(-(10**9), 10**9),
            st.dates(min_value=date(1990, 1, 1), max_value=date(2037, 1, 1)),
        ),
        min_size=1,
        max_size=4,
    ),
)
def test_a_draft_reads_what_was_written_or_marks_what_it_cannot_tell(
    delimiter: str,
    signs: tuple[str, str],
    form: str,
    is_quoted: bool,
    names: list[str],
    written: list[tuple[int, date]],
) -> None:
    """Never a wrong value without a mark."""
    lines, meant = [delimiter.join(names)], []
    for number, (cents, day) in enumerate(written, 1):
        plain = f"{Decimal(cents).scaleb(-2):,.2f}"
        paid = plain.translate({ord("."): signs[0], ord(","): signs[1]})
        cells = dict.fromkeys(OTHERS, "7") | {
            "Id": str(number),
            PAID: paid,
            DAY: day.strftime(form),
        }
        row = (cells[name] for name in names)
        lines.append(
            delimiter.join(f'"{one}"' if is_quoted or delimiter in one else one for one in row)
        )
        meant.append((Decimal(cents).scaleb(-2), f"{day:%Y-%m-%d}"))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.csv"
        path.write_text("\n".join([*lines, ""]))
        text, draft = drafted(str(path))
        marked = [line for line in text.splitlines()[2:] if "# ?" in line]
        if any(not line.startswith(LEFT) for line in marked):
            return
        stated = replace(draft, offset="Z")
        tried = try_profile(read_settings(), str(path), stated, record=None, rows=len(written))
    assert not tried.verdict.rejects, text
    read = [(row.values[PAID][1], row.values[DAY][1]) for row in tried.rows]
    assert [(Decimal(str(paid)), str(day)[:10]) for paid, day in read] == meant, text


@pytest.mark.long(but=("blank_line_middle.csv", "gz_truncated.csv.gz"))
@pytest.mark.parametrize(
    "path",
    [in_long(one) if "10000" in one.name else one for one in TORTURE],
    ids=lambda path: path.name,
)
def test_a_hostile_file_has_a_draft_that_can_be_loaded_or_is_refused(path: Path) -> None:
    try:
        drafted(str(path))
    except (DeliveryError, ExtractRefused):
        return


@pytest.mark.long
@settings(deadline=None)
@given(st.lists(st.text(max_size=20), min_size=1, max_size=4))
def test_whatever_columns_are_called_the_draft_can_be_loaded(names: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.csv"
        path.write_bytes((";".join(names) + "\n1;2\n").encode("utf-8", "surrogatepass"))
        try:
            text, _ = drafted(str(path), None)
        except ExtractRefused:
            return
    mapped = re.sub(r'^# [?] (".*") = "" ', r'\1 = "Id" ', text, flags=re.MULTILINE)
    read_toml(mapped)


@pytest.mark.long
def test_the_command_prints_it_and_trying_it_says_what_is_left(recon: Any, tmp_path: Path) -> None:
    path = file_of("german-bank", "clean")
    code, out, err = recon("profile", "draft", path, "--record", "payment", "--feed", "bank")
    assert (code, err) == (0, "")
    assert out.startswith("# Drafted from clean.csv, the first 3 rows of it.\n# Decide what begins")
    assert '# ? "Buchungstag" = "PaymentDate"  # such as 02.11.2026' in out
    draft = tmp_path / "bank.toml"
    draft.write_text(out)
    code, out, _ = recon("profile", "try", path, "--profile", str(draft), "--json")
    assert (code, json.loads(out)["refused"]) == (1, "missing_column")


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        (("no.csv",), "no such file"),
        (("a.csv", "--record", "refund"), "There is no record kind 'refund'"),
        (("a.csv", "--feed", "a b"), "feed = 'a b' is not a name"),
    ],
)
def test_what_cannot_be_drafted(
    recon: Any, tmp_path: Path, asked: tuple[str, ...], told: str
) -> None:
    (tmp_path / "a.csv").write_text("x,y\n1,2\n")
    code, out, err = recon("profile", "draft", str(tmp_path / asked[0]), *asked[1:])
    assert (code, out) == (2, "")
    assert told in " ".join(err.split())


ACCOUNT = "Id;UserName;PasswordHash;Salt;RefId\n"
SECRET = [
    # a record kind, or none; a text, in which each secret begins with sec; what it is written in
    ("user_account", ACCOUNT + "1;u;sec1;sec2;7\n2;u;sec3;sec4;8\n", "utf-8"),
    (None, ACCOUNT + "1;u;sec1;sec2;7\n2;u;sec3;sec4;8\n", "utf-8"),
    ("user_account", "Id;UserName;Kennwort\n1;u;sec1\n", "utf-8"),
    (None, "Password;Kennwort\nsec1;sec2\n", "utf-8"),
    # A cell that is lost moves a secret anywhere.
    ("user_account", ACCOUNT + "1;u;x;x;7\n2;u;secret1;7\n3;sec ;x;sec2\n", "utf-8"),
    ("user_account", ACCOUNT + "1;u;x;x;7\n2;u;x;x;8\n3;u;x;x;9\nTotal;sec;sec\n", "utf-8"),
    ("user_account", ACCOUNT + "1;u;x;x;7\nSec: 1\n2;u;x;x;8\nSec: 2\n3;u;x;x;9\n", "utf-8"),
    ("user_account", ACCOUNT + "1;u;s\u00e9c;x;7\n", "cp1252"),
    ("user_account", ACCOUNT + "1;u;x;x;7\n2;u;x;x;7\n3;u;x;x;secret\n", "utf-8"),
    ("user_account", ACCOUNT + "1;u;3 sec. 2026;x;7\n", "utf-8"),
    ("user_account", ACCOUNT + "1;u;Sec 1.5;x;7\n", "utf-8"),
    ("user_account", "UserName;IsActive\nu;sec1\nu;sec2\n", "utf-8"),
    ("user_account", "UserName;BirthDate;TZ\nu;2026-01-01;Sec\nu;2026-01-02;Sec\n", "utf-8"),
    # What is no header for certain may be one.
    ("user_account", "u;sec1\nv;sec2\n", "utf-8"),
    ("user_account", "1;sec1\n2;sec2\n", "utf-8"),
    ("insert_batch_data", "Id;BatchId;Jsondata\n1;2;sec\n", "utf-8"),
]


@pytest.mark.parametrize(("record", "text", "encoding"), SECRET)
def test_a_draft_shows_no_cell_that_may_be_a_secret(
    tmp_path: Path, record: str | None, text: str, encoding: str
) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(text.encode(encoding))
    draft, _ = drafted(str(path), record)
    assert not re.search("s[e\u00e9]c", draft, re.IGNORECASE), draft
