"""of the statements that hash what a batch has, only those that are asked for are planned.

Revision 0044, after 0043.
"""

revision = "0044"
down_revision = "0043"
branch_labels = None
depends_on = None
derived = "32523513ba53354aec07b7e5192238624d60e0225de5a3f89695a003029e94a0"


def upgrade() -> None:
    """The functions alone are other ones, and they are made again behind every upgrade."""
