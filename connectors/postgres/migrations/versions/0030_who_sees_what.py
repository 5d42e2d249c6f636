"""a login that ended sees nothing; rules are seen by scope; accounts are changed as they were read.

Revision 0030, after 0029.
"""

from alembic import op

revision = "0030"
down_revision = "0029"
branch_labels = None
depends_on = None
derived = "8655b1852f80a26b130113c894bc866f460dcce2d3518649d15695d8660dc184"


def upgrade() -> None:
    """The functions that are other ones are made anew behind every upgrade."""
    op.execute(
        "DROP FUNCTION IF EXISTS recon.keep_account(text, text, text, text, text, boolean, text)"
    )
