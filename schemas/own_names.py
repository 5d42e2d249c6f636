"""Names that no record kind of one's own can have: its tables' names would be invalid or taken.

The list needs no database, so a definition is refused where it is read.
"""

from collections.abc import Iterable

from schemas.ledger import LEDGER
from schemas.own_checks import KeyFault

TEMPORARY = {
    *("used", "met", "missing", "offered", "told_keys"),
    *("present", "repaired", "in_error", "named_repairs", "repair_claims", "sends_reopened"),
    "written_over",
}
"""Names of temporary tables, which PostgreSQL would find first."""
PACKED = "record"
"""The column that says which kind each record of a signed file is; kinds are columns beside it."""
INDEXES = {
    *("before_image_range", "outcome_range", "send_order", "send_twins", "note_batch"),
    *("batch_content", "batch_listings", "batch_corrects", "extract_batch", "extract_name"),
    *("extract_content", "receipt_batch", "event_batch", "event_what", "event_chain_event"),
    *("reconciliation_scope", "break_state_break", "break_state_record"),
    "decision_reconciliation",
}
"""Indexes of our own tables (`schemas.derived.sql`), besides those of their keys."""
OTHERS = {
    *(f"{name}{of}" for name in LEDGER for of in ("", "_pkey")),
    *(f"{name}_{key}_seq" for name, table in LEDGER.items() for key in table.key),
    *("alembic_version", "alembic_version_pkc", "staged_row", "shown_row", "position", "lineage"),
    *(*INDEXES, *TEMPORARY, PACKED),
}
"""Database names that belong to no record kind, and names that stand beside kinds elsewhere."""
_WORDS = """
    all analyse analyze and any array as asc asymmetric authorization binary both case cast check
    collate collation column concurrently constraint create cross current_catalog current_date
    current_role current_schema current_time current_timestamp current_user default deferrable desc
    distinct do else end except false fetch for foreign freeze from full grant group having ilike in
    initially inner intersect into is isnull join lateral leading left like limit localtime
    localtimestamp natural not notnull null offset on only or order outer overlaps placing primary
    references returning right select session_user similar some symmetric system_user table
    tablesample then to trailing true union unique user using variadic verbose when where window
    with"""
WORDS = frozenset(_WORDS.split())
"""Words that PostgreSQL does not accept as a table's name."""


def relations_of(name: str) -> tuple[str, ...]:
    """The database relations of a record kind: its two tables, and their keys and indexes."""
    staged = f"staged_{name}"
    return name, f"{name}_key", staged, f"{staged}_range", f"{staged}_rejected"


class TakenNames:
    """The names in use, and the record kind that uses each."""

    def __init__(self, kinds: Iterable[str]) -> None:
        self._of = dict.fromkeys(OTHERS, "")
        for kind in kinds:
            self.add(kind)

    def add(self, kind: str) -> None:
        """Reserve the name of a kind and of the relations that belong to it."""
        self._of |= dict.fromkeys(relations_of(kind), kind)

    def refuse(self, name: str) -> None:
        """Raise KeyFault if a new kind cannot have this name."""
        if name in WORDS:
            raise KeyFault("name", f"= {name!r} is a word of SQL. Find another one.")
        if name.startswith(("staged_", "pg_")):
            raise KeyFault("name", f"= {name!r} is taken. Find another one.")
        for one in relations_of(name):
            if (of := self._of.get(one)) is not None:
                part = f", a part of {of}" if of not in ("", one) else ""
                there = f": there is a {one} already{part}" if part or one != name else ""
                raise KeyFault("name", f"= {name!r} is taken{there}. Find another one.")
