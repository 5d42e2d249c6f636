"""what tenants are told of others.

Revision 0050, after 0049.
"""

revision = "0050"
down_revision = "0049"
branch_labels = None
depends_on = None
derived = "01bb58d4ccef564f715f1328fb8e5858c15fed3bad3b6cb2293f873039b5d66c"


def upgrade() -> None:
    """The functions alone are other ones, and they are put in place again behind every upgrade."""
