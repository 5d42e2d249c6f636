"""Insert-batch data: rows sent against rows listed, and what the flags of a row say."""

from collections import Counter
from datetime import date
from itertools import product
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flows.steps.breaks.frame import gather
from flows.steps.breaks.make import Annex
from flows.steps.frames.sources import DELIVERED, Sources, record_schema
from flows.steps.reconcile.batches import reconcile_batches
from flows.steps.reconcile.insert_batch import read_insert_batch_record
from flows.steps.reconcile.joins import reconcile_sources
from flows.steps.rules.rules import Rules
from flows.steps.validate.insert_batch import insert_batch_records, record_inside
from schemas.breaks import Status
from schemas.tables import INSERT_BATCH_DATA
from tests.examples import examples

INVOICE = '{"Id":1,"TenantsId":2,"DebtsId":3,"InvoiceUrl":"u"}'
GATEWAY = '{"TenantsId":1,"PaymentActionsId":2,"Name":"n","ServiceKey":"%s"}'


def row(data: str | None = "a", **values: Any) -> dict[str, Any]:
    """A listed row: merged without an error, unless said otherwise."""
    return {
        "Data": data, "HasError": False, "Merged": True, "BatchId": 1, "Jsondata": None,
        "ErrorData": None, **values,
    }  # fmt: skip


def sent(*rows: dict[str, Any]) -> pl.DataFrame:
    lines = [
        {"state": "inserted", "file": "b.csv", "line": number + 1, "batch_id": 12, **values}
        for number, values in enumerate(rows, start=1)
    ]
    return pl.DataFrame(lines, schema=record_schema(INSERT_BATCH_DATA) | DELIVERED)


def listed(*rows: dict[str, Any]) -> pl.DataFrame:
    return pl.DataFrame(list(rows), schema=record_schema(INSERT_BATCH_DATA))


def judged(ours: list[dict[str, Any]], theirs: list[dict[str, Any]]) -> Annex[Any]:
    return reconcile_batches(sent(*ours), listed(*theirs))


def told(annex: Annex[Any]) -> list[tuple[str, str | None, str | None]]:
    return sorted(annex.breaks.select("code", "expected", "found").iter_rows())


MISSING, EXTRA = "BATCH_MISSING", "BATCH_EXTRA"
PAIRS: list[tuple[list[tuple[str, str, str]], list[dict[str, Any]], list[dict[str, Any]]]] = [
    ([], [row()], [row()]),
    ([(MISSING, "1", "0")], [row()], []),
    ([(EXTRA, "0", "1")], [], [row()]),
    ([(MISSING, "1", "0")], [row(), row()], [row()]),
    ([(EXTRA, "0", "2")], [row()], [row(), row(), row()]),
    ([(EXTRA, "0", "1"), (MISSING, "1", "0")], [row("a")], [row("b")]),
    ([(EXTRA, "0", "1"), (MISSING, "1", "0")], [row(BatchId=1)], [row(BatchId=2)]),
    ([], [row(BatchId=None)], [row(BatchId=None)]),
    # The service may have read the record out of Data, or writes the same record in other words.
    ([], [row(INVOICE)], [row(INVOICE, Jsondata=INVOICE)]),
    ([], [row(None, Jsondata=INVOICE)], [row(None, Jsondata=INVOICE.replace(",", ", "))]),
    ([], [row("1,2,3,u", Jsondata=INVOICE)], [row(None, Jsondata=INVOICE)]),
    (
        [(EXTRA, "0", "1"), (MISSING, "1", "0")],
        [row(None, Jsondata=INVOICE)],
        [row(None, Jsondata=INVOICE.replace("3", "4"))],
    ),
    # What our check rejected need not be listed, and is not extra where it is.
    ([], [row(state="rejected")], []),
    (
        [("BATCH_COUNT", "1", "0")],
        [row("a"), row("b", state="rejected")],
        [row("a"), row("b")],
    ),
    (
        [],
        [row("a"), row("b", state="rejected")],
        [row("a"), row("b", HasError=True, Merged=False, ErrorData="why")],
    ),
]


@pytest.mark.parametrize(("breaks", "ours", "theirs"), PAIRS)
def test_rows_sent_against_rows_listed(
    breaks: list[tuple[str, str, str]], ours: list[dict[str, Any]], theirs: list[dict[str, Any]]
) -> None:
    assert told(judged(ours, theirs)) == breaks


TRUTHS = [
    # HasError, Merged, ErrorData, codes
    (False, False, None, ["BATCH_NOT_MERGED"]),
    (None, None, None, ["BATCH_NOT_MERGED"]),
    (False, False, "why", ["BATCH_ERROR_UNSET"]),
    (False, True, None, []),
    (False, True, "[]", []),
    (False, True, " ", []),
    (False, True, "why", ["BATCH_ERROR_UNSET"]),
    (True, False, None, ["BATCH_ERROR_UNTOLD"]),
    (True, False, "[]", ["BATCH_ERROR_UNTOLD"]),
    (True, False, "why", []),
    (True, True, None, ["BATCH_ERROR_UNTOLD", "BATCH_MERGED_ERROR"]),
    (True, True, "why", ["BATCH_MERGED_ERROR"]),
]


