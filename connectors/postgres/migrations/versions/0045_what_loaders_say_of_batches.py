"""what loaders say of batches.

Revision 0045, after 0044.
"""

revision = "0045"
down_revision = "0044"
branch_labels = None
depends_on = None
derived = "74ed510e0edbb1e9571bc292a2f28a3c8ae9e5f96e6ea64e6872f398b1226024"


def upgrade() -> None:
    """The functions alone are other ones, and they are put in place again behind every upgrade."""
