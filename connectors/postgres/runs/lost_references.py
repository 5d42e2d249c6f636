"""References of records that lead nowhere in the database, or to a record of another tenant."""

import polars as pl
import psycopg

from connectors.postgres.bulk.copy_out import Columns, copied
from schemas.derived.sql_names import SCHEMA
from schemas.derived.views import quoted
from schemas.field import Reference, Table
from schemas.frame_types import Dtype
from schemas.tables import TABLES

LOST: dict[str, Dtype] = {
    "field": pl.String(),
    "of": pl.String(),
    "value": pl.Int64(),
    "tenant": pl.Int32(),
    "elsewhere": pl.Boolean(),
}
"""Columns: the field that refers, the title of its target, the value, the tenant whose record it
would have to be (null for any), and whether another tenant has one."""


def lost_references(connection: psycopg.Connection, table: Table) -> pl.DataFrame:
    """The references of a record kind that lead nowhere, each value once; columns as LOST."""
    lost = [_lost(connection, table, reference) for reference in table.references]
    return pl.concat([pl.DataFrame(schema=LOST), *lost])


def _lost(connection: psycopg.Connection, table: Table, reference: Reference) -> pl.DataFrame:
    target = TABLES[reference.table]
    bound = reference.same_tenant and table.tenant is not None
    field, column = quoted(reference.field), quoted(reference.column)
    known = f"SELECT FROM {SCHEMA}.{target.name} k WHERE k.{column} = "
    tenant, same = "NULL::integer", ""
    if bound:
        tenant = f"t.{quoted('TenantsId')}"
        same = f"AND k.{quoted('TenantsId')} = {tenant}" if target.tenant else "AND FALSE"
    source = f"""(SELECT DISTINCT t.{field} AS value, {tenant} AS tenant
        FROM {SCHEMA}.{table.name} t
        WHERE t.{field} IS NOT NULL AND NOT EXISTS ({known} t.{field} {same})) l"""
    columns: Columns = {
        "value": ("l.value", LOST["value"]),
        "tenant": ("l.tenant", LOST["tenant"]),
        "elsewhere": (f"(EXISTS ({known} l.value))::text", LOST["elsewhere"]),
    }
    about = pl.lit(reference.field).alias("field"), pl.lit(target.title).alias("of")
    return copied(connection, columns, source).select(*about, *columns)