@pytest.mark.parametrize(("error", "merged", "why", "codes"), TRUTHS)
def test_what_the_flags_say(
    error: bool | None, merged: bool | None, why: str | None, codes: list[str]
) -> None:
    flags = {"HasError": error, "Merged": merged, "ErrorData": why}
    rejected = [row("b", state="rejected")] if error else []
    annex = judged([row(), *rejected], [row(**flags)])
    assert sorted(annex.breaks["code"]) == codes
    assert annex.lines[0].contradictions == len(codes)


INSIDE: list[tuple[str | None, str | None, list[tuple[str, str, str | None, str | None]]]] = [
    # Data, Jsondata, and the breaks by code, field, expected and found
    ("1,2,3,u", INVOICE, []),
    (INVOICE, INVOICE, []),
    ("{Id:1,TenantsId:2,DebtsId:3,InvoiceUrl:u}", INVOICE, []),
    ("1,2,3,u", "{Id:1,TenantsId:2,DebtsId:3,InvoiceUrl:u}", []),
    ("1,2,4,u", INVOICE, [("BATCH_JSON_DIFFERS", "DebtsId", "4", "3")]),
    (
        "1,2,4,v",
        INVOICE,
        [
            ("BATCH_JSON_DIFFERS", "DebtsId", "4", "3"),
            ("BATCH_JSON_DIFFERS", "InvoiceUrl", "v", "u"),
        ],
    ),
    # Numbers and times are compared by what they say.
    (
        "1,2,3,4,2026-01-02T03:04:05+01:00,10.50,0,978,5",
        '{"Id":1,"TenantsId":2,"ActionsId":3,"DebtsId":4,"PaymentDate":"2026-01-02T02:04:05Z",'
        '"PaidAmount":10.5,"DiscountAmount":0.00,"CurrenciesId":978,"CurrencyRatesId":5}',
        [],
    ),
    # Data of another form cannot be compared, so nothing is said of it.
    ("1;2;4;u", INVOICE, []),
    (None, INVOICE, []),
    ("1,2,3,u", "{", [("BATCH_JSON_UNREADABLE", "Jsondata", None, None)]),
    ("1,2,3,u", '{"Nothing":1}', [("BATCH_JSON_UNREADABLE", "Jsondata", None, None)]),
    ("1,2,3,u", "[1]", [("BATCH_JSON_UNREADABLE", "Jsondata", None, None)]),
    ("1,2,3,u", "", []),
    # A secret is never shown.
    ("1,2,n,hush,,", GATEWAY % "hush", []),
    (
        "1,2,n,hush,,",
        GATEWAY % "hash",
        [("BATCH_JSON_DIFFERS", "ServiceKey", "(secret)", "(secret)")],
    ),
]


@pytest.mark.parametrize(("data", "jsondata", "breaks"), INSIDE)
def test_what_is_inside_a_row(
    data: str | None, jsondata: str | None, breaks: list[tuple[str, str, str | None, str | None]]
) -> None:
    one = row(data, Jsondata=jsondata)
    found = judged([one], [one]).breaks
    assert sorted(found.select("code", "field", "expected", "found").iter_rows()) == breaks
    assert "hush" not in str(found.to_dicts())


TEXTS = (
    None,
    "",
    " \t\n",
    INVOICE,
    "{Id:1,TenantsId:2,DebtsId:3,InvoiceUrl:v}",
    "1,2,3,u",
    "{",
    "[1]",
)


def test_the_record_inside_a_row_is_the_one_that_an_import_takes() -> None:
    rows = [row(data, Jsondata=jsondata, Merged=False) for data, jsondata in product(TEXTS, TEXTS)]
    taken = insert_batch_records(listed(*rows), None).records["invoice_file"]
    for number, one in enumerate(rows):
        inner = read_insert_batch_record(one["Data"], one["Jsondata"])
        assert inner.cells == taken.get(number), one
        inside = record_inside(one["Jsondata"], one["Data"], None)
        assert (inner.kind, inner.cells) == (inside or (None, None)), one


def test_without_a_listing_only_the_rows_themselves_are_judged() -> None:
    annex = reconcile_batches(sent(row(Merged=False), row("b", ErrorData="why")), None)
    assert annex.breaks["code"].to_list() == ["BATCH_ERROR_UNSET"]


def test_a_batch_line_says_how_to_run_it_again() -> None:
    annex = judged([row(), row("b"), row("c", BatchId=2)], [row(), row("c", BatchId=2)])
    first, second = annex.lines
    assert (first.batch, first.sent, first.listed, first.merged) == (1, 2, 1, 1)
    assert (first.rerun, second.rerun) == ("recon rerun 12", "")


