"""what is asked by name.

Revision 0051, after 0050.
"""

import sqlalchemy as sa
from alembic import op

revision = "0051"
down_revision = "0050"
branch_labels = None
depends_on = None
derived = "d2847f3b8ba5d111642880c15ec38e11df5c3858adbd86c18ea8bf2b5dfb6225"


def upgrade() -> None:
    op.create_index(
        "batch_listings",
        "batch",
        ["id"],
        schema="recon",
        postgresql_where=sa.text("feed = 'service-listing'"),
    )
    op.create_index(
        "event_what",
        "event",
        ["what"],
        schema="recon",
        postgresql_using="hash",
        postgresql_where=sa.text(
            "what NOT IN ('batch received', 'batch staged', 'batch checked', 'batch merged', "
            "'batch complete', 'report written', 'run began')"
        ),
    )
