"""the trail lets in what can be read and was seen.

Revision 0037, after 0036.
"""

revision = "0037"
down_revision = "0036"
branch_labels = None
depends_on = None
derived = "1e6777f2a62fcd5407fa659e45655219709597d8dbda82e5cdc6b3b12f398faf"


def upgrade() -> None:
    """The functions alone are other ones, and they are made anew behind every upgrade."""
