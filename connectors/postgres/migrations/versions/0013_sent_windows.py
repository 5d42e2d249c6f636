"""sent windows: how many windows of POSTs a lane has claimed, to hold against the home's count.

Revision 0013, after 0012.
"""

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("push_lane", sa.Column("windows", sa.Integer(), nullable=True), schema="recon")


def downgrade() -> None:
    op.drop_column("push_lane", "windows", schema="recon")
