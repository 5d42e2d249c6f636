"""a wrong password is counted where somebody changes their own.

Revision 0026, after 0025.
"""

revision = "0026"
down_revision = "0025"
branch_labels = None
depends_on = None
derived = "286d3ccb12d11995677eab58e1a5194b927b6214a8186bcfe321975ce4d31e6f"


def upgrade() -> None:
    """The functions alone are other ones, and they are made anew behind every upgrade."""
