"""who changed rules in the first run of a scope, and what events say.

Revision 0044, after 0043.
"""

revision = "0044"
down_revision = "0043"
branch_labels = None
depends_on = None
derived = "04457d701a52f1fbb50900779f4755521d84ea9c118f4ce96ee58e31720cfceb"


def upgrade() -> None:
    """The functions alone are other ones, and they are made anew behind every upgrade."""
