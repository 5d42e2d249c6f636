"""events of states are held to the states of batches.

Revision 0025, after 0024.
"""

revision = "0025"
down_revision = "0024"
branch_labels = None
depends_on = None
derived = "698667b74d016d71133e8aabe907fbd73fed6dd5d333820e653c69b261d662c6"


def upgrade() -> None:
    """The functions alone are other ones, and they are made anew behind every upgrade."""
