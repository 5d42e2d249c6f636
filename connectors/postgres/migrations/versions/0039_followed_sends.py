"""a send whose state is what another row came to says so.

Revision 0039, after 0038.

Of those of before nobody knows: each keeps what it came to, until somebody decides otherwise.
"""

import sqlalchemy as sa
from alembic import op

revision = "0039"
down_revision = "0038"
branch_labels = None
depends_on = None
derived = "1971435b4a54cf2b563a9da7ab60a547dcf0fafed4ff95189e19ae044ad8f173"


def upgrade() -> None:
    """One column, which is empty in rows of before."""
    op.add_column("send", sa.Column("follows", sa.BOOLEAN(), nullable=True), schema="recon")
