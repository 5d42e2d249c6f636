"""a proposal ends with the next decision; a login that ended sees nothing; rules are seen by scope.

Revision 0030, after 0029.
"""

revision = "0030"
down_revision = "0029"
branch_labels = None
depends_on = None
derived = "dc496e405dfb5b762e41e18984d40ef138be47919601f82dea26044ff58ff019"


def upgrade() -> None:
    """The functions alone are other ones, and they are made anew behind every upgrade."""
