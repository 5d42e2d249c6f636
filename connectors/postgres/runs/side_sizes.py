"""Which record kinds exist, how large their sides are, and samples of their numbers.

All of this is asked before any side is read.
"""

from collections.abc import Collection

import polars as pl
import psycopg

from connectors.postgres.query import one_value
from connectors.settings import MIB
from schemas.derived.sql_names import SCHEMA, TARGET_NAMES, listed, staged_name
from schemas.derived.views import quoted
from schemas.field import Table
from schemas.tables import EXTRACTS

_SAMPLED = 8 * MIB
"""Bytes of a table on disk to sample: some 40,000 payments."""


def kinds_there(
    connection: psycopg.Connection, tenants: Collection[int], others: Collection[str]
) -> set[str]:
    """The record kinds other than `others` that the target has records of, from any batch.

    With `tenants`, only kinds of which a record names one of these.
    """
    known = connection.execute(
        f"SELECT relname FROM pg_class WHERE relnamespace = '{SCHEMA}'::regnamespace "
        f"AND relname IN ({listed(TARGET_NAMES)})"
    ).fetchall()
    asked = ["SELECT '' WHERE false"]
    for name in {name for (name,) in known}.difference(others):
        tenant = EXTRACTS[name].tenant
        if not tenants or tenant is not None:
            theirs = f" WHERE {quoted(tenant)} = ANY(%(tenants)s)" if tenants and tenant else ""
            asked.append(f"SELECT '{name}' WHERE EXISTS (SELECT FROM {SCHEMA}.{name}{theirs})")
    found = connection.execute(" UNION ALL ".join(asked), {"tenants": list(tenants)}).fetchall()
    return {name for (name,) in found}


def sampled_numbers(connection: psycopg.Connection, table: Table, column: str) -> pl.Series:
    """A sample of the numbers in a column, from both staged rows and target.

    Small tables are read completely. The server samples pages, always the same ones.
    """
    relations = [f"{SCHEMA}.{staged_name(table)}", f"{SCHEMA}.{table.name}"]
    most = max(1, *(_bytes_of(connection, relation) for relation in relations))
    share = min(100.0, 100 * _SAMPLED / most)
    numbers: list[pl.Series] = []
    for relation in relations:
        rows = connection.execute(
            f"SELECT {quoted(column)} FROM {relation} TABLESAMPLE SYSTEM ({share}) REPEATABLE (1) "
            f"WHERE {quoted(column)} IS NOT NULL"
        )
        numbers.append(pl.Series([number for (number,) in rows], dtype=pl.Int64()))
    return pl.concat(numbers)


def bytes_of_sides(connection: psycopg.Connection, table: Table) -> int:
    """Estimated bytes of memory for the larger side of a record kind.

    Staged rows take twice as much on disk, since their text is stored beside the values.
    """
    staged = _bytes_of(connection, f"{SCHEMA}.{staged_name(table)}")
    return max(staged // 2, _bytes_of(connection, f"{SCHEMA}.{table.name}"))


def _bytes_of(connection: psycopg.Connection, relation: str) -> int:
    return int(one_value(connection.execute("SELECT pg_table_size(%s::regclass)", [relation])))
