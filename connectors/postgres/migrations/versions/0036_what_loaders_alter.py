"""what those who load alter of a batch is seen or refused.

Revision 0036, after 0035.
"""

revision = "0036"
down_revision = "0035"
branch_labels = None
depends_on = None
derived = "0b01a6869067b26e39a294ece19919da0c1ef411e049db09a69f895c002c2e44"


def upgrade() -> None:
    """The functions alone are other ones, and they are made anew behind every upgrade."""
