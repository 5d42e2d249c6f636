"""what logins are let do.

Revision 0046, after 0045.
"""

revision = "0046"
down_revision = "0045"
branch_labels = None
depends_on = None
derived = "127a89bba45700db8efe3202a770d2a86c32cbba615dd0fd9e4da399f8d65354"


def upgrade() -> None:
    """The functions alone are other ones, and they are put in place again behind every upgrade."""
