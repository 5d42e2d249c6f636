import re
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal

import pytest

from flows.desk.review import unexplained_of
from flows.report.reconciled.after import after, after_cut_off
from flows.report.reconciled.annexes import causes
from flows.report.reconciled.first_page import changed, money, signatures, top_causes
from flows.report.reconciled.html import render_html
from flows.report.reconciled.letter import letter
from flows.report.reconciled.markdown import BYTES, ROWS, breaks_table, reconciliation_markdown
from flows.report.reconciled.table import TableRow
from flows.report.reconciled.tables import FORWARDS, facts, forward
from flows.report.reconciled.text import render_text
from flows.report.reconciled.verdicts import word_of
from flows.report.reconciled.words import value_of_break, with_unreadable
from flows.report.spelling import MINUS
from flows.steps.breaks.causes import CauseLine
from flows.steps.reconcile.report import Changes, ReconciliationReport, SignatureLine, SignOff
from flows.steps.reconcile.reported_breaks import Breaks
from schemas.amounts import EXACT
from schemas.breaks import BREAKS
from tests.report.reconciliation.sample import REPORTS, breaks, everything, many, reconciled

SIGN = SignOff(3, date(2026, 3, 6), None, None, "", "", "", 0)
NOTE = "An overlapping scope has 1 open break"
SAME, UNHELD, FIRST = (
    "No signed record or acceptance",
    "No signed record was",
    "This is the first run",
)
WHOLE: list[tuple[SignOff | None, str, tuple[str, ...], list[str]]] = [
    # the report before, what it is held against, notes; how each line of page one begins
    (None, "", (), []),
    (None, "", (NOTE,), [FIRST, NOTE]),
    (SIGN, "reconciliation 3", (), []),
    (SIGN, "reconciliation 3", (NOTE,), [UNHELD, NOTE]),
    (replace(SIGN, compared=0), "reconciliation 3", (NOTE,), [SAME, NOTE]),
    (replace(SIGN, compared=2), "reconciliation 3", (NOTE,), [SAME, NOTE]),
    (replace(SIGN, compared=2, changed_since=1), "reconciliation 3", (NOTE,), ["records", NOTE]),
]


@pytest.mark.parametrize(("sign", "since", "notes", "told"), WHOLE)
def test_what_signed_records_say_is_told_whatever_else_there_is_to_tell(
    sign: SignOff | None, since: str, notes: tuple[str, ...], told: list[str]
) -> None:
    changes = Changes(since=since, signed=bool(since), notes=notes)
    table = changed(replace(reconciled(), sign_off=sign, changes=changes))
    texts = [str(row.cells[0]) for row in table.rows]
    assert len(texts) == len(told)
    assert all(text.startswith(begin) for text, begin in zip(texts, told, strict=True)), texts
    assert table.none or told[0] == "records"


def test_the_records_of_a_restatement_are_held_against_what_was_signed_up_to_its_day() -> None:
    report = reconciled()
    cover = replace(report.cover, restates="This is a restatement")
    changes = Changes(since="reconciliation 9 as of 2026-04-30, the last one approved", signed=True)
    restated = replace(report, cover=cover, changes=changes, sign_off=replace(SIGN, compared=2))
    assert changed(restated).title == (
        "Records and breaks: changes since reconciliation 3 as of 2026-03-06, the last one "
        "approved up to that day"
    )
    for one in (replace(restated, cover=report.cover), replace(restated, sign_off=SIGN)):
        assert changed(one).title == f"Records and breaks: changes since {changes.since}"


def test_a_report_that_nobody_signed_has_no_signatures_of_the_one_before() -> None:
    report = replace(reconciled(), sign_off=SIGN)
    assert signatures(report).title == "Signatures of the report before"
    line = SignatureLine("prepared", "Ann", "ann", datetime(2026, 3, 7, tzinfo=UTC), "")
    signed = replace(report, sign_off=replace(SIGN, signatures=(line,)))
    assert signatures(signed).title.endswith(": reconciliation 3 as of 2026-03-06")


