"""doubtful sends: whether POSTs are held for an operation, and what a row was sent under.

Revision 0009, after 0008.
"""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("push_lane", sa.Column("held", sa.BOOLEAN(), nullable=True), schema="recon")
    op.add_column("send", sa.Column("own_key", sa.BOOLEAN(), nullable=True), schema="recon")


def downgrade() -> None:
    op.drop_column("send", "own_key", schema="recon")
    op.drop_column("push_lane", "held", schema="recon")
