"""Patterns in the values of breaks that suggest a common cause.

Each function returns candidates: breaks by their number (AT), and the groups they fall into by one
rule. `causes` decides which candidate is taken.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import cache

import polars as pl

from flows.steps.breaks.make import joined, quantities
from flows.steps.breaks.money import currency_named, currency_text
from flows.steps.frames.beyond import money_text
from flows.steps.frames.time_texts import apart
from schemas.breaks import BREAKS, OF_AMOUNTS
from schemas.frame_types import AMOUNT
from schemas.tables import TABLES

_MICRO = 1_000_000
AT = "__at"
"""Column with the number of a break, from 0."""
FEWEST = {
    "twins": 2,
    "swapped": 1,
    "factor": 1,
    "converted": 3,
    "transposed": 1,
    "difference": 2,
    "shift": 2,
    "named": 2,
    "value": 2,
    "file": 3,
    "batch": 3,
    "hour": 3,
}
"""Rule -> fewest breaks of a group; one is enough if the values alone are telling."""


@dataclass(frozen=True, slots=True)
class Candidates:
    """Breaks that one rule puts into large enough groups; a break may be in several groups."""

    rule: str
    breaks: pl.DataFrame
    """AT, and `group`, the number of the group."""
    groups: pl.DataFrame
    """`about`, the value that a group has in common, sorted; its `title` in words; its `size`."""


_ALONE = ("MISSING_IN_TARGET", "MISSING_IN_EXTRACT")
FACTORS = (10, 100, 1000)
# Beyond this a factor's product might not fit an exact decimal column.
_LARGEST = Decimal(10) ** 17


def candidates(rows: pl.DataFrame, rule: str, about: pl.Expr, words: pl.Expr) -> Candidates:
    """Make candidates of one rule: rows with equal `about` are one group with the title `words`.

    The title is made from one row per group, because there may be millions of rows and few groups.
    """
    subjects = rows.select(AT, about.cast(pl.String).alias("about"))
    groups = (
        subjects.with_row_index("row")
        .group_by("about")
        .agg(pl.col("row").first(), pl.len().alias("size"))
        .filter(pl.col("size") >= FEWEST[rule])
        .sort("about", nulls_last=True)
        .with_row_index("group")
    )
    titles = rows[groups["row"]].select(words.cast(pl.String).alias("title"))
    breaks = subjects.join(
        groups.select("about", "group"), on="about", maintain_order="left", nulls_equal=True
    )
    return Candidates(
        rule, breaks.select(AT, "group"), groups.select("about", "size").hstack(titles)
    )


def exact_amounts(breaks: pl.DataFrame) -> pl.DataFrame:
    """Breaks with two exact amounts, `e` delivered and `f` found."""
    both = breaks.filter(pl.col("code").is_in(OF_AMOUNTS)).select(
        *(AT, "id", "record", "tenant", "key", "field", "side", "currency"),
        pl.col("expected").cast(AMOUNT, strict=False).alias("e"),
        pl.col("found").cast(AMOUNT, strict=False).alias("f"),
    )
    small = (pl.col("e").abs() < _LARGEST) & (pl.col("f").abs() < _LARGEST)
    return both.filter(small, pl.col("e") != pl.col("f"))


def field_name() -> pl.Expr:
    return joined("record", "field")


@cache
def title() -> pl.Expr:
    titles = {code: of.title for code, of in BREAKS.items()}
    code = pl.col("code")
    named = code.replace_strict(titles, default=code, return_dtype=pl.String)
    return pl.format("{}: {}", kind(), named)


@cache
def kind() -> pl.Expr:
    kinds = {name: table.title for name, table in TABLES.items()}
    return pl.col("record").replace_strict(kinds, default=pl.col("record"), return_dtype=pl.String)


def twins(breaks: pl.DataFrame) -> Candidates:
    """Records missing on either side whose keys look the same: a hint, never a match."""
    key = pl.col("key").cast(pl.String).str.normalize("NFC").str.replace_all(r"\s+", " ")
    alone = breaks.filter(pl.col("code").is_in(_ALONE)).select(
        AT,
        "code",
        pl.col("record").cast(pl.String),
        alike=key.str.replace_all(" ?/ ?", "/").str.strip_chars(),
    )
    about = ["record", "alike"]
    both = (pl.col("code").n_unique().over(about) == len(_ALONE)) & (pl.col("alike") != "")
    words = pl.format(
        "{} {} may be one record: its keys differ only in blanks or in how accents are written",
        kind(),
        "alike",
    )
    return candidates(alone.filter(both), "twins", joined(*about, by="\x1f"), words)


def swapped(amounts: pl.DataFrame) -> Candidates:
    """Two amount fields of one record that have each other's value."""
    record = ["record", "tenant", "key", "side"]
    amounts = amounts.filter(pl.struct(record).is_duplicated())
    other = amounts.select(*record, other="field", oe="e", of="f")
    pairs = amounts.join(other, on=record, how="inner", nulls_equal=True).filter(
        pl.col("field") != pl.col("other"), pl.col("e") == pl.col("of"), pl.col("f") == pl.col("oe")
    )
    names = pl.concat_list("field", "other").list.sort().list.join(" and ")
    return candidates(pairs, "swapped", joined("record", names), pl.format("{} are swapped", names))


