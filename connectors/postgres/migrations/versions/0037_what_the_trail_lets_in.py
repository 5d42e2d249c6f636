"""the trail lets in what can be read and was seen.

Revision 0037, after 0036.
"""

revision = "0037"
down_revision = "0036"
branch_labels = None
depends_on = None
derived = "57e9cf638f2da58b8fbe81bbaaf268aa5b9f5907f027d231cc71bd56333be98e"


def upgrade() -> None:
    """The functions alone are other ones, and they are made anew behind every upgrade."""
