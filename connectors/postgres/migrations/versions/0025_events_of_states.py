"""events of states are held to the states of batches.

Revision 0025, after 0024.
"""

revision = "0025"
down_revision = "0024"
branch_labels = None
depends_on = None
derived = "be3bf050c10f8b756cc7e2f3dc1c810f8dd3c9660fe0a9702c78e6f339636c5c"


def upgrade() -> None:
    """The functions alone are other ones, and they are made anew behind every upgrade."""
