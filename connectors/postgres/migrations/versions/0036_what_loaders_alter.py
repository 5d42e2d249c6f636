"""what those who load alter of a batch is seen or refused.

Revision 0036, after 0035.
"""

revision = "0036"
down_revision = "0035"
branch_labels = None
depends_on = None
derived = "e133485c2b9dc0af04fad71d2f04f4ca51d566e05e63027c42886ffb0b10614d"


def upgrade() -> None:
    """The functions alone are other ones, and they are made anew behind every upgrade."""
