"""what tenants are told of others.

Revision 0050, after 0049.
"""

revision = "0050"
down_revision = "0049"
branch_labels = None
depends_on = None
derived = "d2847f3b8ba5d111642880c15ec38e11df5c3858adbd86c18ea8bf2b5dfb6225"


def upgrade() -> None:
    """The functions alone are other ones, and they are put in place again behind every upgrade."""
