"""the trail lets in what can be read and was seen.

Revision 0037, after 0036.
"""

revision = "0037"
down_revision = "0036"
branch_labels = None
depends_on = None
derived = "d3db4dd88f4517c3c69ca436bb2f3090ef582e227c9e4d0d3ff1d2bc61eef4d8"


def upgrade() -> None:
    """The functions alone are other ones, and they are made anew behind every upgrade."""
