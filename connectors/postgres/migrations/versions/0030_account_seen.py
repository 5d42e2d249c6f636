"""an account is changed as it was read, or not at all.

Revision 0030, after 0029.
"""

from alembic import op

revision = "0030"
down_revision = "0029"
branch_labels = None
depends_on = None
derived = "33f0f9c867cdc2f68144a10abd66b2c5804a351bf5e25931aafb2153fa6c43f6"


def upgrade() -> None:
    """The functions that are other ones are made anew behind every upgrade."""
    op.execute(
        "DROP FUNCTION IF EXISTS recon.keep_account(text, text, text, text, text, boolean, text)"
    )
