"""${message}.

Revision ${up_revision}, after ${down_revision | comma,n}.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = ${repr(up_revision)}
down_revision = ${repr(down_revision)}
branch_labels = None
depends_on = None
derived = ${repr(derived)}


def upgrade() -> None:
    ${upgrades if upgrades else "pass"}
