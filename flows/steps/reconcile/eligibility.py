"""Eligibility: whether an extract row is compared, decided before any comparison.

A row is out of the comparison by its own end state, by a rule, or because a newer row of the same
record counts instead. Only rows whose status is null are compared.
"""

from functools import reduce
from operator import or_

import polars as pl

from flows.steps.frames.beyond import unheld
from flows.steps.frames.light import flags
from flows.steps.frames.statuses import STATUS
from flows.steps.frames.time_texts import time_text
from flows.steps.match.comparison import canonical_texts
from flows.steps.match.pairing import keyless, repeated, written_frame
from flows.steps.rules.rules import Rules
from schemas.breaks import Status
from schemas.derived.left_out import OWN, SUPERSEDED
from schemas.field import TIMES, Field, Kind, Table
from schemas.frame_types import WORD, frame_columns
from schemas.kinds import OFFSET


def eligibility(table: Table, extract: pl.DataFrame, rules: Rules) -> pl.DataFrame:
    """Status and rule of every extract row; the status is null if the row is to be compared.

    `by_rule` says whether an exclusion of the rules leaves the row out, not its own state.
    """
    status, rule = pl.lit(None, STATUS), pl.lit("", WORD)
    # Words are compared as numbers; `replace` would turn them into texts.
    for state in OWN.keys() & set(extract["state"].unique()):
        there = (pl.col("state") == state).fill_null(value=False)
        status = pl.when(there).then(pl.lit(OWN[state][0].value, STATUS)).otherwise(status)
        rule = pl.when(there).then(pl.lit(OWN[state][1], WORD)).otherwise(rule)
    # `state` is selected to give constant columns their height.
    lines = extract.select("state", status.alias("status"), rule.alias("rule")).drop("state")
    lines = settle(lines, keyless(table, extract), Status.UNKNOWN)
    lines = _newest(table, extract, lines)
    before = lines["status"].is_null()
    lines = excluded(table, extract, lines, rules)
    return lines.with_columns((before & lines["status"].is_not_null()).alias("by_rule"))


def unheld_amounts(table: Table, extract: pl.DataFrame, own: pl.DataFrame) -> pl.DataFrame:
    """The amounts of rows to compare that no exact column holds, as `row` and `field`."""
    parts = [pl.DataFrame(schema={"row": pl.UInt32(), "field": pl.String()})]
    compared = own["status"].is_null()
    for name in table.amounts:
        rows = (compared & unheld(table.by_name[name], extract)).arg_true()
        parts.append(pl.DataFrame({"row": rows}).with_columns(pl.lit(name).alias("field")))
    return pl.concat(parts)


def excluded(table: Table, rows: pl.DataFrame, lines: pl.DataFrame, rules: Rules) -> pl.DataFrame:
    """Give rows without a status the first exclusion of the rules that names their value."""
    for exclusion in rules.exclusions:
        if exclusion.record == table.name:
            named = [
                texts.is_in(exclusion.values).fill_null(value=False)
                for texts in _value_texts(table.by_name[exclusion.field], rows)
            ]
            lines = settle(lines, reduce(or_, named), Status.EXCLUDED, exclusion.id)
    return lines


def _value_texts(field: Field, rows: pl.DataFrame) -> list[pl.Series]:
    """The texts by which rules name values; a time is named by its instant or its wall clock."""
    if field.kind not in TIMES:
        return [canonical_texts(rows[field.name])]
    at, offset = pl.col(field.name), pl.col(field.name + OFFSET)
    utc = pl.lit(0, pl.Int32)
    if field.kind is Kind.DATETIME_OFFSET:
        texts = [time_text(at, utc, instant=True)]
    else:
        moment = at - pl.duration(minutes=offset)
        bare = pl.lit(None, pl.Int32)
        texts = [time_text(at, bare, instant=False), time_text(moment, utc, instant=False)]
    return [rows.select(one.alias("text")).to_series() for one in texts]


def _newest(table: Table, extract: pl.DataFrame, lines: pl.DataFrame) -> pl.DataFrame:
    """Settle rows with the same key: only the latest batch counts, with one distinct record.

    Older rows and repeats are superseded; different records in the latest batch are DUPLICATE.
    """
    live = lines["status"].is_null()
    keys = written_frame(table, extract if live.all() else extract.filter(live))
    again = repeated(keys)
    if again is None:
        return lines
    places = live.arg_true().filter(again)
    content = [name for field in table.delivered for name in frame_columns(field)]
    content = [name for name in content if name in extract.columns]
    ranked = pl.DataFrame(
        {
            "place": places,
            "key": keys.filter(again).to_struct(),
            "content": extract[places].select(content).to_struct(),
            "batch": extract["batch_id"].gather(places).fill_null(0),
            "order": extract[places].select("extract_id", "row").to_struct(),
        }
    ).with_columns((pl.col("batch") < pl.col("batch").max().over("key")).alias("older"))
    same = ranked.group_by("key", "older").agg(pl.col("content").n_unique() == 1)
    verdict = (
        ranked.drop("content")
        .join(same.rename({"content": "same"}), on=["key", "older"], nulls_equal=True)
        .sort("order", "place", nulls_last=True)
        .select(
            "place",
            pl.when("older")
            .then(pl.lit(SUPERSEDED))
            .when(~pl.col("same"))
            .then(pl.lit(Status.DUPLICATE.value))
            .when(~pl.struct("key", "older").is_first_distinct())
            .then(pl.lit(SUPERSEDED))
            .alias("verdict"),
        )
    )
    older, double = (
        flags(lines.height, verdict.filter(pl.col("verdict") == word)["place"])
        for word in (SUPERSEDED, Status.DUPLICATE.value)
    )
    lines = settle(lines, older, Status.EXCLUDED, SUPERSEDED)
    return settle(lines, double, Status.DUPLICATE)


def unsettled(rows: int) -> pl.DataFrame:
    """A frame of `rows` rows without a status or rule."""
    lines = pl.DataFrame(schema={"status": STATUS, "rule": WORD}).clear(rows)
    return lines.with_columns(pl.lit("", WORD).alias("rule"))


def settle(lines: pl.DataFrame, where: pl.Series, status: Status, rule: str = "") -> pl.DataFrame:
    """Give the rows in `where` that have no status yet this one."""
    if not where.any():
        return lines
    undecided = pl.col("status").is_null() & where
    return lines.with_columns(
        pl.when(undecided).then(pl.lit(status.value, STATUS)).otherwise("status").alias("status"),
        pl.when(undecided).then(pl.lit(rule, WORD)).otherwise("rule").alias("rule"),
    )
