"""what loaders say of batches.

Revision 0045, after 0044.
"""

revision = "0045"
down_revision = "0044"
branch_labels = None
depends_on = None
derived = "e218551e683eca7938261df771a55d0d519f9bc6dd625f29fe703466605e3cc3"


def upgrade() -> None:
    """The functions alone are other ones, and they are put in place again behind every upgrade."""
