"""what loaders say of batches.

Revision 0045, after 0044.
"""

revision = "0045"
down_revision = "0044"
branch_labels = None
depends_on = None
derived = "6af7f8efa004b995589e1f9b07eee5126f96c4bcd006173afe627695a35c7237"


def upgrade() -> None:
    """The functions alone are other ones, and they are put in place again behind every upgrade."""
