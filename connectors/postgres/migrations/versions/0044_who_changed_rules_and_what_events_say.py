"""who changed rules in the first run of a scope, and what events say.

Revision 0044, after 0043.
"""

revision = "0044"
down_revision = "0043"
branch_labels = None
depends_on = None
derived = "eaaffed58e5c1b91dd78030c6a06d7344ad653776156b1e720bba0767616612b"


def upgrade() -> None:
    """The functions alone are other ones, and they are made anew behind every upgrade."""
