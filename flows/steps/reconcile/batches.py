"""J10: insert-batch data: sent rows against the service's listing, and what its flags say.

Rows have no key, so the two sides are multisets per BatchId: rows are the same if their Data is the
same, or else the record inside. The content of a row is never shown, since it may be a secret; a
break names the kind and key of the record inside.
"""

from collections.abc import Collection
from dataclasses import dataclass

import polars as pl

from flows.steps.breaks.make import (
    DELIVERED_AT,
    LINES,
    Annex,
    as_text,
    joined,
    left_of,
    make_breaks,
    number_duplicates,
)
from flows.steps.frames.statuses import in_state
from flows.steps.reconcile.insert_batch import digest, read_insert_batch_record
from schemas.derived.left_out import OWN
from schemas.derived.views import AGAIN, BY_KEY, CORRECTED, ENDS, ERRORS
from schemas.tables import INSERT_BATCH_DATA

RECORD = INSERT_BATCH_DATA.name
BATCH = "BatchId"
_TEXTS = ["Data", "Jsondata"]
OF_USE = ("superseded", "stale")
"""States that are about the record inside a row, not about the row."""
CONTRADICTIONS = (
    "BATCH_ERROR_UNTOLD",
    "BATCH_MERGED_ERROR",
    "BATCH_NOT_MERGED",
    "BATCH_ERROR_UNSET",
    "BATCH_JSON_UNREADABLE",
    "BATCH_JSON_DIFFERS",
)


@dataclass(frozen=True, slots=True)
class BatchLine:
    batch: int
    sent: int
    listed: int
    merged: int
    errors: int
    contradictions: int
    rerun: str
    """The command that runs the batch again, or empty."""


def reconcile_batches(sent: pl.DataFrame, listed: pl.DataFrame | None) -> Annex[BatchLine]:
    """The breaks of J10 and one line per BatchId.

    `sent` are the extract rows with `sources.DELIVERED`, `listed` is the listing of the service;
    without a listing (None) only what the rows say by themselves is compared.
    """
    inside = _Inside(sent) if listed is None else _Inside(sent, listed)
    every = inside.with_inside(sent)
    taken = every.filter(counts())
    mine = every.filter(~in_state(ENDS))
    if listed is None:
        breaks = number_duplicates(_contradictions(inside, taken, listed=False))
        return _annex(breaks, mine, taken, taken.clear())
    theirs = inside.with_inside(listed)
    missing, extra = inside.unpaired(taken, theirs)
    _, extra = inside.unpaired(every.filter(~counts()), extra)
    breaks = number_duplicates(
        [
            _unpaired_breaks("BATCH_MISSING", inside.named(missing)),
            _unpaired_breaks("BATCH_EXTRA", inside.named(extra)),
            *_contradictions(inside, theirs, listed=True),
            _counts(mine, theirs),
        ]
    )
    return _annex(breaks, mine, taken, theirs)


def own_rows(sent: pl.DataFrame, listed: pl.DataFrame, shared: Collection[int]) -> pl.DataFrame:
    """The listed rows without those that may be somebody else's.

    If others delivered rows of a BatchId too (`shared`), a row that was not sent here is theirs.
    """
    if not shared or listed.is_empty():
        return listed
    inside, numbered = _Inside(sent, listed), listed.with_row_index("at")
    _, extra = inside.unpaired(inside.with_inside(sent), inside.with_inside(numbered))
    theirs = extra.filter(pl.col(BATCH).is_in(list(shared)))["at"]
    return numbered.filter(~pl.col("at").is_in(theirs.implode())).drop("at")


