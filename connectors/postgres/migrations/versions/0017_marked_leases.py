"""marked leases: since when each is held, and what shows that its session is still there.

Revision 0017, after 0016.
"""

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None

OF_BEFORE = "recon.keep_lease(text, text, integer, timestamptz)"


def upgrade() -> None:
    op.add_column(
        "lease", sa.Column("since", sa.TIMESTAMP(timezone=True), nullable=True), schema="recon"
    )
    op.add_column("lease", sa.Column("mark", sa.BigInteger(), nullable=True), schema="recon")
    # The newest functions are put in place behind every upgrade; nobody calls this one any more.
    op.execute(f"DROP FUNCTION IF EXISTS {OF_BEFORE}")
    # Of sessions that are gone; nobody ever looked again for what an import received.
    op.execute(
        "DELETE FROM recon.lease WHERE name LIKE 'receive %' "
        "OR pid NOT IN (SELECT a.pid FROM pg_stat_activity a)"
    )


def downgrade() -> None:
    op.execute(f"DROP FUNCTION IF EXISTS {OF_BEFORE}")
    op.execute("DELETE FROM recon.lease")
    op.drop_column("lease", "mark", schema="recon")
    op.drop_column("lease", "since", schema="recon")
