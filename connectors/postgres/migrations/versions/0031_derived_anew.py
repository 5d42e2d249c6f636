"""what databases at an earlier form of 0030 have is made anew, and an account is kept in one way.

Revision 0031, after 0030.
"""

from alembic import op

revision = "0031"
down_revision = "0030"
branch_labels = None
depends_on = None
derived = "8655b1852f80a26b130113c894bc866f460dcce2d3518649d15695d8660dc184"


def upgrade() -> None:
    """The functions that are other ones are made anew behind every upgrade."""
    op.execute(
        "DROP FUNCTION IF EXISTS recon.keep_account(text, text, text, text, text, boolean, text)"
    )
