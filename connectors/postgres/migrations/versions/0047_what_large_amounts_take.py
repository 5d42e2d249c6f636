"""what large amounts take.

Revision 0047, after 0046.
"""

revision = "0047"
down_revision = "0046"
branch_labels = None
depends_on = None
derived = "7b7c78582046d095400f9e0ea727307507d011472b455fa44f89e7830f61d463"


def upgrade() -> None:
    """The functions alone are other ones, and they are put in place again behind every upgrade."""
