"""Whether the schema is complete: one restored in part looks complete until it is used.

`pg_restore` creates tables, views and functions first, then fills the tables, and creates keys,
indexes and triggers last. A database whose restore was cut off before that enforces no rule.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence

import psycopg

from connectors.errors import DatabaseUnusable
from connectors.postgres.query import one_value
from schemas.counting import agree, first_of
from schemas.derived.sql_names import SCHEMA, TARGET_NAMES, table_columns
from schemas.derived.views import VIEWS
from schemas.guards.trail_rules import TRIGGERS
from schemas.ledger import LEDGER

MISSING_SHOWN = 5
_RULES = "\n".join(TRIGGERS)
FUNCTIONS = {*re.findall(rf"CREATE OR REPLACE FUNCTION {SCHEMA}\.(\w+)", _RULES)}
_TRIGGER = re.compile(r"CREATE (?:OR REPLACE |CONSTRAINT )TRIGGER (\w+)")
TRIGGER_NAMES = {*_TRIGGER.findall(_RULES)}
_FUNCTION = re.compile(
    rf"CREATE OR REPLACE FUNCTION {SCHEMA}\.(\w+)(\(.*?)\$\$(.*)\$\$\s*", re.DOTALL
)
KEYED = {*(name for name, table in LEDGER.items() if table.key), *TARGET_NAMES}
"""Tables with a primary key."""
SWITCHED_OFF = f"""(SELECT array_agg((SELECT c.relname || '.' || t.tgname FROM pg_class c
    WHERE c.oid = t.tgrelid AND c.relnamespace = to_regnamespace('{SCHEMA}')))
    FROM pg_trigger t WHERE t.tgenabled NOT IN ('O', 'A'))"""
"""SQL for the triggers that are switched off, each after its table; null for one of another schema.

