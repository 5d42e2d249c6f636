"""what tenants are told of others.

Revision 0050, after 0049.
"""

revision = "0050"
down_revision = "0049"
branch_labels = None
depends_on = None
derived = "145ea96b93b2b82f6816ab5c528e6a9678f9b147684adef52e629dfa4b8cb491"


def upgrade() -> None:
    """The functions alone are other ones, and they are put in place again behind every upgrade."""
