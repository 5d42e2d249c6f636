"""The steps to the tables, and the derived parts that every upgrade creates again.

Views, functions, triggers and storage parameters follow from the newest tables. A step names the
hash of those it was written with, so that changing one takes a step too and reaches every
database. Steps concern the documented records; record kinds of your own follow after them
(`connectors.postgres.schema.follow_kinds`).
"""

import hashlib

from schemas.derived.sql import STORAGE
from schemas.derived.sql_names import SCHEMA, staged_name
from schemas.derived.views import DOCUMENTED_VIEWS
from schemas.guards.trail_rules import TRIGGERS
from schemas.tables import OWN

_OWN = {staged_name(table) for table in OWN.tables.values()}
DERIVED = (
    *(
        f"ALTER TABLE {SCHEMA}.{name} SET ({parameters})"
        for name, parameters in STORAGE.items()
        if name not in _OWN
    ),
    *(
        f"CREATE OR REPLACE VIEW {SCHEMA}.{name} AS {select}"
        for name, select in DOCUMENTED_VIEWS.items()
    ),
    *TRIGGERS,
)
"""Statements that create all derived parts; repeating them changes nothing."""
DERIVED_HASH = hashlib.sha256("\n".join(DERIVED).encode()).hexdigest()
