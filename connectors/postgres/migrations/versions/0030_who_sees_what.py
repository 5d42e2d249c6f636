"""a proposal ends with the next decision; a login that ended sees nothing; rules are seen by scope.

Revision 0030, after 0029.
"""

revision = "0030"
down_revision = "0029"
branch_labels = None
depends_on = None
derived = "8f2ae9386dfeb4dc143c13b86ae6379cf805c86f0ca6d778262fbb9acb277436"


def upgrade() -> None:
    """The functions alone are other ones, and they are made anew behind every upgrade."""
