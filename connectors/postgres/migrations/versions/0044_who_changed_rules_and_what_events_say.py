"""who changed rules in the first run of a scope, and what events say.

Revision 0044, after 0043.
"""

revision = "0044"
down_revision = "0043"
branch_labels = None
depends_on = None
derived = "09d770b569a1ee732164a87a3ca942fd35eb26f219a952bdee277bde0d9a4439"


def upgrade() -> None:
    """The functions alone are other ones, and they are made anew behind every upgrade."""