SAID = [
    # record, field, what was expected or found; how it is told
    ("payment", "PaidAmount", "223.5", "223.50"),
    ("payment", "PaidAmount", "-22350", "-22350.00"),
    ("payment", "PaidAmount", "0.0000001", "0.0000001"),
    ("payment", "PaidAmount", "1e308", "1e308"),
    ("payment", "PaidAmount", "NaN", "NaN"),
    ("payment", "PaidAmount", "", ""),
    ("payment", "PaidAmount", None, None),
    ("payment", "DebtsId", "2", "2"),
    ("invoice_file", "InvoiceUrl", "5", "5"),
    ("other", "PaidAmount", "5", "5"),
]


@pytest.mark.parametrize(("record", "field", "text", "told"), SAID)
def test_money_that_was_expected_is_told_as_money(
    record: str, field: str, text: str | None, told: str | None
) -> None:
    one = replace(breaks()[0], record=record, field=field, expected=text)
    assert value_of_break(one, one.expected) == told


@pytest.mark.parametrize("name", REPORTS)
def test_the_text_tells_the_verdict_and_why_and_moves_no_cursor(name: str) -> None:
    report = REPORTS[name]()
    text = render_text(report)
    assert f"\n{word_of(report.cover.verdict)}: " in text
    for because in report.cover.because:
        assert f"because {because}" in text
    assert not re.search(
        r"[\0-\x09\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069]", text
    )


def test_what_is_delivered_in_a_title_keeps_its_letters() -> None:
    report = everything()
    since = "reconciliation 3 as of 2026-03-06, the last one approved of feeds bank-Straße"
    assert report.changes
    text = render_text(replace(report, changes=replace(report.changes, since=since)))
    assert "\nRECORDS AND BREAKS: changes since reconciliation 3 as of" in text
    assert "bank-Straße" in text
    assert "BANK-STRASSE" not in text


def test_the_text_tells_statuses_totals_causes_and_breaks() -> None:
    text = render_text(everything())
    assert re.search(r"MISSING_IN_TARGET +2\n", text)
    assert "Payment PaidAmount, 978 EUR: ties" in text
    assert "Payment PaidAmount, currency 12: DOES NOT TIE" in text
    assert re.search(r"unexplained +-0\.02\n", text)
    assert "DiscountAmount" not in text.split("TOTALS")[1].split("CAUSES")[0]
    assert "6 open, 1 accepted" in text
    assert "a" * 16 in text


def test_causes_in_each_currency_add_up_to_their_breaks() -> None:
    report = everything()
    page_one = top_causes(report).rows
    for shown in (
        [TableRow(row.cells[2:]) for row in page_one],
        [TableRow(row.cells[:4]) for row in causes(report).rows],
    ):
        told = Counter[str]()
        for row in shown:
            name, count = row.cells[0], next(one for one in row.cells if isinstance(one, int))
            told[str(name)] += count
        assert {name: told[name] for name in told if name not in BREAKS} == {
            one.id: one.breaks for one in report.causes
        }
    # No line says of one currency what is true of all of them.
    assert [row.cells[3:5] for row in page_one if row.cells[2] == "same-file-1"] == [
        (1, "no currency"),
        (2, "978 EUR"),
    ]


def test_the_causes_on_page_one_tell_open_money_first_and_accepted_money_apart() -> None:
    """One cause may have breaks of both; what is accepted is never among what is open."""
    report = everything()
    first, second, *others = report.breaks
    accepted = replace(first, state="ACCEPTED", counted=Decimal(1_000_000))
    mixed = replace(report, breaks=Breaks.of((accepted, second, *others)))
    told = [(row.cells[::2][:2], row.cells[3:]) for row in top_causes(mixed).rows]
    assert told == [
        (("open", "same-factor-100"), (1, "978 EUR", Decimal("125.25"), None, None)),
        (("open", "AMOUNT"), (1, "978 EUR", Decimal("0.01"), None, None)),
        (("open", "same-file-1"), (1, "no currency", None, None, None)),
        (("open", "same-file-1"), (2, "978 EUR", None, Decimal("51.00"), None)),
        (("accepted", "same-factor-100"), (1, "978 EUR", Decimal(1_000_000), None, None)),
        (("accepted", "RATE_TRIANGLE"), (1, "no currency", None, None, None)),
    ]
    annex = {row.cells[0]: row.cells[2:4] for row in causes(mixed).rows}
    assert annex["same-factor-100"] == (2, 1)
    text = render_text(mixed)
    assert text.index("  open; in common") < text.index("  accepted; in common")
    assert "(1 of them open)" in text
    page = reconciliation_markdown(mixed)
    assert page.index("breaks that are open") < page.index("breaks that are accepted")
    assert "1 open" in render_html(mixed)
    page = render_html(mixed)
    assert page.index(">open<") < page.index(">accepted<")


