"""Matching (J1-J3): every record's one status, and the first stage where its sides differ.

Extract rows are compared with the database, with what the service answered, and with its listing
where it has one. Rows are told apart by number, never copied: columns are gathered one at a time.
"""

from dataclasses import dataclass
from datetime import date

import polars as pl

from flows.steps.reconcile.answers import ECHO_SCHEMA, echo_differences, sends, service_status
from flows.steps.reconcile.breaks import AMOUNT, no_breaks
from flows.steps.reconcile.comparison import differences
from flows.steps.reconcile.match_breaks import (
    SECOND_KEYS,
    key_text,
    line_breaks,
    numbered,
    second_key_breaks,
)
from flows.steps.reconcile.one_sided import alone_breaks, alone_lines, tenant_crossings
from flows.steps.reconcile.pairing import Pairs, key_frame, keyless, pair
from flows.steps.reconcile.rules import Offset, Rules
from flows.steps.reconcile.sources import ANSWER, LINEAGE, PLACE, Sources, record_schema
from flows.steps.reconcile.standing import standing, unfit_amounts
from flows.steps.reconcile.statuses import EXPECTED, STATUS, found_columns, number, status_schema
from flows.steps.reconcile.tolerance import judged
from flows.steps.reconcile.windows import business_date, waiting
from schemas.breaks import Status
from schemas.field import Table
from schemas.kinds import WORD, Dtype
from schemas.operations import PUSHES
from schemas.tables import INSERT_BATCH_DATA

TOLERATED_SCHEMA: dict[str, Dtype] = {
    "tolerance": pl.String(),
    "record": pl.String(),
    "tenant": pl.Int32(),
    "key": pl.String(),
    "field": pl.String(),
    "currency": pl.Int32(),
    "expected": pl.String(),
    "found": pl.String(),
    "delta": AMOUNT,
}
"""One line per difference that a rule waved through."""

_SERVICE_BREAKS = {
    Status.REJECTED: "REFUSED",
    Status.NOT_SENT: "NOT_SENT",
    Status.IN_DOUBT: "IN_DOUBT",
    Status.SENT_UNCONFIRMED: "UNCONFIRMED",
}


_MATCHED = (Status.MATCHED_EXACT, Status.MATCHED_TOLERANCE)
_LISTABLE = (*_MATCHED, Status.PENDING, Status.MISSING_IN_TARGET)


@dataclass(frozen=True)
class Matched:
    """What became of every record of one kind."""

    statuses: pl.DataFrame
    """One line per record (`status_schema`): the extract rows, then what only a target has."""
    breaks: pl.DataFrame
    tolerated: pl.DataFrame


def match(table: Table, sources: Sources, rules: Rules, as_of: date, service: bool) -> Matched:
    """The status of every record and its breaks; `service` says whether sending was asked for.

    Nothing is dropped: rows without a key, repeated ones and records of one side alone have a line.
    Records without a key of their own are compared with the service's listing as well.
    """
    schema = record_schema(table)
    extract = _complete(sources.extract.get(table.name), schema | PLACE)
    database, listing = sources.database.get(table.name), sources.listings.get(table.name)
    side = "G" if database is None and listing is not None else "D"
    found = _complete(listing if side == "G" else database, schema | LINEAGE)
    asked = service and table.name in PUSHES
    sent = _complete(sources.answers.get(table.name), ANSWER) if asked else None
    also = listing if side == "D" and not table.key else None
    also = None if also is None else _complete(also, schema | LINEAGE)
    matched = _Match(table, rules, as_of, extract, found, side, sent).result(also)
    if table is INSERT_BATCH_DATA:
        # What its rows and listing owe each other has break codes of its own.
        matched = Matched(matched.statuses, no_breaks(), matched.tolerated)
    return matched


def _complete(frame: pl.DataFrame | None, schema: dict[str, Dtype]) -> pl.DataFrame:
    """The frame with exactly these columns; what a source does not tell is null."""
    if frame is None:
        return pl.DataFrame(schema=schema)
    return frame.select(
        (pl.col(name) if name in frame.columns else pl.lit(None)).cast(dtype).alias(name)
        for name, dtype in schema.items()
    )


