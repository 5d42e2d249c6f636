"""a proposal ends with the next decision; a login that ended sees nothing; rules are seen by scope.

Revision 0030, after 0029.
"""

revision = "0030"
down_revision = "0029"
branch_labels = None
depends_on = None
derived = "7ed0a9d2d5055c70b8c0782a96b7cd4d8a14d335122dfb988561279b1d5d0ea5"


def upgrade() -> None:
    """The functions alone are other ones, and they are made anew behind every upgrade."""
