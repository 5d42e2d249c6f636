"""files and terms of a batch stay as they were received.

Revision 0032, after 0031.
"""

revision = "0032"
down_revision = "0031"
branch_labels = None
depends_on = None
derived = "73b2424e0b38cc900d6055a7c35802d507d52a35b3ba78e26670bfd1acfeaceb"


def upgrade() -> None:
    """The functions alone are other ones, and they are made anew behind every upgrade."""