def with_pair_numbers(
    sent: pl.DataFrame, listed: pl.DataFrame
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Both sides with Jsondata replaced by a number that a sent row shares with its listed row.

    Rows are members of a multiset and paired as for the breaks, so equal rows are not duplicates of
    each other. The listed row of a pair gets the Data of the sent one. Rows that count are paired
    before those that do not.
    """
    inside = _Inside(sent, listed)
    mine, theirs = (inside.with_inside(side.with_row_index("at")) for side in (sent, listed))
    pairs = [pl.DataFrame(schema={"at": pl.UInt32, "there": pl.UInt32})]
    _, rest = inside.unpaired(mine.filter(counts()), theirs, pairs)
    inside.unpaired(mine.filter(~counts()), rest, pairs)
    of = (
        listed.with_row_index("there")
        .select("there")
        .join(pl.concat(pairs), on="there", how="left", maintain_order="left")["at"]
    )
    paired = of.is_not_null()
    own = pl.format("sent {}", pl.int_range(pl.len()))
    return sent.with_columns(own.alias("Jsondata")), listed.with_columns(
        pl.when(paired).then(sent["Data"].gather(of)).otherwise("Data").alias("Data"),
        pl.when(paired)
        .then(pl.format("sent {}", pl.lit(of)))
        .otherwise(pl.format("listed {}", pl.int_range(pl.len())))
        .alias("Jsondata"),
    )


class _Inside:
    """The records inside rows, read once per distinct text; names and contents on demand only."""

    def __init__(self, *sides: pl.DataFrame) -> None:
        texts = pl.concat(side.select(_TEXTS) for side in sides).unique(maintain_order=True)
        self.found = [
            read_insert_batch_record(data, jsondata) for data, jsondata in texts.iter_rows()
        ]
        self.texts = texts.with_row_index("inside").with_columns(
            pl.Series("unreadable", [record.unreadable for record in self.found], pl.Boolean),
            pl.Series("differs", [bool(record.differs) for record in self.found], pl.Boolean),
        )

    def with_inside(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Rows with their record's number, flags without nulls, and `explained` by ErrorData."""
        silent = pl.col("ErrorData").fill_null("").str.strip_chars().is_in(["", "[]", "{}"])
        return rows.join(
            self.texts, on=_TEXTS, how="left", nulls_equal=True, maintain_order="left"
        ).with_columns(pl.col("HasError", "Merged").fill_null(False), (~silent).alias("explained"))

    def named(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Rows with `name` and `content` of the record inside."""
        if rows.is_empty():
            return rows.with_columns(
                pl.lit(None, pl.String).alias(of) for of in ("name", "content")
            )
        asked = self.texts.lazy().join(rows.lazy(), on="inside", how="semi")
        about = [
            (place, self.found[place].name, digest(self.found[place].content(data, jsondata)))
            for place, data, jsondata in asked.select("inside", *_TEXTS).collect().iter_rows()
        ]
        schema = {"inside": pl.UInt32, "name": pl.String, "content": pl.String}
        names = pl.DataFrame(about, schema=schema, orient="row")
        return rows.join(names, on="inside", how="left", maintain_order="left")

    def differences(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Rows whose Data differs from Jsondata, once per `field`, with `data` and `json`."""
        lines = [
            (place, *difference)
            for place in rows.filter("differs")["inside"].unique().sort()
            for difference in self.found[place].differs
        ]
        schema = {"inside": pl.UInt32, **dict.fromkeys(("field", "data", "json"), pl.String)}
        fields = pl.DataFrame(lines, schema=schema, orient="row")
        return rows.join(fields, on="inside", how="inner", maintain_order="left")

    def unpaired(
        self, left: pl.DataFrame, right: pl.DataFrame, pairs: list[pl.DataFrame] | None = None
    ) -> tuple[pl.DataFrame, pl.DataFrame]:
        """Rows of each side without a partner in their batch, by Data first and then by record.

        The pairs found are appended to `pairs`, as the row numbers `at` and `there`.
        """
        # Rows that are equal in both texts pair before rows that share one of them.
        left, right = _unpaired(left, right, _TEXTS, pairs)
        left, right = _unpaired(left, right, ["Data"], pairs)
        if left.is_empty() or right.is_empty():
            return left, right
        left, right = _unpaired(self.named(left), self.named(right), ["content"], pairs)
        return left.drop("name", "content"), right.drop("name", "content")


def _unpaired(
    left: pl.DataFrame, right: pl.DataFrame, key: list[str], found: list[pl.DataFrame] | None
) -> tuple[pl.DataFrame, pl.DataFrame]:
    if left.is_empty() or right.is_empty():
        return left, right
    on = [BATCH, *key, "nth"]
    # Nulls do not make rows alike; among equal rows the first pairs with the first.
    like = pl.any_horizontal(pl.col(key).is_not_null())
    nth = pl.int_range(pl.len()).over([BATCH, *key]).alias("nth")
    first, second = (side.lazy().with_columns(nth) for side in (left, right))
    pairs = first.filter(like).select(on).join(second.select(on), on=on, nulls_equal=True)
    matches = pairs.collect().lazy()
    if found is not None:
        both = first.join(matches, on=on, nulls_equal=True).join(
            second.select(*on, pl.col("at").alias("there")), on=on, nulls_equal=True
        )
        found.append(both.select("at", "there").collect())
    left, right = pl.collect_all(
        side.join(matches, on=on, how="anti", nulls_equal=True, maintain_order="left").drop("nth")
        for side in (first, second)
    )
    return left, right


def counts() -> pl.Expr:
    """Which rows the service should list; it may list other rows too, without a break.

    A row whose record is superseded or stale was sent as well: it is out of use only here.
    """
    return ~in_state(OWN.keys() - set(OF_USE))


def _row_break(
    code: str, rows: pl.DataFrame, name: str | pl.Expr = "", **facts: pl.Expr
) -> pl.DataFrame:
    facts = {"key": joined(BATCH, "content"), "note": pl.col("name")} | facts
    return make_breaks(code, RECORD, rows, name=name, **facts)


def _unpaired_breaks(code: str, rows: pl.DataFrame) -> pl.DataFrame:
    """One break per content, with the number of its rows that have no partner."""
    places = [pl.col(name).first() for name in DELIVERED_AT if name in rows.columns]
    several = (
        rows.group_by(BATCH, "content", maintain_order=True)
        .agg(pl.len().alias("rows"), pl.col("name").first(), *places)
        .sort(BATCH, "content", nulls_last=True)
    )
    sides = as_text("rows"), pl.lit("0")
    expected, found = sides if code == "BATCH_MISSING" else sides[::-1]
    return _row_break(code, several, expected=expected, found=found)


def _contradictions(inside: _Inside, rows: pl.DataFrame, *, listed: bool) -> list[pl.DataFrame]:
    """Contradictions between HasError, Merged, ErrorData and Jsondata of a row.

    A row that is only sent so far need not be merged yet.
    """
    error, merged, explained = (pl.col(name) for name in ("HasError", "Merged", "explained"))
    cases = {
        "BATCH_ERROR_UNTOLD": ("ErrorData", error & ~explained),
        "BATCH_MERGED_ERROR": ("Merged", error & merged),
        "BATCH_ERROR_UNSET": ("HasError", ~error & explained),
        "BATCH_JSON_UNREADABLE": ("Jsondata", pl.col("unreadable")),
        "BATCH_JSON_DIFFERS": ("", pl.col("differs")),
    }
    if listed:
        cases["BATCH_NOT_MERGED"] = ("Merged", ~error & ~merged & ~explained)
    flagged = rows.with_columns(case.alias(code) for code, (_, case) in cases.items())
    wrong = inside.named(flagged.filter(pl.any_horizontal(*cases)))
    breaks = []
    for code, (name, _) in cases.items():
        # Equal rows of a batch have the same contradictions, so one of them is reported.
        one = wrong.filter(code).unique([BATCH, "content"], keep="first", maintain_order=True)
        if code == "BATCH_JSON_DIFFERS":
            values = {"expected": pl.col("data"), "found": pl.col("json")}
            breaks.append(_row_break(code, inside.differences(one), pl.col("field"), **values))
        else:
            breaks.append(_row_break(code, one, name))
    return breaks


def _counts(mine: pl.DataFrame, theirs: pl.DataFrame) -> pl.DataFrame:
    """Rows in error at the service against rows that our check rejected, per batch.

    A row that was corrected since may still be in error there.
    """
    since = in_state((CORRECTED, BY_KEY, AGAIN))
    ours = mine.group_by(BATCH).agg(
        in_state(ERRORS).sum().alias("ours"), since.sum().alias("since"), _place(mine)
    )
    listed = theirs.group_by(BATCH).agg(pl.col("HasError").sum().alias("errors"))
    both = (
        ours.join(listed, on=BATCH, how="inner", nulls_equal=True)
        .filter(~pl.col("errors").is_between("ours", pl.col("ours") + pl.col("since")))
        .sort(BATCH, nulls_last=True)
    )
    return make_breaks(
        "BATCH_COUNT",
        RECORD,
        both,
        key=joined(BATCH),
        name="HasError",
        expected=as_text("ours"),
        found=as_text("errors"),
        note=pl.lit("rows that our check rejected, and rows in error at the service"),
    )


def _place(rows: pl.DataFrame) -> pl.Expr:
    known = pl.col("batch_id") if "batch_id" in rows.columns else pl.lit(None, pl.Int32)
    return known.max().alias("batch_id")


def _annex(
    breaks: pl.DataFrame, mine: pl.DataFrame, taken: pl.DataFrame, theirs: pl.DataFrame
) -> Annex[BatchLine]:
    service = pl.col("key").str.split("/").list.first().cast(pl.Int32, strict=False).alias(BATCH)
    groups = breaks.with_columns(service).group_by(BATCH)
    wrong = groups.agg(
        pl.col("code").is_in(CONTRADICTIONS).sum().alias("contradictions"), pl.len().alias("breaks")
    )
    rows = (
        pl.concat([mine.select(BATCH), theirs.select(BATCH)])
        .unique()
        .join(taken.group_by(BATCH).agg(pl.len().alias("sent")), on=BATCH, how="left")
        .join(mine.group_by(BATCH).agg(_place(mine)), on=BATCH, how="left")
        .join(
            theirs.group_by(BATCH).agg(
                pl.len().alias("listed"),
                pl.col("Merged").sum().alias("merged"),
                pl.col("HasError").sum().alias("errors"),
            ),
            on=BATCH,
            how="left",
        )
        .join(wrong, on=BATCH, how="left")
        .with_columns(pl.exclude(BATCH, "batch_id").fill_null(0))
        .drop_nulls(BATCH)
        .sort(BATCH)
    )
    return Annex(breaks, (), _lines(rows), left_of(rows.height), rows)


def _lines(rows: pl.DataFrame) -> tuple[BatchLine, ...]:
    """The lines of a report; of more than `LINES` those with most breaks."""
    listed = rows
    if rows.height > LINES:
        listed = rows.sort("breaks", BATCH, descending=[True, False]).head(LINES).sort(BATCH)
    asked = pl.when((pl.col("breaks") > 0) | (pl.col("errors") > 0))
    rerun = asked.then(pl.format("recon rerun {}", "batch_id")).fill_null("")
    columns = (BATCH, "sent", "listed", "merged", "errors", "contradictions", rerun.alias("rerun"))
    return tuple(BatchLine(*row) for row in listed.select(columns).iter_rows())
