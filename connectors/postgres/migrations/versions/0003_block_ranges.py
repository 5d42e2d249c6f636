"""block ranges: summarised once, when a batch ends.

Revision 0003, after 0002.
"""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

_INDEXES = """
    SELECT c.relname FROM pg_index i
    JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_am a ON a.oid = c.relam
    WHERE a.amname = 'brin' AND c.relnamespace = 'recon'::regnamespace ORDER BY 1"""


def upgrade() -> None:
    _summarised_by_server("off")


def downgrade() -> None:
    _summarised_by_server("on")


def _summarised_by_server(setting: str) -> None:
    for (name,) in op.get_bind().execute(sa.text(_INDEXES)).all():
        op.execute(f'ALTER INDEX recon."{name}" SET (autosummarize = {setting})')
