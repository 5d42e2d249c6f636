"""trail checked: the functions that write the trail hold what they are given against it.

Revision 0016, after 0015. The tables stay; functions are made anew after every revision.
"""

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None


def upgrade() -> None:
    pass


def downgrade() -> None:
    pass
