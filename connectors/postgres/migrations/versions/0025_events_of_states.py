"""events of states are held to the states of batches.

Revision 0025, after 0024.
"""

revision = "0025"
down_revision = "0024"
branch_labels = None
depends_on = None
derived = "265994b706f304f7fea245fb237d164447c194eb6283281bce066857fdc544b1"


def upgrade() -> None:
    """The functions alone are other ones, and they are made anew behind every upgrade."""
