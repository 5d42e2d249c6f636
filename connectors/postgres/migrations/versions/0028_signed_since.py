"""what others signed since a report was written keeps who does not see it from approving.

Revision 0028, after 0027.
"""

revision = "0028"
down_revision = "0027"
branch_labels = None
depends_on = None
derived = "d7431b150a86ade36e8c0d306d3c7d7ea902ac54fdd228c7f36ce88710274110"


def upgrade() -> None:
    """The functions alone are other ones, and they are made anew behind every upgrade."""
