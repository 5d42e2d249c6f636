"""Answers: what the service says about a record, as a status and as breaks; differing echoes."""

import json
from collections.abc import Collection, Iterator, Mapping
from datetime import datetime
from decimal import Decimal, InvalidOperation
from typing import Any

import polars as pl

from flows.steps.breaks.match_breaks import line_breaks
from flows.steps.frames.beyond import from_both
from flows.steps.frames.sources import are_among
from flows.steps.frames.statuses import Lines, in_state
from flows.steps.match.comparison import SECRET
from flows.steps.match.pairing import key_frame, pair
from flows.steps.totals import in_currency
from schemas.amounts import BEYOND
from schemas.breaks import Status
from schemas.derived.json_text import canonical_json, number_text
from schemas.derived.left_out import OWN
from schemas.field import Table
from schemas.kinds import OFFSET
from schemas.operations import PUSHES
from schemas.reasons import REASONS

ECHO_SCHEMA: dict[str, pl.DataType] = {
    "row": pl.UInt32(),
    "field": pl.String(),
    "expected": pl.String(),
    "found": pl.String(),
}
SEND_COLUMNS = ("state", "status", "carried_out", "decision")
"""Columns of a send: state, HTTP status, whether attempts were carried out, and any decision."""
NOT_ASKED = "not asked"
"""Stands for the state of a send if the record is not meant for any service."""
ECHO_DIFFERS = REASONS["EchoDiffers"].code
_CODES = {
    Status.REJECTED: "REFUSED",
    Status.NOT_SENT: "NOT_SENT",
    Status.IN_DOUBT: "IN_DOUBT",
    Status.SENT_UNCONFIRMED: "UNCONFIRMED",
}
"""Status of a record by its send -> code of the break."""
_ECHO_SHOWN = 200
_EXPONENT_SHOWN = 400
"""No double has more digits before the point, or more zeros behind it."""


def sends(extract: pl.DataFrame, last_writers: pl.DataFrame, answers: pl.DataFrame) -> pl.DataFrame:
    """What is known of each extract row's send (`SEND_COLUMNS`), and the row number of its answer.

    All null if there was none. A row that changed nothing was not sent, and an overtaken row is not
    sent any more: then the answer is that of the row which last wrote the record (`last_writers`,
    the lineage of its partner).
    """
    answer = _partner(extract, answers)
    overtaken = (answers["state"] == "superseded").fill_null(value=False)
    unsent = (answer.is_null() | overtaken.gather(answer).fill_null(value=False)).arg_true()
    if unsent.len():
        answer = answer.scatter(unsent, _partner(last_writers[unsent], answers))
    known = answers.select(*SEND_COLUMNS, pl.col("echo").is_not_null().alias("echoed"))
    return known[answer].with_columns(answer.alias("answer"))


def to_be_sent(
    table: Table, extract: pl.DataFrame, states: pl.Series, database_alone: Collection[int]
) -> pl.Series:
    """Which extract rows wait for an answer: those whose record any batch was to send.

    `states` are those of their sends, `database_alone` the batches that go to no service. If such a
    batch overwrote a record that another was to send, the service does not have the valid version.
    """
    alone = extract["batch_id"].is_in(list(database_alone)).fill_null(value=False)
    unasked = alone & states.is_null()
    if not unasked.any():
        return ~unasked
    eligible = extract.select(~in_state(OWN)).to_series()
    keys = key_frame(table, extract, wire=None)
    return ~unasked | are_among(keys, keys.filter(~alone & eligible), nulls_equal=True)


def _partner(rows: pl.DataFrame, others: pl.DataFrame) -> pl.Series:
    places = (side.select("row", "extract_id") for side in (rows, others))
    return pair(*places, nulls_equal=False).partner


def service_status(table: Table) -> pl.Expr:
    """The status of a record by its send, from the columns of `sends`; null if it is confirmed.

    A person's decision is not an answer: at best it leaves a record unconfirmed, and an echo that
    differs still differs.
    """
    # A request that may be repeated counts as not sent unless something says that it was.
    sending = Status.NOT_SENT if PUSHES[table.name].keyed else Status.IN_DOUBT
    state, carried_out = pl.col("state"), pl.col("carried_out")
    answered = pl.col("status").is_between(200, 299) & pl.col("decision").is_null()
    set_aside = (state == "abandoned") & carried_out.is_not_null()
    lost = state.is_in(["unsent", "superseded"]) & (carried_out == "maybe")
    return (
        pl.when(
            (state == "differs") | state.is_in(["acknowledged", "abandoned"]) & pl.col("echoed")
        )
        .then(pl.lit(Status.MISMATCH.value))
        .when(state == "acknowledged")
        .then(pl.when(~answered.fill_null(value=False)).then(pl.lit(Status.SENT_UNCONFIRMED.value)))
        .when(state == "refused")
        .then(pl.lit(Status.REJECTED.value))
        .when((state == "in_doubt") | set_aside | lost)
        .then(pl.lit(Status.IN_DOUBT.value))
        .when(state == "sending")
        .then(pl.lit(sending.value))
        .otherwise(pl.lit(Status.NOT_SENT.value))
    )


