"""baseline: every table, as the field tables had it when the steps before any release became one.

Revision 0019, the first there is. The statements are text, not the tables of today: what a released
step does stays as it was, and `make fields` compares the tables of today with where the steps lead.
They were written out of `schemas.derived.sql` once; nobody changes them any more.

A database at revision 0018 has the same tables and is taken over as it is
(`connectors.postgres.database`).
"""

from pathlib import Path

from alembic import op

revision = "0019"
down_revision = None
branch_labels = None
depends_on = None
derived = "2e161e0453a8a3d6acbc2aafe79bbd3473011a575393103eff6f770c963d941c"


def upgrade() -> None:
    statements = Path(__file__).with_suffix(".sql").read_text("utf-8")
    # Several statements at once have no parameters.
    op.get_bind().exec_driver_sql(statements, execution_options={"no_parameters": True})
