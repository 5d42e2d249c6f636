"""breaks of one record are found by the hash of its key.

Revision 0034, after 0033.
"""

import sqlalchemy as sa
from alembic import op

revision = "0034"
down_revision = "0033"
branch_labels = None
depends_on = None
derived = "295a93906543344981a1c7ac1410d4e6a5a5776b111d1aa41041719e1bf2cf4b"


def upgrade() -> None:
    # Step 0021 made one of the keys themselves, and long ones kept it from being made.
    op.drop_index("break_state_record", table_name="break_state", schema="recon", if_exists=True)
    op.create_index(
        "break_state_record",
        "break_state",
        ["reconciliation_id", sa.text("hashtextextended(key, 0)")],
        schema="recon",
    )