def service_breaks(table: Table, lines: Lines, sent: pl.DataFrame) -> list[pl.DataFrame]:
    """One break per row whose send did not succeed, with the service's answer."""
    breaks = []
    decided, answered = pl.format("decided: {}", "decision"), pl.format("HTTP status {}", "status")
    for status, code in _CODES.items():
        rows = (sent["service"] == status.value).fill_null(value=False).arg_true()
        answers = sent[rows].select(
            pl.concat_str(decided, answered, separator=", ", ignore_nulls=True).alias("note"),
            rows.alias("row"),
        )
        side = "R" if status is Status.NOT_SENT else "A"
        breaks.append(line_breaks(table, lines, answers, code=code, side=side))
    return breaks


def echoed(
    table: Table, extract: pl.DataFrame, sent: pl.DataFrame, answers: pl.DataFrame
) -> pl.DataFrame:
    """The differences between echoes and what was sent (`ECHO_SCHEMA`)."""
    differing = sent.with_row_index("row").filter(pl.col("service") == Status.MISMATCH.value)
    return echo_differences(
        table,
        extract[differing["row"]],
        answers.select("echo", "errors")[differing["answer"]].with_columns(differing["row"]),
    )


def echo_differences(table: Table, sent: pl.DataFrame, echoes: pl.DataFrame) -> pl.DataFrame:
    """The fields in which an echo differs from what was sent, one line each.

    `echoes` has `row`, `echo` and `errors`, `sent` the extract rows in the same order. An echo that
    cannot be read, or that only words the same values differently, is one line without a field.
    """
    answers, records = echoes.select("row", "echo", "errors"), sent.iter_rows(named=True)
    lines = [
        (row, *difference)
        for (row, echo, errors), record in zip(answers.iter_rows(), records, strict=True)
        for difference in _differing(table, record, echo, errors)
    ]
    return pl.DataFrame(lines, schema=ECHO_SCHEMA, orient="row")


def _differing(
    table: Table, record: Mapping[str, Any], echo: str | None, errors: str | None
) -> Iterator[tuple[str, str | None, str | None]]:
    expected = _read(_canonical(table, record))
    found = _read(echo) if echo else None
    if expected is None or found is None:
        yield "", None, None if echo is None else _display(table, echo)
        return
    differing = _by_errors(table, found, errors) or _by_values(table, expected, found)
    other = differing.get(table.currency) if table.currency else None
    for name, value in differing.items():
        of, text = table.by_name[name], _text(value)
        if text is not None and other is not None and of.amount:
            # With its currency the amount is no number, so no delta across currencies is computed.
            text = f"{text} in {in_currency(str(_text(other)))}"
        yield name, *((SECRET, SECRET) if of.secret else (_text(expected.get(name)), text))
    if not differing:
        yield "", None, _display(table, echo or "")


def _by_errors(table: Table, found: Mapping[str, Any], errors: str | None) -> dict[str, Any]:
    """The echoed values of the fields that differ according to the errors kept with the answer.

    These were found when the answer was read, with knowledge of how the service writes values and
    where they are if it answers with another record than the one sent.
    """
    reported = {
        error["FieldName"]: error["Meta"].get("value", SECRET)
        for error in json.loads(errors or "[]")
        if error["ErrorCode"] == ECHO_DIFFERS
    }
    same_record = PUSHES[table.name].response == table.name
    return {
        name: found.get(name, None if same_record else reported[name])
        for name in table.columns
        if name in reported
    }


def _by_values(
    table: Table, expected: Mapping[str, Any], found: Mapping[str, Any]
) -> dict[str, Any]:
    """The echoed values of the fields that differ, compared by value if no errors were kept."""
    return {
        name: found.get(name)
        for name in table.columns
        if (name in expected or name in found) and not _same(expected.get(name), found.get(name))
    }


def _canonical(table: Table, record: Mapping[str, Any]) -> str:
    values = {}
    for field in table.delivered:
        value = from_both(record[field.name], record.get(field.name + BEYOND))
        if isinstance(value, datetime):
            offset = record.get(field.name + OFFSET)
            value = (value, 0 if offset is None and value.tzinfo else offset)
        values[field.name] = value
    return canonical_json(table, values)


def _read(text: str) -> dict[str, Any] | None:
    try:
        value = json.loads(text, parse_float=Decimal, parse_int=Decimal)
    except (ValueError, InvalidOperation, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _same(expected: object, found: object) -> bool:
    # The service's CSV writes null and empty text alike.
    if expected == found or (expected in (None, "") and found in (None, "")):
        return True
    try:
        if isinstance(expected, Decimal) or isinstance(found, Decimal):
            return Decimal(str(expected)) == Decimal(str(found))
        first, second = datetime.fromisoformat(str(expected)), datetime.fromisoformat(str(found))
    except (ValueError, InvalidOperation):
        return False
    return (first.tzinfo is None) == (second.tzinfo is None) and first == second


def _text(value: object) -> str | None:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, Decimal):
        written_out = value.is_finite() and abs(value.adjusted()) <= _EXPONENT_SHOWN
        return number_text(value) if written_out else str(value)
    return json.dumps(value, ensure_ascii=False, default=str)


def _display(table: Table, echo: str) -> str:
    return SECRET if any(field.secret for field in table) else echo[:_ECHO_SHOWN]
