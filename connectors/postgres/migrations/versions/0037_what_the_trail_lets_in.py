"""the trail lets in what can be read and was seen.

Revision 0037, after 0036.
"""

revision = "0037"
down_revision = "0036"
branch_labels = None
depends_on = None
derived = "31bfe2367b147b60040dfce6969fb15371d1704b7e32701f6f1a3f16f88378bc"


def upgrade() -> None:
    """The functions alone are other ones, and they are made anew behind every upgrade."""
