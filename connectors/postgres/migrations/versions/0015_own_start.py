"""own start: whoever keeps a lease says when its session began, which its owner may not be shown.

Revision 0015, after 0014.
"""

from alembic import op

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None


def upgrade() -> None:
    # The functions of the newest version are put in place behind every upgrade.
    op.execute("DROP FUNCTION IF EXISTS recon.keep_lease(text, text, integer)")


def downgrade() -> None:
    op.execute("DROP FUNCTION IF EXISTS recon.keep_lease(text, text, integer, timestamptz)")
