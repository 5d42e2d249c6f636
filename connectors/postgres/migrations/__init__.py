"""The steps to the tables, and what is not a step: it is made anew behind every upgrade.

Views, functions, triggers and storage parameters follow from the newest tables. A step says which
of them it was written with, so that a change of one is a step too, and reaches every database.
"""

import hashlib

from schemas.derived.sql import SCHEMA, STORAGE
from schemas.derived.views import VIEWS
from schemas.guards.trail_rules import TRIGGERS

DERIVED = (
    *(f"ALTER TABLE {SCHEMA}.{name} SET ({parameters})" for name, parameters in STORAGE.items()),
    *(f"CREATE OR REPLACE VIEW {SCHEMA}.{name} AS {select}" for name, select in VIEWS.items()),
    *TRIGGERS,
)
"""Statements that bring all of it about; repeating them changes nothing."""
DERIVED_HASH = hashlib.sha256("\n".join(DERIVED).encode()).hexdigest()
