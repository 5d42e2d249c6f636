"""the trail lets in what can be read and was seen.

Revision 0037, after 0036.
"""

revision = "0037"
down_revision = "0036"
branch_labels = None
depends_on = None
derived = "82612d667c9d1dd614c34fb300f1153394e817499e1ed552a9a7978d367b95a1"


def upgrade() -> None:
    """The functions alone are other ones, and they are made anew behind every upgrade."""
