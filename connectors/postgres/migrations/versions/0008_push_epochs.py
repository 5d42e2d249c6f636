"""push epochs: which database and which home sent, so that a restored copy is told.

Revision 0008, after 0007.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

# A database that has batches already is taken for the newest copy: nothing in it tells.
_BIRTH = """
    INSERT INTO recon.push_epoch (number, token, home, system, timeline, database_oid, xid, at)
    SELECT 0, '', '', (SELECT system_identifier::text FROM pg_control_system()),
        substr(pg_walfile_name(pg_current_wal_insert_lsn()), 1, 8),
        (SELECT oid FROM pg_database WHERE datname = current_database()),
        pg_current_xact_id()::text::bigint, now()
    WHERE EXISTS (SELECT 1 FROM recon.batch)"""


def upgrade() -> None:
    op.create_table(
        "push_epoch",
        sa.Column("number", sa.BIGINT(), nullable=False),
        sa.Column("token", sa.TEXT(), nullable=False),
        sa.Column("home", sa.TEXT(), nullable=False),
        sa.Column("system", sa.TEXT(), nullable=False),
        sa.Column("timeline", sa.TEXT(), nullable=False),
        sa.Column("database_oid", sa.BIGINT(), nullable=False),
        sa.Column("xid", sa.BIGINT(), nullable=False),
        sa.Column("at", postgresql.TIMESTAMP(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("number"),
        schema="recon",
        comment="One run that was about to send: which database and which home it was",
    )
    op.create_table(
        "push_seal",
        sa.Column("number", sa.BIGINT(), nullable=False),
        sa.Column("inode", sa.TEXT(), nullable=False),
        sa.Column("changed_ns", sa.BIGINT(), nullable=False),
        sa.PrimaryKeyConstraint("number"),
        schema="recon",
        comment="The marker of an epoch was written to its home, and sending may begin",
    )
    op.create_table(
        "push_restore",
        sa.Column("event_id", sa.BIGINT(), nullable=False),
        sa.Column("unsent", sa.TEXT(), nullable=False),
        sa.Column("last_batch", sa.INTEGER(), nullable=False),
        sa.Column("lost", sa.TEXT(), nullable=False),
        sa.Column("at", postgresql.TIMESTAMP(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("event_id"),
        schema="recon",
        comment="Somebody said from where pushes go on after a restore",
    )
    op.execute(_BIRTH)


def downgrade() -> None:
    for name in ("push_restore", "push_seal", "push_epoch"):
        op.drop_table(name, schema="recon")
