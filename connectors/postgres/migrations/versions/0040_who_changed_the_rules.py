"""a refused approval says what rule about changed rules it is refused by.

Revision 0040, after 0039.
"""

revision = "0040"
down_revision = "0039"
branch_labels = None
depends_on = None
derived = "aab0245e3de4a6880dd27d93ef4f6ca31247695725c3a675acacb43008f53537"


def upgrade() -> None:
    """The functions alone are other ones, and they are made anew behind every upgrade."""
