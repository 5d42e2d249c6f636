"""What a scope is held against at the service: the newest complete listing, as far as it counts.

A listing of the service that is set is evidence for every scope, whatever batch it became, and for
what was sent before the service was asked for it. What was sent later may be missing in it for that
reason alone, so a kind with such records is not compared with a listing at all; the run says so and
is incomplete.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import polars as pl
import psycopg

from connectors.postgres.batches.ledger import Extract
from connectors.postgres.runs.listings import brought_elsewhere, last_sent, newest_listings
from flows.steps.frames.statuses import in_state
from flows.steps.match.pairing import key_frame
from flows.steps.reconcile.batches import BATCH, own_rows
from schemas.derived.views import ENDS
from schemas.field import Table
from schemas.operations import OPERATIONS
from schemas.tables import INSERT_BATCH_DATA

PULLED = {one.response: one.path.strip("/") for one in OPERATIONS if one.returns_list}
"""The record kinds that the service lists, and their names for `recon pull`."""


@dataclass(frozen=True, slots=True)
class Counting:
    extracts: tuple[Extract, ...]
    older: frozenset[str]
    """Record kinds whose newest listing is older than what was sent, and is not used."""
    spoiled: frozenset[str]
    """Record kinds whose newest listing has rows that were rejected, and is not used."""
    zones: Mapping[str, str]
    """Time zone of the server by record kind."""


def counting_listings(
    connection: psycopg.Connection,
    extracts: Sequence[Extract],
    service: str | None,
    *,
    narrow: bool,
) -> Counting:
    """The listings that the extracts of a scope are held against, of the service that is set.

    A scope that is `narrow`, of some batches or feeds, speaks of no kind that it did not bring.
    """
    newest = newest_listings(connection, service)
    if narrow:
        brought = {extract.record for extract in extracts}
        newest = {record: one for record, one in newest.items() if record in brought}
    sent = last_sent(connection, [extract.id for extract in extracts])
    older = {
        record for record, one in newest.items() if record in sent and one.asked_at <= sent[record]
    }
    spoiled = {record for record, one in newest.items() if one.spoiled}
    used = newest.keys() - older - spoiled
    return Counting(
        tuple(newest[record].extract for record in PULLED if record in used),
        frozenset(older),
        frozenset(spoiled),
        {record: one.zone for record, one in newest.items()},
    )


def of_scope(
    connection: psycopg.Connection,
    table: Table,
    listed: pl.DataFrame,
    sides: Sequence[pl.DataFrame],
    batches: Sequence[int],
    zone: str,
) -> pl.DataFrame:
    """The rows of a listing that a narrow scope speaks of; `sides` are its own records.

    The service lists what others brought as well. Of insert-batch data those are the rows with a
    BatchId of the scope; of other kinds, which have no key, those with a content of the scope. What
    was taken back is no more of it: the report of everything says that it is listed still.
    """
    sides = [side.filter(~in_state(ENDS)) if "state" in side.columns else side for side in sides]
    if table is not INSERT_BATCH_DATA:
        keys = pl.concat([key_frame(table, side, wire=zone) for side in sides])
        rows = key_frame(table, listed, wire=zone).with_row_index("at")
        mine = rows.join(keys, on=keys.columns, how="semi", nulls_equal=True)["at"]
        return listed.filter(pl.Series(range(listed.height), dtype=pl.UInt32).is_in(mine.implode()))
    (sent,) = sides
    listed = listed.join(
        sent.select(BATCH).unique(), on=BATCH, how="semi", nulls_equal=True, maintain_order="left"
    )
    numbers = sent[BATCH].drop_nulls().unique().to_list()
    return own_rows(sent, listed, brought_elsewhere(connection, numbers, batches))
