"""whose ledger is hashed.

Revision 0049, after 0048.
"""

revision = "0049"
down_revision = "0048"
branch_labels = None
depends_on = None
derived = "5e74dbb5927326551a21e805c61f15ebf560b117e0fa2714d84564198654fde1"


def upgrade() -> None:
    """The functions alone are other ones, and they are put in place again behind every upgrade."""
