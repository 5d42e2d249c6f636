"""the trail lets in what can be read and was seen.

Revision 0037, after 0036.
"""

revision = "0037"
down_revision = "0036"
branch_labels = None
depends_on = None
derived = "615f22a97b2ee39daee2f53ec146fcf774df58140bc75d6e55121a3432bb2c0c"


def upgrade() -> None:
    """The functions alone are other ones, and they are made anew behind every upgrade."""
