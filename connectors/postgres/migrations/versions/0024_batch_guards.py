"""guards of batches, and of what is said of them, mended.

Revision 0024, after 0023.
"""

revision = "0024"
down_revision = "0023"
branch_labels = None
depends_on = None
derived = "ec432c97e68cf969dc3b72f196dacd9d38ad43f0a75b01e84fe6cf8a777ee3da"


def upgrade() -> None:
    """The functions alone are other ones, and they are made anew behind every upgrade."""
