"""Staged rows for those who may not see secrets: views with the names of the tables.

A session of such a role searches the schema of these views first (`connectors.postgres.database`),
so that one statement serves roles that load and roles that read. Secret fields are empty; records
with secrets have no text, and only the codes and fields of their errors. An account limited to
tenants finds the rows of batches bound to these.
"""

from collections.abc import Iterable, Iterator

from schemas.derived.sql_names import (
    IDENTITY,
    READER,
    SCHEMA,
    SHOWN_SCHEMA,
    staged_columns,
    staged_name,
)
from schemas.derived.views import bare_errors, quoted
from schemas.field import NUMBERS, TIMES, Kind, Table
from schemas.guards.tenants import SEES_BATCH
from schemas.kinds import stored_names

_TEXTS = ("data", "raw")
_VALUES = (*NUMBERS, Kind.BOOLEAN, *TIMES)
"""Kinds of fields that cannot contain another record."""


def shown_rows(tables: Iterable[Table]) -> Iterator[str]:
    """The statements that create the views of these record kinds again; each may be run again."""
    for table in tables:
        name = staged_name(table)
        yield hidden_again(name)
        yield (
            f"CREATE VIEW {SHOWN_SCHEMA}.{name} WITH (security_barrier) AS "
            f"SELECT {', '.join(_columns(table))} FROM {SCHEMA}.{name} s WHERE {SEES_BATCH}"
        )
        yield f"GRANT SELECT ON {SHOWN_SCHEMA}.{name} TO {READER}"


def hidden_again(staged: str) -> str:
    """The statement that drops the view of such a table, which blocks changes of its columns."""
    return f"DROP VIEW IF EXISTS {SHOWN_SCHEMA}.{staged}"


def _columns(table: Table) -> Iterator[str]:
    secrets = {name for of in table.delivered if of.secret for name in stored_names(of)}
    texts = {of.name for of in table.delivered if of.kind not in _VALUES}
    cells = {IDENTITY, *(name for of in table.delivered for name in stored_names(of))}
    for name in staged_columns(table):
        column, own = f"s.{quoted(name)}", quoted(name)
        if not table.unquotable:
            yield column
        elif name == "error_data":
            yield f"{bare_errors(column)} AS {own}"
        elif name in secrets or name in _TEXTS or (name in texts and table.holds_records):
            yield f"CASE WHEN FALSE THEN {column} END AS {own}"
        elif name in cells:  # In a row in error a secret may have shifted into any cell.
            yield f"CASE WHEN s.error_data IS NULL THEN {column} END AS {own}"
        else:
            yield column
