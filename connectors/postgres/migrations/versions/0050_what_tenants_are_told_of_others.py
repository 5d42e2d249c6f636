"""what tenants are told of others.

Revision 0050, after 0049.
"""

revision = "0050"
down_revision = "0049"
branch_labels = None
depends_on = None
derived = "3c1a13f01f1fa746e5f4f452f7ba34e1ab9985b4004c16f6b3c88c978e18d957"


def upgrade() -> None:
    """The functions alone are other ones, and they are put in place again behind every upgrade."""
