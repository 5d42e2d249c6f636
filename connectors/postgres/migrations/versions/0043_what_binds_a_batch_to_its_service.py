"""a batch is bound to its service by what proves that a row of it may be there, and nothing else.

Revision 0043, after 0042.
"""

revision = "0043"
down_revision = "0042"
branch_labels = None
depends_on = None
derived = "9268f40d3fa12d4ae8f9460361bb08065f82484b4698ff46a12cbb370ab8c5a8"


def upgrade() -> None:
    """The functions alone are other ones, and they are made anew behind every upgrade."""