def in_currencies(count: int) -> ReconciliationReport:
    """Two causes with breaks in as many currencies, open and accepted, that tie in all of them."""
    base = breaks()[2]
    every = (
        replace(
            base,
            id=f"{of}{state}{currency}".ljust(16, "0"),
            cause=of,
            state=state,
            currency=str(currency),
            note="",
            accepted_by="Ada" if state == "ACCEPTED" else "",
        )
        for of in ("one", "two")
        for state in ("NEW", "ACCEPTED")
        for currency in range(1, count + 1)
    )
    causes = tuple(CauseLine(of, f"of {of}", 1, {}, {}, "", {"1": 1}) for of in ("one", "two"))
    (tied,) = everything().proofs[:1]
    proofs = tuple(replace(tied, currency=str(one)) for one in range(1, count + 1))
    return replace(
        everything(),
        breaks=Breaks.of(every),
        causes=causes,
        proofs=proofs,
        roll_forward=(),
        accepted_forward=(),
        aside_forward=(),
    )


def test_a_message_is_short_whatever_the_currencies_and_begins_with_the_way_to_the_desk() -> None:
    link = "https://desk.example.com/runs/7"
    message = letter(
        number=7,
        scope="tenants 7",
        day="2026-03-09",
        verdict="NOT_RECONCILED",
        report_hash="0" * 64,
        report_text=render_text(in_currencies(25)),
        account="anna",
        sender="recon@example.com",
        address="anna@example.com",
        link=link,
        workbook=None,
    )
    told = message.get_body(("plain",))
    assert told is not None
    page = told.get_content()
    assert page.splitlines()[0].endswith(link)
    assert len(page.splitlines()) < 120
    named = page.split("CAUSES OF MOST MONEY")[1].split("HOW THE FIGURES")[0]
    assert [named.count(f"of {one};") for one in ("one", "two")] == [2, 2], "open, and accepted"
    assert named.count("20 more currencies") == 5, "of four causes and of who accepted them"
    money_told = page.split("MONEY PER CURRENCY")[1].split("AFTER THE")[0]
    assert "0.00" not in money_told
    assert "nothing unexplained, open or accepted: currency 1, currency 2," in money_told
    for word in ("WORDS USED HERE", "hash total", "STATUSES"):
        assert word not in page


def test_when_all_is_accepted_no_cause_is_open() -> None:
    report = everything()
    accepted = Breaks.of(replace(one, state="ACCEPTED") for one in report.breaks)
    rows = top_causes(replace(report, breaks=accepted)).rows
    assert {row.cells[0] for row in rows} == {"accepted"}


