"""what several currencies take.

Revision 0048, after 0047.
"""

revision = "0048"
down_revision = "0047"
branch_labels = None
depends_on = None
derived = "b5248051677c0b4c52a32c52011c868751bc5343f1fdc0c05979138f00e95876"


def upgrade() -> None:
    """The functions alone are other ones, and they are put in place again behind every upgrade."""
