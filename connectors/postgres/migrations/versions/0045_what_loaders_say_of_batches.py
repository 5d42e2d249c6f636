"""what loaders say of batches.

Revision 0045, after 0044.
"""

revision = "0045"
down_revision = "0044"
branch_labels = None
depends_on = None
derived = "6365268b948000f47fedfc3d00f20e0b01ed85b763004a0f6cb4c079fcac1c01"


def upgrade() -> None:
    """The functions alone are other ones, and they are put in place again behind every upgrade."""
