"""what is asked for one batch has an index.

Revision 0033, after 0032.
"""

import sqlalchemy as sa
from alembic import op

revision = "0033"
down_revision = "0032"
branch_labels = None
depends_on = None
derived = "295a93906543344981a1c7ac1410d4e6a5a5776b111d1aa41041719e1bf2cf4b"


def upgrade() -> None:
    """Four indexes; on a large ledger they take seconds."""
    op.create_index(
        "batch_corrects",
        "batch",
        ["corrects"],
        unique=False,
        schema="recon",
        postgresql_where=sa.text("corrects IS NOT NULL"),
    )
    op.create_index("event_batch", "event", ["batch_id"], unique=False, schema="recon")
    op.create_index("receipt_batch", "receipt", ["batch_id"], unique=False, schema="recon")
    op.create_index(
        "extract_name", "extract", ["name"], unique=False, schema="recon", postgresql_using="hash"
    )
