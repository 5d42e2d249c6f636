"""what logins are let do.

Revision 0046, after 0045.
"""

revision = "0046"
down_revision = "0045"
branch_labels = None
depends_on = None
derived = "bc18239256d09f1a46452065c14ea6bd74282d6ec459fcfbdad145d2acef4e94"


def upgrade() -> None:
    """The functions alone are other ones, and they are put in place again behind every upgrade."""
