"""what logins are let do.

Revision 0046, after 0045.
"""

revision = "0046"
down_revision = "0045"
branch_labels = None
depends_on = None
derived = "1515d6978087f36e649673d73c4d264763014ff26be2c70ca1d3a97bf50638f9"


def upgrade() -> None:
    """The functions alone are other ones, and they are put in place again behind every upgrade."""
