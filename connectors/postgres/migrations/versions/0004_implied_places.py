"""implied places: lines and bytes of staged rows only where they do not follow from others.

Revision 0004, after 0003.
"""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

_STAGED = """
    SELECT relname FROM pg_class WHERE relkind = 'r' AND starts_with(relname, 'staged_')
    AND relnamespace = 'recon'::regnamespace ORDER BY 1"""
_IMPLIED = {
    "first_line": "record_number + 1",
    "last_line": "coalesce(first_line, record_number + 1)",
    "byte_end": "byte_start + octet_length(convert_to(data, 'UTF8'))",
}


def upgrade() -> None:
    _alter(*(f"ALTER COLUMN {name} DROP NOT NULL" for name in _IMPLIED))


def downgrade() -> None:
    told = ", ".join(f"{name} = coalesce({name}, {value})" for name, value in _IMPLIED.items())
    for (table,) in op.get_bind().execute(sa.text(_STAGED)).all():
        op.execute(f"UPDATE recon.{table} SET {told} WHERE num_nulls({', '.join(_IMPLIED)}) > 0")
    _alter(*(f"ALTER COLUMN {name} SET NOT NULL" for name in _IMPLIED))


def _alter(*changes: str) -> None:
    for (table,) in op.get_bind().execute(sa.text(_STAGED)).all():
        op.execute(f"ALTER TABLE recon.{table} {', '.join(changes)}")
