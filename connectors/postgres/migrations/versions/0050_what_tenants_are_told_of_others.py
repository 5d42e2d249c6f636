"""what tenants are told of others.

Revision 0050, after 0049.
"""

revision = "0050"
down_revision = "0049"
branch_labels = None
depends_on = None
derived = "903f2331a682abe486c156485439e26fe34bd1bbcac52850d72cbe871dbd9a0e"


def upgrade() -> None:
    """The functions alone are other ones, and they are put in place again behind every upgrade."""