def factors(amounts: pl.DataFrame) -> Candidates:
    """The found amount is 10, 100 or 1000 times the delivered one, or a fraction, or its negative.

    Zero fits none of these, because the two amounts differ.
    """
    e, f = pl.col("e"), pl.col("f")
    cases = [(f == -e, "the other sign of")]
    for times in FACTORS:
        cases += [(f == e * times, f"{times} times"), (e == f * times, f"1/{times} of")]
    factor = pl.coalesce(pl.when(case).then(pl.lit(words)) for case, words in cases)
    # Nearly all amounts fit no case, so these are filtered out before words are made.
    some = amounts.filter(pl.any_horizontal(case for case, _ in cases))
    return candidates(
        some.with_columns(factor.alias("factor")),
        "factor",
        joined(field_name(), pl.col("factor")),
        pl.format("{} is {} what was delivered", "field", "factor"),
    )


def transposed(amounts: pl.DataFrame) -> Candidates:
    """Two adjacent digits changed places, as in typing.

    Such amounts differ by nine times a digit, followed by as many zeros as there are digits behind
    the two.
    """
    by = _digits(pl.col("f") - pl.col("e"))
    near = amounts.filter(
        by.str.strip_chars("0").is_in([str(9 * digit) for digit in range(1, 10)]),
        (pl.col("e") < 0) == (pl.col("f") < 0),
    ).with_columns(
        *(_digits(pl.col(name)).alias(f"__{name}") for name in ("e", "f")),
        (by.str.len_chars() - by.str.strip_chars_end("0").str.len_chars()).alias("__behind"),
    )
    e, first = pl.col("__e"), pl.col("__first")
    places = (e.str.len_chars().cast(pl.Int64) - pl.col("__behind") - 2).alias("__first")
    near = near.with_columns(places).filter(first >= 0)
    moved = [e.str.slice(*cut) for cut in ((0, first), (first + 1, 1), (first, 1), (first + 2,))]
    return candidates(
        near.filter(pl.concat_str(moved) == pl.col("__f")),
        "transposed",
        field_name(),
        pl.format("{} has two digits transposed", "field"),
    )


def _digits(amount: pl.Expr) -> pl.Expr:
    """All digits of an exact amount, the last eighteen being its decimals."""
    return amount.abs().cast(pl.String).str.replace(".", "", literal=True)


def differences(amounts: pl.DataFrame, names: Mapping[str, str]) -> Candidates:
    """Amounts with the same difference; `names` are those of currencies."""
    delta = money_text(pl.col("f") - pl.col("e"))
    currency = pl.format(" in {}", currency_named("currency", names)).fill_null("")
    return candidates(
        amounts,
        "difference",
        joined(field_name(), currency_text(), delta),
        pl.format("{} differs by {}{}", "field", delta, currency),
    )


def shifts(breaks: pl.DataFrame) -> list[Candidates]:
    """Times, days or numbers that are all off by the same: a wrong zone, day or line."""
    times = breaks.filter(pl.col("code") == "INSTANT").with_columns(
        shift=(_moment("found") - _moment("expected")).dt.total_microseconds().cast(AMOUNT)
    )
    times = times.with_columns(shift=money_text(pl.col("shift") / _MICRO))
    expected, found = pl.col("expected"), pl.col("found")
    first, second = (one.str.to_date("%Y-%m-%d", strict=False) for one in (expected, found))
    others = breaks.filter(~pl.col("code").is_in(["INSTANT", *OF_AMOUNTS]))
    days = others.with_columns(shift=(second - first).dt.total_days())
    first, second = (one.cast(pl.Int64, strict=False).cast(pl.Int128) for one in (expected, found))
    values = breaks.filter(pl.col("code") == "VALUE")
    numbers = values.with_columns(shift=(second - first).cast(pl.String))
    about = joined("code", field_name(), "shift")
    return [
        candidates(
            rows.filter(pl.col("shift").is_not_null()),
            "shift",
            pl.concat_str(about, pl.lit(of)),
            pl.format("{}: {} is {}", title(), "field", by),
        )
        for rows, of, by in (
            (times, "/ seconds", apart(pl.col("shift"))),
            (days, "/ days", pl.format("off by {}", quantities(pl.col("shift"), "day"))),
            (numbers, "/", pl.format("off by {}", "shift")),
        )
    ]


def _moment(name: str) -> pl.Expr:
    wall = "%Y-%m-%dT%H:%M:%S%.f"
    aware = pl.col(name).str.to_datetime(f"{wall}%:z", time_unit="us", strict=False)
    plain = pl.col(name).str.to_datetime(wall, time_unit="us", strict=False)
    return pl.coalesce(aware.dt.replace_time_zone(None), plain)
