"""what large amounts take.

Revision 0047, after 0046.
"""

revision = "0047"
down_revision = "0046"
branch_labels = None
depends_on = None
derived = "e2b527f95c0f47d7ef1c51fe4a607139e05fda6b5bdeec82c431787dd9d7eee8"


def upgrade() -> None:
    """The functions alone are other ones, and they are put in place again behind every upgrade."""
