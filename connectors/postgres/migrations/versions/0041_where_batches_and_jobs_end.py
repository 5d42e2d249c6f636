"""where batches go, and how jobs end.

Revision 0041, after 0040.
"""

revision = "0041"
down_revision = "0040"
branch_labels = None
depends_on = None
derived = "2aad4476397b5ff960295d3bb05a3770c3f95184df4fed291322788a36ee2acf"


def upgrade() -> None:
    """The functions alone are other ones, and they are made anew behind every upgrade."""