texts = st.sampled_from(["a", "b", None, INVOICE])
some_rows = st.lists(
    st.builds(
        lambda data, jsondata, batch: row(data, Jsondata=jsondata, BatchId=batch),
        texts, st.sampled_from([None, INVOICE]), st.sampled_from([1, 2, None]),
    ),
    max_size=8,
)  # fmt: skip


@pytest.mark.long
@settings(max_examples=examples(60), deadline=None, derandomize=True)
@given(some_rows, some_rows)
def test_counts_tie(ours: list[dict[str, Any]], theirs: list[dict[str, Any]]) -> None:
    """Per batch: sent - missing + extra = listed, however rows repeat."""
    annex = reconcile_batches(sent(*ours), listed(*theirs))
    change: Counter[str] = Counter()
    for code, key, expected, found in annex.breaks.select(
        "code", "key", "expected", "found"
    ).rows():
        if code in (MISSING, EXTRA):
            change[key.split("/")[0]] += int(found) - int(expected)
    for batch in (1, 2, None):
        before = sum(one["BatchId"] == batch for one in ours)
        after = sum(one["BatchId"] == batch for one in theirs)
        assert before + change["" if batch is None else str(batch)] == after
    again = reconcile_batches(sent(*ours), listed(*theirs[::-1]))
    assert gather([again.breaks]).equals(gather([annex.breaks]))


MATCHED = Status.MATCHED_EXACT.value


@pytest.mark.long(but=("ours2-theirs2-statuses2",))
@pytest.mark.parametrize(
    ("ours", "theirs", "statuses"),
    [
        ([row(), row()], [row(), row()], [MATCHED, MATCHED]),
        ([row(), row()], [row()], [MATCHED, "MISSING_IN_TARGET"]),
        ([row()], [row(), row()], [MATCHED, "MISSING_IN_EXTRACT"]),
        # An equal row of another batch is another row, and so is one of another BatchId.
        ([row(), row() | {"batch_id": 13}], [row(), row()], [MATCHED, MATCHED]),
        ([row()], [row(BatchId=2)], ["MISSING_IN_TARGET", "MISSING_IN_EXTRACT"]),
        ([row() | {"state": "rejected"}, row()], [row()], ["REJECTED", MATCHED]),
        # A row that does not count need not be listed, and is known where it is.
        ([row() | {"state": "rejected"}], [row()], ["REJECTED"]),
        ([row() | {"state": "conflict"}, row()], [row(), row()], ["DUPLICATE", MATCHED]),
        *(
            case
            for state in ("undone", "discarded", "corrected", "delivered again", "excluded")
            for case in (
                ([row() | {"state": state}], [], ["EXCLUDED"]),
                ([row() | {"state": state}], [row()], ["EXCLUDED"]),
                ([row() | {"state": state}, row()], [row()], ["EXCLUDED", MATCHED]),
                ([row() | {"state": state}], [row("b")], ["EXCLUDED", "MISSING_IN_EXTRACT"]),
            )
        ),
        # That the record inside is of no use says nothing of the row: the service has it as well.
        *(
            case
            for state in ("superseded", "stale")
            for case in (
                ([row(), row() | {"state": state}], [row(), row()], [MATCHED, MATCHED]),
                ([row(), row() | {"state": state}], [row()], [MATCHED, "MISSING_IN_TARGET"]),
            )
        ),
        # The same record in other words.
        ([row(INVOICE)], [row("1,2,3,u", Jsondata=INVOICE)], [MATCHED]),
        ([row(None)], [row(None)], [MATCHED]),
    ],
)
def test_each_row_has_the_status_that_its_breaks_tell(
    ours: list[dict[str, Any]], theirs: list[dict[str, Any]], statuses: list[str]
) -> None:
    name = INSERT_BATCH_DATA.name
    sources = Sources({name: sent(*ours)}, {}, listings={name: listed(*theirs)})
    result = reconcile_sources(sources, Rules(), date(2026, 1, 9), service=False)
    (load,) = result.statuses[name]
    assert load()["status"].to_list() == statuses
    codes = {one for one in result.breaks["code"] if one in (MISSING, EXTRA)}
    alone = {"MISSING_IN_TARGET": MISSING, "MISSING_IN_EXTRACT": EXTRA}
    assert codes == {alone[one] for one in statuses if one in alone}


@pytest.mark.parametrize("errors", [0, 1])
def test_a_row_that_does_not_count_is_in_no_number_of_its_batch(errors: int) -> None:
    """What was rejected before it was corrected may be listed still, in error."""
    name = INSERT_BATCH_DATA.name
    ours = [row() | {"state": "corrected"}, row("b"), row("c") | {"state": "undone", "BatchId": 2}]
    theirs = [*[row(HasError=True, Merged=False, ErrorData="why")] * errors, row("b")]
    sources = Sources({name: sent(*ours)}, {}, listings={name: listed(*theirs)})
    result = reconcile_sources(sources, Rules(), date(2026, 1, 9), service=False)
    assert result.breaks.is_empty()
    (line,) = result.batches
    assert (line.batch, line.sent, line.listed, line.errors) == (1, 1, 1 + errors, errors)
