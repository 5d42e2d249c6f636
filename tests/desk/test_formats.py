"""Dates, numbers and negatives as an account has chosen them: shown, typed back, and linked."""

import re
from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal, localcontext
from importlib.resources import files

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from connectors.errors import AccountRefused, DecisionRefused
from connectors.postgres.accounts import choose_show_as, chosen_show_as
from flows.desk.filters import BreakSearch
from flows.desk.formats import day, moment, number, read_day, read_number, typed
from flows.report.spelling import MINUS, NARROW
from flows.stages.workspace import Workspace
from schemas.show_as import AS_EVER, Dates, Negatives, Numbers, ShowAs
from tests.accounts.people import ADA, ANNA, BO, add, logged_in
from tests.desk.browser import Browser
from tests.desk.many import many_breaks
from tests.desk.test_run import downloaded, figures
from tests.governance.runs import found, reconcile

New = Callable[[], Browser]
GERMAN = ShowAs(Dates.DOTS, Numbers.POINT_COMMA, Negatives.BRACKETS)
SHOWS = st.builds(
    ShowAs, st.sampled_from(Dates), st.sampled_from(Numbers), st.sampled_from(Negatives)
)
AMOUNTS = st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**30), max_value=10**30)


@pytest.mark.parametrize(
    ("show", "value", "told"),
    [
        (AS_EVER, "-1234567.5", f"{MINUS}1{NARROW}234{NARROW}567.50"),
        (ShowAs(numbers=Numbers.COMMA_POINT), "-1234567.5", f"{MINUS}1,234,567.50"),
        (ShowAs(numbers=Numbers.POINT_COMMA), "-1234567.5", f"{MINUS}1.234.567,50"),
        (ShowAs(numbers=Numbers.BLANK_COMMA), "-1234567.5", f"{MINUS}1{NARROW}234{NARROW}567,50"),
        (ShowAs(numbers=Numbers.APOSTROPHE_POINT), "-1234567.5", f"{MINUS}1'234'567.50"),
        (ShowAs(negatives=Negatives.BRACKETS), "-1", "(1.00)"),
        (ShowAs(negatives=Negatives.TRAILING), "-1", f"1.00{MINUS}"),
        (GERMAN, "-12345678901234567890.123456789012345678",
         "(12.345.678.901.234.567.890,123456789012345678)"),
        (GERMAN, "0", "0,00"),
        (ShowAs(negatives=Negatives.TRAILING), f"-1{'0' * 70}10.5", f"{MINUS}1e72 {MINUS} 10.50"),
        (GERMAN, f"-1{'0' * 70}10.5", "(1e72 + 10,50)"),
    ],
)  # fmt: skip
def test_a_number_is_shown(show: ShowAs, value: str, told: str) -> None:
    assert number(show, Decimal(value)) == told


@pytest.mark.parametrize(
    ("dates", "told"),
    [("iso", "2026-11-03"), ("dots", "03.11.2026"), ("slashes", "03/11/2026"),
     ("month-first", "11/03/2026")],
)  # fmt: skip
def test_a_day_is_shown(dates: str, told: str) -> None:
    show = ShowAs(Dates(dates))
    assert day(show, date(2026, 11, 3)) == told
    assert moment(show, datetime(2026, 11, 3, 4, 5, tzinfo=UTC)) == f"{told} 04:05"


def test_every_moment_of_a_page_says_that_it_is_in_utc() -> None:
    templates = (files("flows.desk") / "templates").iterdir()
    lines = [
        line for one in templates if "jinja" in one.name for line in one.read_text().split("\n")
    ]
    told = [line for line in lines if "| moment }}" in line]
    assert len(told) > 8
    assert [line for line in told if "UTC" not in line] == []


@pytest.mark.long
@given(SHOWS, AMOUNTS)
@example(ShowAs(), Decimal(10**26))
def test_an_amount_that_is_shown_and_typed_back_is_the_same(show: ShowAs, amount: Decimal) -> None:
    assert read_number(show, number(show, amount)) == amount
    with localcontext(prec=60):
        cents = amount.quantize(Decimal("0.01"))
    assert read_number(show, typed(show, cents)) == cents


@given(SHOWS, st.dates())
def test_a_day_that_is_shown_and_typed_back_is_the_same(show: ShowAs, of: date) -> None:
    assert read_day(show, day(show, of)) == read_day(show, of.isoformat()) == of


@given(st.sampled_from(Numbers), AMOUNTS)
def test_a_filter_that_is_shown_and_sent_again_finds_the_same(
    numbers: Numbers, amount: Decimal
) -> None:
    amount = abs(amount) % 10**19
    asked = BreakSearch({"amount": format(amount, "f")})
    again = BreakSearch({"amount": asked.in_form("amount", numbers)})
    assert Decimal(again.canonical(numbers)["amount"]) == amount


@pytest.mark.parametrize(
    ("show", "text", "value"),
    [
        (GERMAN, "1.234,5", "1234.5"),
        (GERMAN, "1234.5", "1234.5"),
        (GERMAN, "0.125", "0.125"),
        (GERMAN, "1.234.567", "1234567"),
        (GERMAN, f"{MINUS}12,5", "-12.5"),
        (GERMAN, "12,5-", "-12.5"),
        (AS_EVER, "(1 250.00)", "-1250"),
        (AS_EVER, "1'250", "1250"),
        (AS_EVER, "1.234", "1.234"),
        (AS_EVER, "1,234.56", None),
        (AS_EVER, "--1", None),
        (AS_EVER, "nan", None),
        (AS_EVER, "1e3", "1000"),
        (AS_EVER, "1e9999", None),
        (AS_EVER, "1e-9999", None),
        (GERMAN, "0e-9999", None),
        (GERMAN, "1.23,45", None),
        (GERMAN, "1,234.56", None),
        (GERMAN, "", None),
    ],
)
def test_what_is_typed_is_read(show: ShowAs, text: str, value: str | None) -> None:
    assert read_number(show, text) == (None if value is None else Decimal(value))