Every connection runs it: there is hardly ever such a trigger whose table must be looked up.
"""
_THERE = f"""SELECT c.relname::text, array_agg(a.attname::text)
    FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
    WHERE c.relnamespace = to_regnamespace('{SCHEMA}') AND a.attnum > 0 AND NOT a.attisdropped
    GROUP BY 1
    UNION ALL SELECT '(functions)', array_agg(proname::text) FROM pg_proc
    WHERE pronamespace = to_regnamespace('{SCHEMA}')
    UNION ALL SELECT '(triggers)', array_agg(t.tgname::text)
    FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid
    WHERE c.relnamespace = to_regnamespace('{SCHEMA}')
    UNION ALL SELECT '(keys)', array_agg(c.relname::text)
    FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid
    WHERE c.relnamespace = to_regnamespace('{SCHEMA}') AND i.indisprimary AND i.indisvalid
    UNION ALL SELECT '(off)', {SWITCHED_OFF}"""
_RESTORE = (
    "It was changed by hand or restored in part: restore it from a backup, or name an empty "
    "database. Nothing was changed."
)


def what_is_there(connection: psycopg.Connection) -> dict[str, Collection[str]]:
    """The columns of each table and view, and the names of functions, triggers and keyed tables.

    "(off)" has the triggers that are switched off, each after its table.
    """
    return {name: names or () for name, names in connection.execute(_THERE).fetchall()}


def refuse_incomplete(there: Mapping[str, Collection[str]]) -> None:
    """Raise DatabaseUnusable for anything removed or not restored, before any row is touched."""
    _refuse_lacking([*_missing(there)])


def _refuse_lacking(missing: Sequence[str]) -> None:
    if missing:
        raise DatabaseUnusable(
            f"The schema {SCHEMA!r} lacks {first_of(missing, MISSING_SHOWN)}. {_RESTORE}"
        )


def _missing(there: Mapping[str, Collection[str]]) -> Iterator[str]:
    for table, columns in table_columns().items():
        yield from (f"{table}.{column}" for column in columns if column not in there.get(table, ()))
    yield from (view for view in VIEWS if view not in there)
    for what, names in (("function", FUNCTIONS), ("trigger", TRIGGER_NAMES), ("key", KEYED)):
        found = {*there[f"({what}s)"]}
        of = "the key of" if what == "key" else f"the {what}"
        yield from (f"{of} {name}" for name in sorted(names - found))


def switched_off(connection: psycopg.Connection) -> Collection[str | None] | None:
    """The triggers that are switched off, as `switched_off_message` takes them."""
    found: Collection[str | None] | None = one_value(connection.execute(f"SELECT {SWITCHED_OFF}"))
    return found


def switched_off_message(found: Collection[str | None] | None) -> str | None:
    """What to do about triggers that are switched off; None if none of ours is."""
    places = sorted(one.rpartition(".") for one in found or () if one is not None)
    statements = " ".join(
        f"ALTER TABLE {SCHEMA}.{table} ENABLE TRIGGER {name};"
        for table, _, name in places
        if name in TRIGGER_NAMES
    )
    return (
        "triggers are switched off, so that nothing keeps their rules; the owner of the schema "
        f"switches them on with `{statements}`"
        if statements
        else None
    )


def refuse_if_off(found: Collection[str | None] | None) -> None:
    """Raise DatabaseUnusable if a trigger is off, so that no row is written past its rule."""
    if message := switched_off_message(found):
        raise DatabaseUnusable(
            f"In the schema {SCHEMA!r} {message}. After that, `recon audit verify` says whether "
            "anything was changed meanwhile. Nothing was changed."
        )


def altered_rules(connection: psycopg.Connection) -> str | None:
    """Which functions and triggers differ from this version's, and what to do; None if none do.

    Functions compare the ledger with events, and one of them says who acts.
    """
    there = {
        ("function", *one)
        for one in connection.execute(
            "SELECT proname::text, prosrc, prosecdef, coalesce(cardinality(proconfig), 0) "
            f"FROM pg_proc WHERE pronamespace = to_regnamespace('{SCHEMA}')"
        ).fetchall()
    } | {
        ("trigger", name, _words(definition))
        for name, definition in connection.execute(
            "SELECT t.tgname::text, pg_get_triggerdef(t.oid) FROM pg_trigger t "
            "JOIN pg_class c ON c.oid = t.tgrelid "
            f"WHERE c.relnamespace = to_regnamespace('{SCHEMA}') AND NOT t.tgisinternal"
        ).fetchall()
    }
    altered = [f"the {what} {name}" for what, name, *_ in sorted({*rules()} - there)]
    if not altered:
        return None
    return (
        f"{first_of(altered, MISSING_SHOWN)} {agree(len(altered), 'is', 'are')} not what this "
        "version has: somebody altered the schema, and what was kept or told by it since then "
        f"proves nothing. The owner puts all of it back with `COMMENT ON TABLE {SCHEMA}."
        "alembic_version IS NULL`, and then `recon status`"
    )


def rules() -> Iterator[tuple[object, ...]]:
    """Each function with its text and whether it runs as its owner; each trigger with its words."""
    for statement in TRIGGERS:
        if made := _FUNCTION.fullmatch(statement.strip()):
            name, head, body = made.groups()
            settings = len(re.findall(r"\bSET \w+ =", head))
            yield "function", name, body, "SECURITY DEFINER" in head, settings
        elif made := _TRIGGER.match(statement):
            yield "trigger", made[1], _words(statement)


def _words(definition: str) -> str:
    """The sorted words of a trigger's definition, which PostgreSQL shows in its own order and form.

    It omits the name of a schema in the session's search path.
    """
    words = re.sub(rf" OR REPLACE|::\w+|\b{SCHEMA}\.", "", definition).casefold()
    return " ".join(sorted(re.findall(r"[\w']+", words)))


def refuse_remains(connection: psycopg.Connection, current: str | None) -> None:
    """Keep a schema that was restored in part from being completed without its rows.

    `current` is its revision; without one, nothing else of ours may be there. A schema with a
    trigger switched off is refused as well.
    """
    there = what_is_there(connection)
    ours = {*table_columns()} & there.keys()
    if current is None:
        if ours or FUNCTIONS.intersection(there["(functions)"]):
            raise DatabaseUnusable(f"The schema {SCHEMA!r} has no revision. {_RESTORE}")
    else:
        lost = [f"the key of {name}" for name in sorted((ours & KEYED).difference(there["(keys)"]))]
        _refuse_lacking(lost if there["(triggers)"] else [*lost, "its triggers"])
    refuse_if_off(there["(off)"])
