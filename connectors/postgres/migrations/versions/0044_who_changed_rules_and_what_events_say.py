"""who changed rules in the first run of a scope, and what events say.

Revision 0044, after 0043.
"""

revision = "0044"
down_revision = "0043"
branch_labels = None
depends_on = None
derived = "a51388197bc4c03f899dd914410e6b22a0ed51aed42f4799b6525cfd278c2fd1"


def upgrade() -> None:
    """The functions alone are other ones, and they are made anew behind every upgrade."""
