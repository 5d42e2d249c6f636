"""what a send had come to is kept when it is sent again, and secret constants are hashed.

Revision 0038, after 0037.

What was forgotten before is not made up: no send of before has earlier ones. Nor have its secret
constants a salt, so nothing is said of them.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0038"
down_revision = "0037"
branch_labels = None
depends_on = None
derived = "1971435b4a54cf2b563a9da7ab60a547dcf0fafed4ff95189e19ae044ad8f173"


def upgrade() -> None:
    """One table and three columns; none has a value in rows of before."""
    op.create_table(
        "earlier_send",
        sa.Column("batch_id", sa.INTEGER(), nullable=False),
        sa.Column("extract_id", sa.INTEGER(), nullable=False),
        sa.Column("record_number", sa.BIGINT(), nullable=False),
        sa.Column("number", sa.INTEGER(), nullable=False),
        sa.Column("state", sa.TEXT(), nullable=False),
        sa.Column("attempts", sa.INTEGER(), nullable=False),
        sa.Column("status", sa.INTEGER(), nullable=True),
        sa.Column("error_data", sa.TEXT(), nullable=True),
        sa.Column("echo", sa.TEXT(), nullable=True),
        sa.Column("service_id", sa.TEXT(), nullable=True),
        sa.Column("epoch", sa.INTEGER(), nullable=False),
        sa.Column("changed_at", postgresql.TIMESTAMP(timezone=True), nullable=False),
        sa.Column("carried_out", sa.TEXT(), nullable=True),
        sa.Column("decision", sa.TEXT(), nullable=True),
        sa.Column("decision_number", sa.INTEGER(), nullable=True),
        sa.Column("ended_by", sa.TEXT(), nullable=False),
        sa.Column("ended_number", sa.INTEGER(), nullable=True),
        sa.PrimaryKeyConstraint("extract_id", "record_number", "number"),
        schema="recon",
        comment="What a send had come to before somebody let it be sent again, or decided otherwise",
    )
    op.add_column("secret_constant", sa.Column("salt", sa.TEXT(), nullable=True), schema="recon")
    op.add_column("send", sa.Column("decision_number", sa.INTEGER(), nullable=True), schema="recon")
    op.add_column("send", sa.Column("earlier", sa.INTEGER(), nullable=True), schema="recon")
