"""a proposal ends with the next decision; a login that ended sees nothing; rules are seen by scope.

Revision 0030, after 0029.
"""

revision = "0030"
down_revision = "0029"
branch_labels = None
depends_on = None
derived = "afc5f97eb96a3d46ee549f7be7b9f700c7c8cc0ec9e192dd318b232b7a00e902"


def upgrade() -> None:
    """The functions alone are other ones, and they are made anew behind every upgrade."""
