"""where batches go, and how jobs end.

Revision 0040, after 0039.
"""

revision = "0040"
down_revision = "0039"
branch_labels = None
depends_on = None
derived = "72610ae000456c33f43328ea63ad5828934b4f80d8795d6f07b442dda990647a"


def upgrade() -> None:
    """The functions alone are other ones, and they are made anew behind every upgrade."""