def test_what_may_be_two_numbers_is_refused_with_how_to_write_either() -> None:
    with pytest.raises(DecisionRefused, match=r"'1\.234' may be 1234 or 1,234: write one of these"):
        read_number(GERMAN, "1.234")
    assert read_number(GERMAN, "1234") == 1234
    assert read_number(GERMAN, "1,234") == Decimal("1.234")


@pytest.mark.long
def test_figures_are_shown_as_chosen_and_lead_to_the_same_breaks(
    workspace: Workspace, browser: New
) -> None:
    add(workspace, ANNA, BO)
    run = reconcile(logged_in(workspace, ANNA), many_breaks(300), scope="everything")
    anna, bo = browser().log_in("anna"), browser().log_in("bo")
    anna.open("/account").send("/account/show-as", **fields(GERMAN))
    assert anna.status == 200
    run_page = f"/runs/{run.id}"
    for path in ("/", run_page, f"{run_page}/breaks", f"{run_page}/decide?all=1&state=open"):
        mine, theirs = figures(anna.open(path)), figures(bo.open(path))
        assert (anna.status, bo.status) == (200, 200), path
        assert [to for to, _ in mine] == [to for to, _ in theirs], "addresses have one form"
        for (_, shown), (_, usual) in zip(mine, theirs, strict=True):
            assert read_number(GERMAN, shown + ",00" * ("," not in shown)) == read_number(
                AS_EVER, usual
            )
    assert f"as of {run.as_of:%d.%m.%Y}" in anna.open(run_page).text
    assert f"{run.as_of}" in bo.open(run_page).text
    large = max(figures(anna), key=lambda one: len(one[1]))
    assert re.fullmatch(r"\(?[0-9.]+,[0-9]{2,}\)?", large[1])
    assert downloaded(anna, large[0]) == downloaded(bo, large[0]), "and so have downloads"


def german_anna(workspace: Workspace, browser: New) -> tuple[Browser, int]:
    """Somebody who sees figures as Germans write them, and a run with a break of 1,234.56."""
    add(workspace, ANNA)
    place = logged_in(workspace, ANNA)
    with place.database.connect() as connection:
        choose_show_as(connection, "anna", GERMAN)
    run = reconcile(place, found("1", amount="1234.56"), scope="everything")
    return browser().log_in("anna"), run.id


@pytest.mark.long
def test_a_filter_is_typed_as_figures_are_shown(workspace: Workspace, browser: New) -> None:
    anna, run = german_anna(workspace, browser)
    breaks = f"/runs/{run}/breaks"
    anna.open(breaks, numbers="point-comma", amount="1.234,56")
    assert "1 break" in anna.text
    assert anna.answer.url.params["amount"] == "1234.56", "the address is for everybody"
    assert 'name="amount" value="1234,56"' in anna.answer.text
    anna.open(breaks, numbers="point-comma", amount="1.234,57")
    assert "0 breaks" in anna.text
    anna.open(breaks, numbers="point-comma", amount="1.234")
    assert (anna.status, "may be 1234 or 1,234" in anna.text) == (400, True)
    assert 'name="amount" value="1.234"' in anna.answer.text, "what was typed is kept"
    anna.open(breaks, amount="1.234")
    assert "1 break" in anna.text, "an address has one meaning"


def test_a_ceiling_is_typed_as_figures_are_shown(workspace: Workspace, browser: New) -> None:
    anna, run = german_anna(workspace, browser)
    decide = f"/runs/{run}/decide"
    terms = {"reason": "bank charges", "until": "2026-12-31"}
    anna.open(f"{decide}?all=1&state=open&what=accept").send(decide, **terms, up_to="1.500")
    assert (anna.status, "may be 1500 or 1,500" in anna.text) == (400, True)
    # What is refused is told in the same form.
    anna.send(decide, **terms, up_to="10,5")
    assert "Up to 10,5 is less than what is there" in anna.text
    assert " is 1234,56. Nothing was decided." in anna.text
    anna.send(decide, **terms | {"until": "2026-01-01"}, up_to="")
    assert "Last day 01.01.2026 has passed: reconciliation 1 is as of 31.01.2026." in anna.text
    anna.send(decide, **terms, up_to="1.500,00")
    assert "until 31.12.2026 up to 1.500,00" in anna.text


def fields(show: ShowAs) -> dict[str, str]:
    return dict(zip(("dates", "numbers", "negatives"), show.words.split(), strict=True))


@pytest.mark.long
def test_everybody_chooses_for_themselves_and_an_administrator_for_all(
    workspace: Workspace,
) -> None:
    add(workspace, ANNA, BO, ADA)
    anna, ada = logged_in(workspace, ANNA), logged_in(workspace, ADA)
    with anna.database.connect() as connection:
        choose_show_as(connection, "anna", GERMAN)
    with (
        pytest.raises(AccountRefused, match="administrator"),
        anna.database.connect() as connection,
    ):
        choose_show_as(connection, "bo", GERMAN)
    with ada.database.connect() as connection:
        choose_show_as(connection, "bo", GERMAN)
        assert chosen_show_as(connection, "bo") == chosen_show_as(connection, "anna") == GERMAN
        assert chosen_show_as(connection, "ada") == AS_EVER
        assert chosen_show_as(connection, "nobody") is None
    with pytest.raises(AccountRefused, match="no account"), ada.database.connect() as connection:
        choose_show_as(connection, "nobody", GERMAN)
