"""kept content: the hashes of its pieces, and when housekeeping removed it.

Revision 0006, after 0005.
"""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


# Housekeeping of earlier versions only counted what it removed. What it may have removed is marked
# so; where the file is there all the same, the mark says nothing.
_CLEARED = """
    UPDATE recon.extract x SET cleared_at = h.at
    FROM recon.batch b, (
        SELECT max(at) AS at FROM recon.event WHERE what = 'housekeeping'
        AND (detail::json -> 'archived contents' ->> 'number')::bigint > 0
    ) h
    WHERE b.id = x.batch_id AND b.ended_at < h.at - interval '1 day'"""


def upgrade() -> None:
    op.add_column("extract", sa.Column("pieces", sa.Text()), schema="recon")
    op.add_column("extract", sa.Column("cleared_at", sa.TIMESTAMP(timezone=True)), schema="recon")
    op.execute(_CLEARED)


def downgrade() -> None:
    op.drop_column("extract", "cleared_at", schema="recon")
    op.drop_column("extract", "pieces", schema="recon")