def test_what_is_dated_after_the_cut_off_is_a_line_per_record_kind_and_currency() -> None:
    report = everything()
    (told,) = [value for name, value in facts(report) if name == "After the cut-off"]
    assert told == (
        "Payment: 1788 delivered, 889 in the database; Currency rate: 2930 delivered, 1461 in "
        "the database; Payment plan detail: 120 listed. Dated 2026-03-10 to 2026-04-30; in no "
        "total, and in no break but of what was signed"
    )
    page_one = after_cut_off(report)
    assert [column.name for column in page_one.columns] == [
        *("Record", "Currency", "Delivered", "In the database", "Listed"),
        *("Money delivered", "Money in the database", "Money listed", "Not readable"),
    ]
    paid, planned = "Payment, PaidAmount", "Payment plan detail, PlannedAmount"
    assert [row.cells for row in page_one.rows] == [
        (paid, "no currency", 1, None, None, Decimal("380.1"), None, None, None),
        (paid, "currency 12", 3, None, None, Decimal(12), None, None, None),
        (paid, "978 EUR", 1784, 889, None, Decimal("1975134.4"), Decimal("986816.03"), None, 1),
        ("Currency rate", "without money", 2930, 1461, None, None, None, None, None),
        (planned, "978 EUR", None, None, 120, None, None, Decimal("57586.8"), None),
    ]
    text = render_text(report)
    assert "Currency rate; currency without money; delivered 2 930; in the database" in text
    # Every amount field of every side is in the annex.
    lines = [row.cells for row in after(report).rows]
    day, last = date(2026, 3, 10), date(2026, 4, 30)
    assert lines[4:6] == [
        ("Payment", "978 EUR", "extract", 1784, day, last, "PaidAmount", Decimal("1975134.4"), 1),
        ("Payment", "978 EUR", "extract", 1784, day, last, "DiscountAmount", Decimal(0), None),
    ]
    assert [line[2:7] for line in lines if line[0] == "Currency rate"] == [
        ("extract", 2930, day, day, None),
        ("database", 1461, day, day, None),
    ]


def test_what_only_some_sides_have_after_the_cut_off_takes_no_columns() -> None:
    report = everything()
    lines = tuple(one for one in report.cover.after if one.side == "D")
    page_one = after_cut_off(replace(report, cover=replace(report.cover, after=lines)))
    assert [column.name for column in page_one.columns] == [
        *("Record", "Currency", "In the database", "Money in the database"),
    ]
    none = replace(report, cover=replace(report.cover, after=()))
    assert "After the cut-off" not in render_text(none)
    assert "AFTER THE CUT-OFF" not in render_text(none)


def test_no_blank_of_ours_is_spelled_out() -> None:
    """Numbers in groups of three have narrow blanks between them, which stay out of sentences."""
    report = everything()
    assert r"\u202f" not in render_text(report).split("\nBREAKS\n")[0]
    assert with_unreadable("rejected", 1234) == "rejected (1234 not readable)"


def test_no_mark_of_our_own_numbers_is_spelled_out_in_the_ui() -> None:
    """A cause tells its money as the tables do, a picture its counts as one number each."""
    report = everything()
    first, *others = report.breaks
    less = replace(first, counted=Decimal(-1_000_000))
    statuses = [replace(one, rows=one.rows * 1000) for one in report.statuses]
    page = reconciliation_markdown(
        replace(report, breaks=Breaks.of((less, *others)), statuses=tuple(statuses))
    )
    assert "978 EUR: difference \u2212999\u202f874.75 |" in page
    assert r"MATCHED\_EXACT 38000" in page


def test_what_has_no_money_shows_no_zero() -> None:
    """Breaks of records without an amount: they are counted, and nothing is added up."""
    report = everything()
    rate = replace(report.roll_forward[1])
    bare = replace(report, proofs=(), roll_forward=(rate,), accepted_forward=(), aside_forward=())
    assert [row.cells for row in money(bare).rows] == [("no currency", "open", 1, None, None)]
    assert [row.cells for row in money(report).rows if row.cells[0] == "no currency"] == [
        ("no currency", "open", 1, None, None)
    ]
    told = render_text(bare)
    block = told.split("open, no currency")[1]
    assert "closing: open after this run" in block
    assert "0.00" not in block
    assert "0.00" not in told.split("MONEY PER CURRENCY")[1].split("CAUSES OF")[0]
    assert [row.cells[2:] for row in forward(bare, *FORWARDS[0]).rows][-1] == (0, None, None)
    assert "0.00" not in render_html(bare).split('id="roll-forward"')[1].split("<section>")[0]


LONG = Decimal("12345678901234567890.123456789012345678")


