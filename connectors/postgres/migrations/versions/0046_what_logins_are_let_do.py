"""what logins are let do.

Revision 0046, after 0045.
"""

revision = "0046"
down_revision = "0045"
branch_labels = None
depends_on = None
derived = "bd721134743fdca1cefe460c995e6816ef1f1b937f7e16cd9be726f8b2238fdf"


def upgrade() -> None:
    """The functions alone are other ones, and they are put in place again behind every upgrade."""
