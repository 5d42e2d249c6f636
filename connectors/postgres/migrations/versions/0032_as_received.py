"""files and terms of a batch stay as they were received.

Revision 0032, after 0031.
"""

revision = "0032"
down_revision = "0031"
branch_labels = None
depends_on = None
derived = "295a93906543344981a1c7ac1410d4e6a5a5776b111d1aa41041719e1bf2cf4b"


def upgrade() -> None:
    """The functions alone are other ones, and they are made anew behind every upgrade."""
