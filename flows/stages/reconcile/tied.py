"""Side E compared with its receipts: the rows read are those taken in, to the last digit.

Receipts say what each extract added up to when it was read, what was applied of it, and the hash
of its rows. Rows and outcomes that were deleted, added or altered since, and receipts, extracts and
batches that are gone, are reported in one line each, with the extract and the difference.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal

import polars as pl
import psycopg

from connectors.postgres.batches.digests import (
    Digests,
    changed_receipts,
    differing,
    kept_digests,
    recorded,
    row_digests,
)
from connectors.postgres.batches.ledger import ENDED, TAKEN_BACK, Batch, Extract
from flows.steps.frames.statuses import number
from flows.steps.reconcile.sums import totals_by
from flows.steps.totals import Totals, add, in_currency
from schemas.amounts import spelled
from schemas.counting import agree, quantity
from schemas.derived.sql_names import IDENTITY, key_columns
from schemas.derived.views import APPLIED
from schemas.field import Table
from schemas.tables import EXTRACTS

Found = dict[tuple[int, str], tuple[Totals, dict[str, int]]]
"""By extract and record kind: the totals of its rows, and how many ended in each of APPLIED."""


def found_in(table: Table, rows: pl.DataFrame) -> Found:
    """The totals of rows that were read for side E, by extract."""
    by = [pl.col("extract_id"), number(table.currency, "currency")]
    sums: dict[int, list[Totals]] = {}
    for (extract, _), totals in totals_by(table, rows.lazy(), by).items():
        sums.setdefault(extract, []).append(totals)
    states: dict[int, dict[str, int]] = {}
    ends = rows[["extract_id", "state"]].group_by("extract_id", "state").len()
    for extract, state, count in ends.iter_rows():
        states.setdefault(extract, {})[str(state)] = count
    return {(one, table.name): (add(sums[one]), states.get(one, {})) for one in sums}


def add_found(found: Found, more: Found) -> None:
    """Add the totals of further rows."""
    for of, (totals, states) in more.items():
        before, counts = found.get(of, (Totals(), {}))
        both = {name: counts.get(name, 0) + states.get(name, 0) for name in {**counts, **states}}
        found[of] = before + totals, both


def untied(
    connection: psycopg.Connection,
    tables: Mapping[str, Table],
    batches: Sequence[Batch],
    extracts: Sequence[Extract],
    found: Found,
    currencies: Mapping[str, str],
) -> Iterator[str]:
    """Where side E does not tie, in the reader's words; `extracts` include refused ones.

    `currencies` are the names of currencies.
    """
    yield from _lost(connection)
    names = {one.id: f"{one.name} of batch {one.batch_id}" for one in extracts}
    counted = {one.id for one in extracts if one.refused is None}
    ended = {one.id for one in batches if one.state in ENDED and one.state not in TAKEN_BACK}
    applied = {one.id for one in extracts if one.batch_id in ended}
    read, counts = _receipts(connection, [one.id for one in batches])
    for extract, record in sorted({*read, *found}):
        totals, states = found.get((extract, record), (Totals(), {}))
        expected = read.get((extract, record), Totals())
        if extract not in counted:
            # For an extract that is gone, facts from receipts alone were reported above.
            if extract in names or totals.rows:
                yield _not_counted(names.get(extract), extract, totals.rows or expected.rows)
            continue
        if record not in tables:
            continue
        table = tables[record]
        differences = list(_differences(table, expected, totals, currencies))
        then = counts.get((extract, record), {})
        if extract in applied:
            differences += [
                f"{quantity(states.get(state, 0), 'row')} {state}, and its receipts say "
                f"{then.get(state, 0)}"
                for state in APPLIED
                if states.get(state, 0) != then.get(state, 0)
            ]
            if states.get("pending"):
                differences.append(
                    f"{quantity(states['pending'], 'row')} of which no receipt says the end"
                )
        if differences:
            yield (
                f"{names[extract]}, {table.title.lower()}: what is kept of it is not what was "
                f"taken in: {'; '.join(differences)}"
            )


def _not_counted(name: str | None, extract: int, rows: int) -> str:
    """The line for a file taken out by somebody: a refusal would have taken its rows back."""
    left = f"{quantity(rows, 'row')} of it {agree(rows, 'is', 'are')} there"
    if name is None:
        return f"extract {extract} is gone, and {left}"
    return f"{name} counts as refused, and {left}: a file that was refused has none"


def staged_digests(
    connection: psycopg.Connection, records: Iterable[str], batches: Sequence[int]
) -> Digests:
    """The hashes of staged rows, for some batches and record kinds."""
    found: Digests = {}
    for record in records:
        found |= row_digests(connection, EXTRACTS[record], batches)
    return found


def altered(
    connection: psycopg.Connection,
    now: Digests,
    batches: Sequence[int],
    extracts: Sequence[Extract],
) -> Iterator[tuple[str, frozenset[int]]]:
    """Where staged rows are not those that were hashed, and the extracts they belong to.

    Listings are included. `now` are the `staged_digests` of the batches. Rows that an earlier
    version took in have no digest, and are skipped here.
    """
    names = {one.id: f"{one.name} of batch {one.batch_id}" for one in extracts}
    recorded_digests = recorded(connection, batches)
    hashed = {one.id for one in extracts if recorded_digests[one.batch_id] is not None}
    for (extract, record), (before, after) in differing(kept_digests(connection, batches), now):
        if extract in hashed:
            kept = f"{quantity(after.rows, 'row')} that {agree(after.rows, 'is', 'are')} kept"
            text = (
                f"{names[extract]}, {EXTRACTS[record].title.lower()}: the {kept} "
                f"{agree(after.rows, 'does', 'do')} not hash to what the "
                f"{quantity(before.rows, 'staged row')} did: a value, text, place or reason of "
                "them was changed"
            )
            yield text, frozenset({extract})
    for batch in changed_receipts(connection, recorded_digests):
        text = (
            f"batch {batch}: the receipts with the hashes of its staged rows are not those the "
            "audit trail tells of"
        )
        yield text, frozenset(one.id for one in extracts if one.batch_id == batch)


def _differences(
    table: Table, expected: Totals, totals: Totals, currencies: Mapping[str, str]
) -> Iterator[str]:
    if totals.rows != expected.rows:
        were = agree(expected.rows, "was", "were")
        yield (
            f"{quantity(totals.rows, 'row')}, and {expected.rows} {were} read "
            f"({totals.rows - expected.rows:+})"
        )
    if key_columns(table) != (IDENTITY,) and totals.keys != expected.keys:
        yield f"a hash total of keys of {totals.keys}, and it was {expected.keys}"
    for currency in sorted({*totals.amounts, *expected.amounts}):
        for name in table.amounts:
            now, then = (
                of.amounts.get(currency, {}).get(name, Decimal(0)) for of in (totals, expected)
            )
            if now != then:
                where = in_currency(currency, currencies.get(currency))
                yield f"{name} of {spelled(now)} in {where}, and it was {spelled(then)}"


def _receipts(
    connection: psycopg.Connection, batches: list[int]
) -> tuple[dict[tuple[int, str], Totals], dict[tuple[int, str], dict[str, int]]]:
    """What receipts say was read of each extract, and what was applied of it by state."""
    read: dict[tuple[int, str], Totals] = {}
    counts: dict[tuple[int, str], dict[str, int]] = {}
    rows = connection.execute(
        "SELECT extract_id, stage, counts, totals FROM receipt "
        "WHERE batch_id = ANY(%s) AND (stage = 'stage' OR stage LIKE 'apply %%')",
        [batches],
    )
    for extract, stage, counted, totals in rows:
        if stage == "stage":
            for record, by_state in json.loads(totals).items():
                shapes = [Totals.from_json(shape) for shape in by_state.values()]
                read[extract, record] = add([read.get((extract, record), Totals()), *shapes])
        else:
            mine = counts.setdefault((extract, stage.removeprefix("apply ")), {})
            for state, count in json.loads(counted).items():
                mine[state] = mine.get(state, 0) + count
    return read, counts


def _lost(connection: psycopg.Connection) -> Iterator[str]:
    """Batches and extracts that receipts or the audit trail mention, but that do not exist."""
    gone = connection.execute(
        "SELECT DISTINCT batch_id FROM (SELECT batch_id FROM event UNION SELECT batch_id FROM "
        "receipt UNION SELECT batch_id FROM extract) e WHERE batch_id IS NOT NULL "
        "AND NOT EXISTS (SELECT FROM batch b WHERE b.id = e.batch_id) ORDER BY 1"
    ).fetchall()
    for (batch,) in gone:
        yield f"batch {batch} is gone, and the ledger tells of it"
    for extract, batch in connection.execute(
        "SELECT DISTINCT extract_id, batch_id FROM receipt r WHERE NOT EXISTS "
        "(SELECT FROM extract e WHERE e.id = r.extract_id) ORDER BY 1"
    ).fetchall():
        yield f"extract {extract} of batch {batch} is gone, and its receipts tell of it"
