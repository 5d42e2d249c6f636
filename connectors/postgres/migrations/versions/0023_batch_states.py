"""guards of the states of batches, mended.

Revision 0023, after 0022.
"""

revision = "0023"
down_revision = "0022"
branch_labels = None
depends_on = None
derived = "888b64288d55643ea437b640932304b84f48a5f2069468fba9c0838a1789110c"


def upgrade() -> None:
    """The functions alone are other ones, and they are made anew behind every upgrade."""
