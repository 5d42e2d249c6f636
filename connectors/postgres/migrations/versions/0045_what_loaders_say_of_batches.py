"""what loaders say of batches.

Revision 0045, after 0044.
"""

revision = "0045"
down_revision = "0044"
branch_labels = None
depends_on = None
derived = "55b32bac05b27ea39c30f9c7b8fa1f8b723cd109eb84aae171853b1ace8c9537"


def upgrade() -> None:
    """The functions alone are other ones, and they are put in place again behind every upgrade."""
