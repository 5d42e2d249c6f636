"""two who keep accounts at once.

Revision 0053, after 0052.
"""

revision = "0053"
down_revision = "0052"
branch_labels = None
depends_on = None
derived = "5bdb847fcb83ec1f7fb32a582f861b7bb6f71588c91a8b08b1965cd9d2ece773"


def upgrade() -> None:
    """Only the functions are others: whoever keeps an account or a limit waits for its turn."""
