"""guards of batches, and of what is said of them, mended.

Revision 0024, after 0023.
"""

revision = "0024"
down_revision = "0023"
branch_labels = None
depends_on = None
derived = "d3c7b335f4f3f3e7201760dbd39bfab8b67146607ea62fe142200da50d8c8e8b"


def upgrade() -> None:
    """The functions alone are other ones, and they are made anew behind every upgrade."""
