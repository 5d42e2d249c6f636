"""The service's listings that a scope is compared with: the newest complete ones that count.

A listing of the service that is set is evidence for every scope, whatever batch it became, about
what was sent before the service was asked for it. Records sent later may be missing in it for that
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
    """Record kinds whose newest listing is older than what was sent, and so is not used."""
    spoiled: frozenset[str]
    """Record kinds whose newest listing has rejected rows, and so is not used."""
    zones: Mapping[str, str]
    """Time zone of the server, by record kind."""


def counting_listings(
    connection: psycopg.Connection,
    extracts: Sequence[Extract],
    service: str | None,
    *,
    narrow: bool,
) -> Counting:
    """The listings of the service that the extracts of a scope are compared with.

    A `narrow` scope (of batches or feeds) is not compared for kinds that it did not bring.
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
    """The rows of a listing that concern a narrow scope; `sides` are its own records.

    The service also lists what others brought. The scope's rows of insert-batch data have one of
    its BatchIds; those of other kinds, which have no key, have the content of one of its records.
    What was taken back no longer belongs to it; the report of everything says that it is still
    listed.
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
