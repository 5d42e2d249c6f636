"""guards of batches, and of what is said of them, mended.

Revision 0024, after 0023.
"""

revision = "0024"
down_revision = "0023"
branch_labels = None
depends_on = None
derived = "b584a8833caa35d1c9a1a47affb8436939cbcf5bd7811e0a9c3ca19a1b392682"


def upgrade() -> None:
    """The functions alone are other ones, and they are made anew behind every upgrade."""
