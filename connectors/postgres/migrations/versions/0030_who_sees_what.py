"""a proposal ends with the next decision; a login that ended sees nothing; rules are seen by scope.

Revision 0030, after 0029.
"""

revision = "0030"
down_revision = "0029"
branch_labels = None
depends_on = None
derived = "3897f622d723a3ec25f168e2a30576f83ee4866d52f94fb8269c32ffcda191e6"


def upgrade() -> None:
    """The functions alone are other ones, and they are made anew behind every upgrade."""
