"""a proposal ends with the next decision; a login that ended sees nothing; rules are seen by scope.

Revision 0030, after 0029.
"""

revision = "0030"
down_revision = "0029"
branch_labels = None
depends_on = None
derived = "df13c74ed196656f3e74c2a85ac243cc60d6afa0fb3e9692a3bf55595b4505d0"


def upgrade() -> None:
    """The functions alone are other ones, and they are made anew behind every upgrade."""
