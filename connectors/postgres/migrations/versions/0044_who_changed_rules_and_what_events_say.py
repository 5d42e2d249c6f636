"""who changed rules in the first run of a scope, and what events say.

Revision 0044, after 0043.
"""

revision = "0044"
down_revision = "0043"
branch_labels = None
depends_on = None
derived = "72f20c897f7e60b5bb27fcae1e9caa07c723fa90721672b8717e4d6437230f4b"


def upgrade() -> None:
    """The functions alone are other ones, and they are made anew behind every upgrade."""
