"""leases: until when who holds what, by the server's clock.

Revision 0010, after 0009.
"""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "lease",
        sa.Column("name", sa.TEXT(), nullable=False),
        sa.Column("owner", sa.TEXT(), nullable=False),
        sa.Column("account", sa.TEXT(), nullable=False),
        sa.Column("pid", sa.Integer(), nullable=False),
        sa.Column("started", sa.TIMESTAMP(timezone=True), nullable=False),
        sa.Column("expires_at", sa.TIMESTAMP(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("name"),
        schema="recon",
        comment="Who holds what, and until when unless it is renewed",
    )


def downgrade() -> None:
    op.drop_table("lease", schema="recon")
