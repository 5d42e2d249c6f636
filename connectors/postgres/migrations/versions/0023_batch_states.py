"""guards of the states of batches, mended.

Revision 0023, after 0022.
"""

revision = "0023"
down_revision = "0022"
branch_labels = None
depends_on = None
derived = "3b683f1b2fc0cea728734ca4ff864ef6d34d82f12308a983e23c77dac61d9010"


def upgrade() -> None:
    """The functions alone are other ones, and they are made anew behind every upgrade."""
