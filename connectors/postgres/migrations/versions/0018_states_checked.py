"""states checked: what becomes of a batch, and what a run says of breaks, is held to the trail.

Revision 0018, after 0017. The tables stay; functions and triggers are made anew after every revision.
"""

revision = "0018"
down_revision = "0017"
branch_labels = None
depends_on = None


def upgrade() -> None:
    pass


def downgrade() -> None:
    pass
