"""ceilings: how far an accepted break may grow.

Revision 0005, after 0004.
"""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("decision", sa.Column("up_to", sa.TEXT(), nullable=True), schema="recon")


def downgrade() -> None:
    op.drop_column("decision", "up_to", schema="recon")
