"""Matching (J1-J3): the one status of every record, and the first stage where its sides differ.

Extract rows are compared with the database, with the service's answers, and with its listing if
there is one. Rows are referred to by number, never copied: columns are gathered one at a time.
"""

from dataclasses import dataclass, replace
from datetime import date

import polars as pl

from flows.steps.breaks.frame import no_breaks, numbered
from flows.steps.breaks.match_breaks import line_breaks
from flows.steps.breaks.tolerated import tolerated_differences
from flows.steps.frames.beyond import beyond_texts, unreadable_of
from flows.steps.frames.light import flags
from flows.steps.frames.sources import (
    ANSWER,
    DELIVERED,
    LINEAGE,
    Sources,
    are_among,
    complete,
    record_schema,
)
from flows.steps.frames.statuses import (
    EXPECTED,
    FOUND,
    PARTNER,
    STATUS,
    Lines,
    amounts_as,
    found_columns,
    number,
)
from flows.steps.frames.time_texts import apart
from flows.steps.match.comparison import canonical_texts, differences, with_tolerances
from flows.steps.match.pairing import Pairs, keyless, pair_records
from flows.steps.reconcile.answers import (
    ECHO_SCHEMA,
    NOT_ASKED,
    echoed,
    sends,
    service_breaks,
    service_status,
    to_be_sent,
)
from flows.steps.reconcile.eligibility import eligibility, unheld_amounts
from flows.steps.reconcile.one_sided import (
    reference_breaks,
    tenant_crossings,
    unmatched_breaks,
    unmatched_lines,
)
from flows.steps.reconcile.second_keys import SECOND_KEYS, second_key_breaks
from flows.steps.reconcile.windows import business_date, waiting
from flows.steps.rules.rules import Offset, Rules
from schemas.amounts import UNREADABLE
from schemas.breaks import Status
from schemas.field import Kind, Table
from schemas.frame_types import WORD
from schemas.kinds import identity_columns
from schemas.operations import PUSHES
from schemas.tables import INSERT_BATCH_DATA

_MATCHED = (Status.MATCHED_EXACT, Status.MATCHED_TOLERANCE)
_THERE = (*_MATCHED, Status.UNKNOWN)
"""Statuses of a paired record without a key, which is UNKNOWN only because of an amount."""
_LISTABLE = (*_THERE, Status.PENDING, Status.MISSING_IN_TARGET)


@dataclass(frozen=True)
class Matched:
    lines: Lines
    """One line per record: the extract rows, then records that only a target has."""
    breaks: pl.DataFrame
    tolerated: pl.DataFrame

    @property
    def statuses(self) -> pl.DataFrame:
        """The lines with the target's values, which is a large frame."""
        return self.lines.whole()


def match(
    table: Table,
    sources: Sources,
    rules: Rules,
    as_of: date,
    service: bool,
    near: pl.DataFrame | None = None,
) -> Matched:
    """The status of every record and its breaks; `service` says whether sending was asked for.

    Nothing is dropped: rows without a key, repeated rows and one-sided records have a line.
    Records of a kind without a key are compared with the service's listing as well. `near` are
    records of the database around the scope whose second keys the scope must not repeat.
    """
    schema = record_schema(table)
    extract = complete(sources.extract.get(table.name), schema | DELIVERED)
    database, listing = sources.database.get(table.name), sources.listings.get(table.name)
    side = "G" if database is None and listing is not None else "D"
    found = complete(listing if side == "G" else database, schema | LINEAGE)
    asked = service and table.name in PUSHES
    sent = complete(sources.answers.get(table.name), ANSWER) if asked else None
    also = listing if side == "D" and not table.key else None
    also = None if also is None else complete(also, schema | LINEAGE)
    lost = sources.lost.get(table.name)
    zone = sources.zones.get(table.name, "UTC")
    near = complete(near, schema | LINEAGE) if near is not None and near.height else None
    alone = sources.database_alone
    matched = _Match(
        table, rules, as_of, extract, found, side, sent, lost, zone, near, alone
    ).result(also)
    if table.name in sources.unproven:
        matched = _unproven(matched, sources.unproven[table.name])
    if table is INSERT_BATCH_DATA:
        # Differences between its rows and the listing have break codes of their own.
        matched = replace(matched, breaks=no_breaks())
    return matched