def test_what_is_unexplained_is_told_to_its_last_digit() -> None:
    report = everything()
    (proof,) = report.proofs[:1]
    odd = replace(report, proofs=(replace(proof, unexplained=LONG.copy_negate()),))
    assert [row.cells[3] for row in money(odd).rows if row.cells[1] == "unexplained"] == [LONG]
    told = {"currency": proof.currency, "unexplained": f"-{LONG}"}
    assert unexplained_of([told, told]) == {proof.currency: EXACT.add(LONG, LONG)}


def test_the_break_of_a_debt_says_its_tenant() -> None:
    report = everything()
    debt = replace(report.breaks[0], key="4711", tenant=7, found="came late, dated 2026-10-31 " * 2)
    told = render_text(replace(report, breaks=Breaks.of((debt, replace(debt, key="4711/7")))))
    first, second = told.split("BREAKS\n")[1].split("4711/7")
    assert "tenant 7" in first
    assert "tenant 7" not in second
    assert "characters)" not in first


@pytest.mark.parametrize(
    ("render", "most"), [(render_text, 20), (reconciliation_markdown, 50)], ids=["text", "markdown"]
)
def test_of_many_breaks_it_is_said_how_many_are_left(
    render: Callable[[ReconciliationReport], str], most: int
) -> None:
    assert "in the report." not in render(many(most))
    assert "\n1 more is in the report." in render(many(most + 1)).replace("\n  ", "\n")
    assert "\n980 more are in the report." in render(many(most + 980)).replace("\n  ", "\n")


@pytest.mark.parametrize("count", [0, 7, 1_000])
def test_the_page_for_the_ui_is_never_longer_than_it_may_be(count: int) -> None:
    page = reconciliation_markdown(many(count))
    assert len(page.encode()) <= BYTES
    assert page.startswith("# Not reconciled: ")


def test_a_page_that_is_too_long_ends_between_two_blocks() -> None:
    report = many(1)
    object.__setattr__(report.causes[0], "title", "x" * 300)
    crowded = everything()
    object.__setattr__(crowded.cover, "because", ("y" * 5_000,) * 10)
    page = reconciliation_markdown(crowded)
    assert len(page.encode()) <= BYTES
    assert page.endswith("The rest is in the report.\n")


def test_delivered_text_is_no_markup_in_the_ui() -> None:
    for text in (
        reconciliation_markdown(everything()),
        *(cell for line in breaks_table(everything()) for cell in line.values()),
    ):
        # What is left is an escaped sign: a backslash stands in front of it.
        for mark in ("<", "[pay", "!["):
            assert not re.search(rf"(?<!\\){re.escape(mark)}(?!.*data:image)", text), mark
        assert "://" not in text


def test_the_picture_is_in_the_page_and_told_in_words() -> None:
    page = reconciliation_markdown(everything())
    [told] = re.findall(r"!\[(.*?)\]\(data:image/svg\+xml;base64,[A-Za-z0-9+/=]+\)", page)
    assert "MATCHED\\_EXACT 38" in told


@pytest.mark.long
def test_the_table_of_breaks_is_narrow_and_short() -> None:
    lines = breaks_table(many(1_000))
    assert len(lines) == ROWS
    assert all(len(line) == 8 for line in lines)
    assert {tuple(line) for line in lines} == {tuple(lines[0])}
    # More is not seen at once: what it is, of what, how much, and where `recon row` finds it.
    assert [*lines[0]][:4] == ["Code", "Record", "Amount", "Where"]
    first = breaks_table(everything())[2]
    assert first["Difference"] == "PaidAmount: “121.25” / “-121.26”"
    assert first["Amount"] == f"{MINUS}0.01 978 EUR"


def test_the_key_of_a_debt_is_not_told_as_that_of_a_payment() -> None:
    debt = replace(breaks()[0], code="INV_NONE", key="80000401", field="DebtsId", side="")
    [told] = breaks_table(replace(everything(), breaks=Breaks.of([debt])))
    assert told["Record"] == "Payment 80000401 DebtsId"
