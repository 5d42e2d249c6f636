"""what a push notes of a batch is no part of what was found when its rows were judged.

Revision 0042, after 0041.
"""

revision = "0042"
down_revision = "0041"
branch_labels = None
depends_on = None
derived = "54845750c799d246d5d0c9ae8b77c035271414c08e0fe3294587d30049866488"


def upgrade() -> None:
    """The functions alone are other ones, and they are made anew behind every upgrade."""