def _unproven(matched: Matched, rows: pl.DataFrame) -> Matched:
    """Set matches of rows whose delivered text cannot be proven to UNPROVEN."""
    frame = matched.lines.frame
    doubtful = are_among(frame, rows) & frame["status"].is_in(_MATCHED)
    status = pl.when(doubtful).then(_status(Status.UNPROVEN)).otherwise("status").alias("status")
    return replace(matched, lines=replace(matched.lines, frame=frame.with_columns(status)))


@dataclass(frozen=True)
class _Match:
    """The comparison of extract rows with one target, D or G."""

    table: Table
    rules: Rules
    as_of: date
    extract: pl.DataFrame
    found: pl.DataFrame
    side: str
    answers: pl.DataFrame | None
    lost: pl.DataFrame | None
    zone: str
    """Time zone of the server that lists G."""
    near: pl.DataFrame | None
    database_alone: frozenset[int]

    def result(self, listing: pl.DataFrame | None) -> Matched:
        """Compare; `listing` is the service's listing of the same records, beside the database."""
        own = eligibility(self.table, self.extract, self.rules)
        pairs = self._pairs(own)
        compared = own["status"].is_null()
        unheld = unheld_amounts(self.table, self.extract, own)
        differing = self._differences(pl.select(pl.when(compared).then(pairs.partner)).to_series())
        differing = differing.join(unheld, on=["row", "field"], how="anti", maintain_order="left")
        sent = self._sent(compared, pairs)
        lines = self._lines(own, pairs, unheld["row"], differing, sent)
        alone = self._alone(self.found, pairs.unmatched, pairs.repeats)
        missing = (lines.frame["status"] == Status.MISSING_IN_TARGET).arg_true()
        breaks = [
            *self._line_breaks(lines, own["status"], unheld),
            line_breaks(self.table, lines, missing, code="MISSING_IN_TARGET", side=self.side),
            *unmatched_breaks(self.table, alone, self.side),
            tenant_crossings(self.table, lines, missing, alone.frame),
        ]
        every = _concatenated(lines, alone)
        if listing is not None:
            lines, listed, unlisted = self._listed(lines, own, pairs, listing)
            breaks += [unlisted, *unmatched_breaks(self.table, listed, "G")]
            every = replace(_concatenated(lines, alone, listed), own=self.found.height)
        breaks += self._difference_breaks(lines, differing, sent)
        breaks.append(self._second_keys(every, pairs))
        if self.lost is not None:
            there = compared & pairs.partner.is_not_null()
            breaks += reference_breaks(self.table, lines, self.extract, there, self.lost)
        return Matched(every, numbered(breaks), tolerated_differences(self.table, lines, differing))

    def _pairs(self, own: pl.DataFrame) -> Pairs:
        """Partners of the rows to compare; a row that a rule leaves out takes its partner along.

        Insert-batch rows do so in any state, because `with_pair_numbers` has paired them.
        """
        has_pair_numbers = self.table is INSERT_BATCH_DATA
        takes = pl.col("status").is_null() | pl.col("by_rule") | pl.lit(has_pair_numbers)
        taking = own.select(takes).to_series()
        rows = taking.arg_true()
        wire = self.zone if self.side == "G" else None
        left = self.extract if taking.all() else self.extract[rows]
        nameless = keyless(self.table, self.found)
        pairs = pair_records(self.table, left, self.found, wire=wire)
        if nameless.any():
            repeats = pairs.repeats & ~nameless.gather(pairs.unmatched)
            pairs = Pairs(pairs.partner, pairs.unmatched, repeats)
        if taking.all():
            return pairs
        partner = pl.Series("partner", [None], dtype=pl.UInt32).new_from_index(0, taking.len())
        return Pairs(partner.scatter(rows, pairs.partner), pairs.unmatched, pairs.repeats)

    def _differences(self, partner: pl.Series) -> pl.DataFrame:
        differing = differences(self.table, self.extract, self.found, partner)
        if self.side == "G" and not self.table.key:
            # Rows paired by content have the same instants; the server shows its own zone.
            clock_times = [one.name for one in self.table if one.kind is Kind.DATETIME]
            differing = differing.filter(~pl.col("field").is_in(clock_times))
        if self.rules.offset is Offset.EQUAL:
            differing = differing.filter(pl.col("code") != "OFFSET")
        about = number(self.table.currency, "currency"), number(self.table.tenant, "tenant")
        rows = self.extract[differing["row"]].with_columns(about)
        differing = differing.with_columns(rows["currency"], rows["tenant"])
        return with_tolerances(self.table.name, differing, self.rules)

    def _sent(self, compared: pl.Series, pairs: Pairs) -> pl.DataFrame | None:
        """The service's answer to each extract row; None if nothing was to be sent."""
        if self.answers is None:
            return None
        writers = self.found.select("extract_id", "row")[pairs.partner]
        sent = sends(self.extract, writers, self.answers)
        waits = to_be_sent(self.table, self.extract, sent["state"], self.database_alone)
        answered = compared & pairs.partner.is_not_null() & waits
        return sent.with_columns(
            pl.when(answered).then(service_status(self.table).cast(STATUS)).alias("service"),
            state=pl.when(waits).then("state").otherwise(pl.lit(NOT_ASKED, WORD)),
        )

    def _lines(
        self,
        own: pl.DataFrame,
        pairs: Pairs,
        unheld: pl.Series,
        differing: pl.DataFrame,
        sent: pl.DataFrame | None,
    ) -> Lines:
        dates = business_date(self.table, self.extract)
        height = self.extract.height
        missing = pairs.partner.is_null()
        wait = missing & waiting(self.table.name, dates, self.rules, self.as_of)
        acknowledged = pl.Series([None], dtype=STATUS) if sent is None else sent["service"]
        status = (
            pl.when(own["status"].is_not_null())
            .then(own["status"])
            .when(wait)
            .then(_status(Status.PENDING))
            .when(missing)
            .then(_status(Status.MISSING_IN_TARGET))
            .when(flags(height, unheld))
            .then(_status(Status.UNKNOWN))
            .when(flags(height, differing.filter(pl.col("tolerance").is_null())["row"]))
            .then(_status(Status.MISMATCH))
            .when(acknowledged.is_not_null())
            .then(acknowledged)
            .when(flags(height, differing["row"]))
            .then(_status(Status.MATCHED_TOLERANCE))
            .otherwise(_status(Status.MATCHED_EXACT))
        )
        answer = pl.Series([None], dtype=WORD).new_from_index(0, height)
        lines = self.extract.select(
            *identity_columns(self.table),
            number(self.table.tenant, "tenant"),
            status.alias("status"),
            pl.Series("rule", own["rule"]),
            number(self.table.currency, "currency"),
            *amounts_as(self.table, self.extract, EXPECTED),
            dates,
            (answer if sent is None else sent["state"]).alias("answer"),
            pairs.partner.alias(PARTNER),
            *DELIVERED,
        )
        return Lines(lines, found_columns(self.table, self.found))

    def _alone(self, target: pl.DataFrame, numbers: pl.Series, repeats: pl.Series) -> Lines:
        """Lines of records that only the target has."""
        lines = unmatched_lines(self.table, target[numbers], numbers, repeats, self.rules)
        return Lines(lines, found_columns(self.table, target))

    def _listed(
        self, lines: Lines, own: pl.DataFrame, pairs: Pairs, listing: pl.DataFrame
    ) -> tuple[Lines, Lines, pl.DataFrame]:
        """Lines updated by the service's listing, lines of records only listed, and breaks."""
        status = lines.frame["status"]
        rows = (status.is_in(_LISTABLE) | own["by_rule"]).arg_true()
        unmatched = pairs.unmatched.filter(~pairs.repeats)
        names = list(record_schema(self.table))
        left = pl.concat([self.extract[rows].select(names), self.found[unmatched].select(names)])
        together = pair_records(self.table, left, listing, wire=self.zone)
        absent = rows.filter(together.partner.head(rows.len()).is_null())
        absent = absent.filter(status.is_in(_THERE).gather(absent))
        late = waiting(self.table.name, lines.frame["date"], self.rules, self.as_of).gather(absent)
        gone = absent.filter(~late)
        unlisted = line_breaks(self.table, lines, gone, code="MISSING_IN_TARGET", side="G")
        missing = (
            pl.when(flags(status.len(), gone))
            .then(_status(Status.MISSING_IN_TARGET))
            .when(flags(status.len(), absent))
            .then(_status(Status.PENDING))
            .otherwise("status")
        )
        listed = Lines(lines.frame.with_columns(status=missing), lines.target)
        # Records of the listing are numbered behind those of the database.
        both = pl.concat([self.found, listing], how="diagonal")
        numbers = (together.unmatched + self.found.height).cast(pl.UInt32)
        return listed, self._alone(both, numbers, together.repeats), unlisted

    def _line_breaks(
        self, lines: Lines, settled: pl.Series, unheld: pl.DataFrame
    ) -> list[pl.DataFrame]:
        """Breaks of extract rows by themselves."""
        rejected, double, nameless = (
            (settled == status).fill_null(value=False).arg_true()
            for status in (Status.REJECTED, Status.DUPLICATE, Status.UNKNOWN)
        )
        return [
            self._rejected(lines, rejected),
            line_breaks(self.table, lines, double, code="DUPLICATE", side="E"),
            line_breaks(self.table, lines, nameless, code="KEY_MISSING", side="E"),
            *(
                self._unheld(lines, str(name), of["row"])
                for (name,), of in unheld.group_by("field", maintain_order=True)
            ),
        ]

    def _unheld(self, lines: Lines, name: str, rows: pl.Series) -> pl.DataFrame:
        """Breaks of delivered amounts that no exact column holds, with what the target has."""
        about = lines[rows]
        found = [
            pl.coalesce(beyond_texts(about, name + side), canonical_texts(about[name + side]))
            for side in (EXPECTED, FOUND)
        ]
        both = about.select(rows.alias("row"), found[0].alias("expected"), found[1].alias("found"))
        return line_breaks(self.table, lines, both, code="PRECISION", side="E", field=name)

    def _rejected(self, lines: Lines, rows: pl.Series) -> pl.DataFrame:
        """Breaks of rows in error, with unreadable amounts quoted as delivered."""
        findings = pl.DataFrame({"row": rows})
        if names := unreadable_of(self.extract, self.table.amounts):
            notes = (
                pl.format(f"{name} is not readable: {{}}", name + UNREADABLE) for name in names
            )
            note = pl.concat_str(notes, separator="; ", ignore_nulls=True)
            findings = self.extract[rows].select(rows.alias("row"), note.alias("note"))
        return line_breaks(self.table, lines, findings, code="REJECTED", side="E")

    def _difference_breaks(
        self, lines: Lines, differing: pl.DataFrame, sent: pl.DataFrame | None
    ) -> list[pl.DataFrame]:
        echoes, of_service = pl.DataFrame(schema=ECHO_SCHEMA), []
        if sent is not None and self.answers is not None:
            of_service = service_breaks(self.table, lines, sent)
            echoes = echoed(self.table, self.extract, sent, self.answers)
        # The answer comes before the database: if it differs already, the sides diverged there.
        at_answer = differing.join(echoes, on=["row", "field"], how="semi")
        at_answer = at_answer.select("row", "field", at=pl.lit("A"))
        offsets = (pl.col("code") == "OFFSET") & (self.rules.offset is Offset.TOLD)
        found = (
            differing.filter(pl.col("tolerance").is_null() | offsets)
            .drop("currency", "tenant")
            .join(at_answer, on=["row", "field"], how="left", maintain_order="left")
            .with_columns(
                side=pl.coalesce("at", pl.lit(self.side)),
                note=apart(pl.col("seconds")).fill_null(""),
            )
        )
        return [
            line_breaks(self.table, lines, found),
            line_breaks(self.table, lines, echoes, code="ECHO", side="A"),
            *of_service,
        ]

    def _second_keys(self, lines: Lines, pairs: Pairs) -> pl.DataFrame:
        """Breaks of second keys: in the target, where all records meet, else in the extract."""
        if self.table.name not in SECOND_KEYS:
            return no_breaks()
        if self.found.is_empty() and self.near is None:
            live = lines.frame["status"].is_in([Status.MISSING_IN_TARGET, Status.PENDING])
            rows = live.arg_true()
            return second_key_breaks(self.table, lines, self.extract[rows], rows, "E")
        numbers = pl.Series([None], dtype=pl.UInt32).new_from_index(0, self.found.height)
        paired = pairs.partner.is_not_null().arg_true()
        numbers = numbers.scatter(pairs.partner.drop_nulls(), paired.cast(pl.UInt32))
        order = pl.Series(range(pairs.unmatched.len()), dtype=pl.UInt32) + self.extract.height
        numbers = numbers.scatter(pairs.unmatched, order)
        included = lines.frame["status"].gather(numbers) != Status.EXCLUDED
        some, of = self.found.filter(included), numbers.filter(included)
        if self.near is not None:
            # Records around the scope have no line, and get no break.
            some = pl.concat([some, self.near], how="diagonal")
            of = of.extend_constant(None, self.near.height)
        return second_key_breaks(self.table, lines, some, of, self.side)


def _concatenated(*parts: Lines) -> Lines:
    """Concatenate lines; the target of the last part must have the records of all."""
    frames = [part.frame for part in parts]
    return Lines(pl.concat(frames, rechunk=False, how="diagonal"), parts[-1].target)


def _status(status: Status) -> pl.Expr:
    return pl.lit(status.value, STATUS)
