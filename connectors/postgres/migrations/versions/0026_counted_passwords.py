"""a wrong password is counted where somebody changes their own.

Revision 0026, after 0025.
"""

revision = "0026"
down_revision = "0025"
branch_labels = None
depends_on = None
derived = "ed5152a0f34d5c35253b787aa478ce418b9c743202c053405d18b884f16424e4"


def upgrade() -> None:
    """The functions alone are other ones, and they are made anew behind every upgrade."""
