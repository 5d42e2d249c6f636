"""a send says what its attempts came to, and whose word its state is.

Revision 0035, after 0034.

What an earlier version sent, or somebody decided then, has neither: its answers are hashed in the
audit trail as they are.
"""

import sqlalchemy as sa
from alembic import op

revision = "0035"
down_revision = "0034"
branch_labels = None
depends_on = None
derived = "98751f918c1dc92958af5cdd8ab0d3d14494fe5470e8571a5fe5cfff19cd8953"


def upgrade() -> None:
    """Two columns; none has a value in rows of before."""
    op.add_column("send", sa.Column("carried_out", sa.TEXT(), nullable=True), schema="recon")
    op.add_column("send", sa.Column("decision", sa.TEXT(), nullable=True), schema="recon")
