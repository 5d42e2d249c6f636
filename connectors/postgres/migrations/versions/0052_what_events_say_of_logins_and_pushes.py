"""what events say of logins and pushes.

Revision 0052, after 0051.
"""

from alembic import op

revision = "0052"
down_revision = "0051"
branch_labels = None
depends_on = None
derived = "307463924e0fbcfef0803bc2fcc0145be3263a955f12056d0fd53b857e5d1f7c"


def upgrade() -> None:
    """Whoever is logged in logs in again: no event says which login is theirs."""
    op.execute("DELETE FROM recon.login")
    op.execute("DROP FUNCTION IF EXISTS recon.password_told(text)")
