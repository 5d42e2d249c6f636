"""accounts: who wrote an event, by the word of the database; and whose turn it is at the chain.

Revision 0007, after 0006.
"""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("event", sa.Column("account", sa.TEXT(), nullable=True), schema="recon")
    op.create_table(
        "chain_turn",
        sa.Column("event_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.PrimaryKeyConstraint("event_id"),
        schema="recon",
        comment="Whose turn it is to link events: row 0, locked; the others are events that wait",
    )


def downgrade() -> None:
    op.drop_table("chain_turn", schema="recon")
    op.drop_column("event", "account", schema="recon")