@dataclass(frozen=True)
class _Match:
    """Extract rows against one target, D or G."""

    table: Table
    rules: Rules
    as_of: date
    extract: pl.DataFrame
    found: pl.DataFrame
    side: str
    answers: pl.DataFrame | None

    def result(self, listing: pl.DataFrame | None) -> Matched:
        """Compare; `listing` is what the service has of the same records, beside the database."""
        own = standing(self.table, self.extract, self.rules)
        pairs = self._pairs(own)
        compared = own["status"].is_null()
        told = self._differences(pl.select(pl.when(compared).then(pairs.partner)).to_series())
        sent = self._sent(compared, pairs)
        lines = self._lines(own, pairs, told, sent)
        alone = alone_lines(self.table, self.found[pairs.lone], pairs.repeats, self.rules)
        breaks = [*self._line_breaks(lines, own), *self._alone_breaks(lines, alone)]
        if listing is not None:
            lines, listed, unlisted = self._listed(lines, pairs, listing)
            breaks += [unlisted, *alone_breaks(self.table, listed, "G")]
            alone = pl.concat([alone, listed], rechunk=False)
        breaks += self._difference_breaks(lines, told, sent)
        breaks.append(self._second_keys(lines, alone, pairs))
        return Matched(
            pl.concat([lines, alone], rechunk=False),
            numbered(breaks),
            self._tolerated(lines, told),
        )

    def _pairs(self, own: pl.DataFrame) -> Pairs:
        """Partners of the rows to compare; what a rule leaves out takes its partner along."""
        ruled = [exclusion.id for exclusion in self.rules.exclusions]
        taking = own.select(
            pl.col("status").is_null()
            | ((pl.col("status") == Status.EXCLUDED) & pl.col("rule").is_in(ruled))
            | (pl.col("status") == Status.UNKNOWN)
        ).to_series() & ~keyless(self.table, self.extract)
        rows = taking.arg_true()
        wire = self.side == "G"
        left = key_frame(
            self.table, self.extract if taking.all() else self.extract[rows], wire=wire
        )
        nameless = keyless(self.table, self.found)
        right = key_frame(self.table, self.found, wire=wire)
        pairs = pair(left, right)
        if nameless.any():
            pairs = Pairs(pairs.partner, pairs.lone, pairs.repeats & ~nameless.gather(pairs.lone))
        if taking.all():
            return pairs
        partner = pl.Series("partner", [None], dtype=pl.UInt32).new_from_index(0, taking.len())
        return Pairs(partner.scatter(rows, pairs.partner), pairs.lone, pairs.repeats)

    def _differences(self, partner: pl.Series) -> pl.DataFrame:
        told = differences(self.table, self.extract, self.found, partner)
        if self.rules.offset is Offset.EQUAL:
            told = told.filter(pl.col("code") != "OFFSET")
        about = self.extract[told["row"]].with_columns(
            number(self.table.currency, "currency"), number(self.table.tenant, "tenant")
        )
        told = told.with_columns(about["currency"], about["tenant"])
        return judged(self.table.name, told, self.rules)

    def _sent(self, compared: pl.Series, pairs: Pairs) -> pl.DataFrame | None:
        """What the service says of each extract row; None where nothing was to be sent."""
        if self.answers is None:
            return None
        writers = self.found.select("extract_id", "row")[pairs.partner]
        sent = sends(self.extract, writers, self.answers)
        heard = compared & pairs.partner.is_not_null()
        return sent.with_columns(
            pl.when(heard).then(service_status(self.table).cast(STATUS)).alias("service"),
            pl.Series("heard", heard),
        )

    def _lines(
        self, own: pl.DataFrame, pairs: Pairs, told: pl.DataFrame, sent: pl.DataFrame | None
    ) -> pl.DataFrame:
        dates = business_date(self.table, self.extract)
        height = self.extract.height
        missing = pairs.partner.is_null()
        wait = missing & waiting(self.table.name, dates, self.rules, self.as_of)
        heard = pl.Series([None], dtype=STATUS) if sent is None else sent["service"]
        status = (
            pl.when(own["status"].is_not_null())
            .then(own["status"])
            .when(wait)
            .then(_status(Status.PENDING))
            .when(missing)
            .then(_status(Status.MISSING_IN_TARGET))
            .when(_flags(height, told.filter(pl.col("tolerance").is_null())["row"]))
            .then(_status(Status.MISMATCH))
            .when(heard.is_not_null())
            .then(heard)
            .when(_flags(height, told["row"]))
            .then(_status(Status.MATCHED_TOLERANCE))
            .otherwise(_status(Status.MATCHED_EXACT))
        )
        found = found_columns(self.table)
        names = [column.meta.output_name() for column in found]
        partner = self.found.with_columns(found).select(names)[pairs.partner]
        answer = pl.Series([None], dtype=WORD).new_from_index(0, height)
        return self.extract.select(
            *self.table.identity,
            number(self.table.tenant, "tenant"),
            status.alias("status"),
            pl.Series("rule", own["rule"]),
            number(self.table.currency, "currency"),
            *partner,
            *(pl.col(name).alias(name + EXPECTED) for name in self.table.amounts),
            dates,
            (~missing).alias("in_target"),
            (answer if sent is None else sent["state"]).alias("answer"),
            *PLACE,
        ).select(list(status_schema(self.table)))

    def _listed(
        self, lines: pl.DataFrame, pairs: Pairs, listing: pl.DataFrame
    ) -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]:
        """Lines and breaks with the service's listing considered, and what is listed alone."""
        rows = lines["status"].is_in(_LISTABLE).arg_true()
        lone = pairs.lone.filter(~pairs.repeats)
        left = [
            key_frame(self.table, self.extract[rows], wire=True),
            key_frame(self.table, self.found[lone], wire=True),
        ]
        together = pair(pl.concat(left), key_frame(self.table, listing, wire=True))
        absent = rows.filter(together.partner.head(rows.len()).is_null())
        matched = lines["status"].is_in(_MATCHED)
        absent = absent.filter(matched.gather(absent))
        unlisted = line_breaks(
            self.table, lines, absent, code=Status.MISSING_IN_TARGET.value, side="G"
        )
        status = (
            pl.when(_flags(lines.height, absent))
            .then(_status(Status.MISSING_IN_TARGET))
            .otherwise("status")
        )
        listed = alone_lines(self.table, listing[together.lone], together.repeats, self.rules)
        return lines.with_columns(status.alias("status")), listed, unlisted

    def _line_breaks(self, lines: pl.DataFrame, own: pl.DataFrame) -> list[pl.DataFrame]:
        """What is wrong with an extract row by itself, or with its absence on the other side."""
        settled = own["status"]
        nameless = keyless(self.table, self.extract)
        unknown = (settled == Status.UNKNOWN).fill_null(value=False)
        unfit = [
            line_breaks(
                self.table,
                lines,
                (unknown & ~nameless & self.extract[name].is_null()).arg_true(),
                code="PRECISION",
                side="E",
                field=name,
            )
            for name in unfit_amounts(self.table, self.extract)
        ]
        missing = (lines["status"] == Status.MISSING_IN_TARGET).arg_true()
        return [
            self._about(lines, settled == Status.REJECTED, "REJECTED", "E"),
            self._about(lines, settled == Status.DUPLICATE, "DUPLICATE", "E"),
            self._about(lines, unknown & nameless, "KEY_MISSING", "E"),
            *unfit,
            line_breaks(self.table, lines, missing, code="MISSING_IN_TARGET", side=self.side),
        ]

    def _about(self, lines: pl.DataFrame, where: pl.Series, code: str, side: str) -> pl.DataFrame:
        rows = where.fill_null(value=False).arg_true()
        return line_breaks(self.table, lines, rows, code=code, side=side)

    def _difference_breaks(
        self, lines: pl.DataFrame, told: pl.DataFrame, sent: pl.DataFrame | None
    ) -> list[pl.DataFrame]:
        echoes, heard = pl.DataFrame(schema=ECHO_SCHEMA), []
        if sent is not None and self.answers is not None:
            heard = self._service_breaks(lines, sent)
            differing = sent.with_row_index("row").filter("heard", pl.col("state") == "differs")
            echoes = echo_differences(
                self.table,
                self.extract[differing["row"]],
                differing.with_columns(self.answers["echo"].gather(differing["answer"])),
            )
        # The answer comes before the read-back: where it differs already, it diverged there.
        at_answer = told.join(echoes, on=["row", "field"], how="semi").select("row", "field")
        at_answer = at_answer.with_columns(pl.lit("A").alias("at"))
        found = (
            told.filter(
                pl.col("tolerance").is_null()
                | ((pl.col("code") == "OFFSET") & (self.rules.offset is Offset.TOLD))
            )
            .drop("currency", "tenant")
            .join(at_answer, on=["row", "field"], how="left", maintain_order="left")
            .with_columns(
                pl.coalesce("at", pl.lit(self.side)).alias("side"),
                pl.when(pl.col("seconds") != 0)
                .then(pl.concat_str(_seconds(), pl.lit(" s later")))
                .otherwise(pl.lit(""))
                .alias("note"),
            )
        )
        return [
            line_breaks(self.table, lines, found),
            line_breaks(self.table, lines, echoes, code="ECHO", side="A"),
            *heard,
        ]

    def _service_breaks(self, lines: pl.DataFrame, sent: pl.DataFrame) -> list[pl.DataFrame]:
        breaks = []
        for status, code in _SERVICE_BREAKS.items():
            rows = (sent["service"] == status.value).fill_null(value=False).arg_true()
            answers = sent.select("state", "status")[rows].select(
                pl.when(pl.col("status").is_not_null())
                .then(pl.concat_str(pl.lit("HTTP status "), pl.col("status").cast(pl.String)))
                .otherwise(pl.lit(""))
                .alias("note"),
                rows.alias("row"),
            )
            side = "R" if status is Status.NOT_SENT else "A"
            breaks.append(line_breaks(self.table, lines, answers, code=code, side=side))
        return breaks

    def _alone_breaks(self, lines: pl.DataFrame, alone: pl.DataFrame) -> list[pl.DataFrame]:
        missing = (lines["status"] == Status.MISSING_IN_TARGET).arg_true()
        return [
            *alone_breaks(self.table, alone, self.side),
            tenant_crossings(self.table, lines, missing, alone),
        ]

    def _second_keys(self, lines: pl.DataFrame, alone: pl.DataFrame, pairs: Pairs) -> pl.DataFrame:
        """Second keys are looked for in the target, where all records meet; else in the extract."""
        if self.table.name not in SECOND_KEYS:
            return no_breaks()
        if self.found.is_empty():
            live = lines["status"].is_in([Status.MISSING_IN_TARGET, Status.PENDING]).arg_true()
            return second_key_breaks(self.table, lines[live], self.extract[live], "E")
        rows = pl.Series([None], dtype=pl.UInt32).new_from_index(0, self.found.height)
        paired = pairs.partner.is_not_null().arg_true()
        rows = rows.scatter(pairs.partner.drop_nulls(), paired.cast(pl.UInt32))
        order = pl.Series(range(pairs.lone.len()), dtype=pl.UInt32) + lines.height
        rows = rows.scatter(pairs.lone, order)
        everything = pl.concat([lines, alone], rechunk=False)[rows]
        return second_key_breaks(self.table, everything, self.found, self.side)

    def _tolerated(self, lines: pl.DataFrame, told: pl.DataFrame) -> pl.DataFrame:
        waved = told.filter(pl.col("tolerance").is_not_null())
        about = lines[waved["row"]]
        return waved.with_columns(
            pl.lit(self.table.name).alias("record"), key_text(self.table, about)
        ).select(pl.col(name).cast(dtype) for name, dtype in TOLERATED_SCHEMA.items())


def _status(status: Status) -> pl.Expr:
    return pl.lit(status.value, STATUS)


def _seconds() -> pl.Expr:
    text = pl.col("seconds").cast(pl.String)
    return text.str.strip_chars_end("0").str.strip_chars_end(".")


def _flags(height: int, rows: pl.Series) -> pl.Series:
    none = pl.Series([False]).new_from_index(0, height)
    return none.scatter(rows.unique(), True) if rows.len() else none
