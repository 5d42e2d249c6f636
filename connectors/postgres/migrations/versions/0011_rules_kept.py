"""rules kept: the rules and the version a run was made with.

Revision 0011, after 0010.
"""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None


def upgrade() -> None:
    for name in ("rules_text", "version"):
        op.add_column("reconciliation", sa.Column(name, sa.TEXT(), nullable=True), schema="recon")


def downgrade() -> None:
    for name in ("rules_text", "version"):
        op.drop_column("reconciliation", name, schema="recon")
