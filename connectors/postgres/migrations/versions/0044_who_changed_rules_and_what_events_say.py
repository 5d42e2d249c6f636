"""who changed rules in the first run of a scope, and what events say.

Revision 0044, after 0043.
"""

revision = "0044"
down_revision = "0043"
branch_labels = None
depends_on = None
derived = "8308e2f35cc66a6aa48d0a79765aa7314380e2b244149ae6ac9297acc2288eb7"


def upgrade() -> None:
    """The functions alone are other ones, and they are made anew behind every upgrade."""
