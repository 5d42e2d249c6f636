"""what loaders say of batches.

Revision 0045, after 0044.
"""

revision = "0045"
down_revision = "0044"
branch_labels = None
depends_on = None
derived = "116a377f7baf889ee79c03067bdc7f00575785e6e911f9d11c3f35c0ca98b9f3"


def upgrade() -> None:
    """The functions alone are other ones, and they are put in place again behind every upgrade."""
