"""what loaders say of batches.

Revision 0045, after 0044.
"""

revision = "0045"
down_revision = "0044"
branch_labels = None
depends_on = None
derived = "c065a7c29d9f9a171553f6b54ac38edb2f34c385eade1ceb0ecef6bf1978839c"


def upgrade() -> None:
    """The functions alone are other ones, and they are put in place again behind every upgrade."""
