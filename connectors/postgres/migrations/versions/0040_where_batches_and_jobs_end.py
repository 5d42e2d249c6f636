"""where batches go, and how jobs end.

Revision 0040, after 0039.
"""

revision = "0040"
down_revision = "0039"
branch_labels = None
depends_on = None
derived = "a867edd4da99ae71141c8367118e8912498b56ebef875fa471d2f857e59648b2"


def upgrade() -> None:
    """The functions alone are other ones, and they are made anew behind every upgrade."""
