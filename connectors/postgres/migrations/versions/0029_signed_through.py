"""page one of a run says up to where it knows what is signed; no number of a row in error is shown.

Revision 0029, after 0028.
"""

revision = "0029"
down_revision = "0028"
branch_labels = None
depends_on = None
derived = "8ce33ddea2fdcd0b3f28dafd95dde0f6150a5e6b380c5839d907ebe1f791d223"


def upgrade() -> None:
    """The functions and views alone are other ones, and they are made anew behind every upgrade."""
