"""Three database roles, derived from the tables: `python -m schemas.roles | psql ...` grants them.

recon_loader   receives, stages and checks; writes no target
recon_merger   the same, and applies, pushes and undoes; what a worker connects as
recon_reader   reads results and the ledger; no secret, no row as delivered of a record that has one

They are groups: a user who logs in is made a member of one. The schema belongs to whoever migrates
it, so run it as that user, and again after every upgrade: views are made anew, without grants.
"""

import sys
from collections.abc import Collection, Iterable, Iterator

from schemas.audit import APPEND_ONLY
from schemas.kinds import sql_columns
from schemas.sql import LEDGER_TABLES, SCHEMA, STAGED, TARGETS
from schemas.tables import EXTRACTS
from schemas.views import SHOWN, quoted

LOADER, MERGER, READER = "recon_loader", "recon_merger", "recon_reader"

CONCLUDED = ("reconciliation", "break_state")
"""What a reconciliation adds to the tables that are only ever added to; the rest is the trail of
who did what and why."""
LOADED = ("batch", "extract", "receipt", "outcome", "note")
"""What a loader writes beside the staged rows."""
WITH_ROWS = {"before_image": ("image",), "send": ("echo",)}
"""Columns of the ledger that hold whole records, secrets included."""


def statements() -> Iterator[str]:
    """The statements in their order; each may be run again."""
    for role in (LOADER, MERGER, READER):
        yield (
            f"DO $$ BEGIN CREATE ROLE {role} NOLOGIN; "
            "EXCEPTION WHEN duplicate_object THEN NULL; END $$"
        )
        # What an earlier version granted and this one does not is taken back.
        yield f"REVOKE ALL ON ALL TABLES IN SCHEMA {SCHEMA} FROM {role}"
        yield f"GRANT USAGE ON SCHEMA {SCHEMA} TO {role}"
    yield f"GRANT {LOADER} TO {MERGER}"
    yield f"GRANT SELECT ON ALL TABLES IN SCHEMA {SCHEMA} TO {LOADER}"
    loaded = (*LOADED, *(table.name for table in STAGED.values()))
    yield _write(LOADER, loaded)
    # Without fresh statistics the planner takes a million staged rows for a handful.
    yield (
        "DO $$ BEGIN IF current_setting('server_version_num')::int >= 170000 THEN "
        f"GRANT MAINTAIN ON {_tables(loaded)} TO {LOADER}; END IF; END $$"
    )
    # Nobody but the owner of the schema can change an entry of these.
    trail = [name for name in APPEND_ONLY if name not in CONCLUDED]
    yield f"GRANT INSERT ON {_tables(trail)} TO {LOADER}"
    yield f"GRANT INSERT ON {_tables(CONCLUDED)} TO {MERGER}"
    others = [name for name in LEDGER_TABLES if name not in (*LOADED, *APPEND_ONLY)]
    yield _write(MERGER, (*TARGETS, *others))
    yield f"GRANT SELECT ON {_tables((SHOWN,))} TO {READER}"
    for name, table in (TARGETS | LEDGER_TABLES).items():
        yield _read(name, [column.name for column in table.columns], _hidden(name))
    yield f"GRANT SELECT ON {SCHEMA}.alembic_version TO {READER}"


def _write(role: str, names: Iterable[str]) -> str:
    return f"GRANT INSERT, UPDATE, DELETE ON {_tables(names)} TO {role}"


def _read(name: str, columns: Iterable[str], hidden: Collection[str]) -> str:
    shown = ", ".join(quoted(column) for column in columns if column not in hidden)
    return f"GRANT SELECT {f'({shown}) ' if hidden else ''}ON {SCHEMA}.{name} TO {READER}"


def _hidden(name: str) -> tuple[str, ...]:
    if name in WITH_ROWS:
        return WITH_ROWS[name]
    fields = EXTRACTS[name].delivered if name in EXTRACTS else ()
    return tuple(column for field in fields if field.secret for column in sql_columns(field))


def _tables(names: Iterable[str]) -> str:
    return ", ".join(f"{SCHEMA}.{name}" for name in names)


if __name__ == "__main__":
    sys.stdout.write("".join(f"{statement};\n" for statement in statements()))
