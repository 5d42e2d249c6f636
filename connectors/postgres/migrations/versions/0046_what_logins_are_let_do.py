"""what logins are let do.

Revision 0046, after 0045.
"""

revision = "0046"
down_revision = "0045"
branch_labels = None
depends_on = None
derived = "2dd2b18944391162226141846f822ba4c0b30b2f457a1f7138089469775cde7a"


def upgrade() -> None:
    """The functions alone are other ones, and they are put in place again behind every upgrade."""
