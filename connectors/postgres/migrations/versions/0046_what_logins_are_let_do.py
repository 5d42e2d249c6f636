"""what logins are let do.

Revision 0046, after 0045.
"""

revision = "0046"
down_revision = "0045"
branch_labels = None
depends_on = None
derived = "036a6748ab39fa53076249fad612f7dd16e8dd2ce2bb5ad3d2d0d00bda77a0cc"


def upgrade() -> None:
    """The functions alone are other ones, and they are put in place again behind every upgrade."""
