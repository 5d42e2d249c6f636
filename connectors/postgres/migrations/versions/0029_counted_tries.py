"""tries of passwords are counted by sequences; a run says up to where it knows what is signed.

Revision 0029, after 0028.
"""

from alembic import op

revision = "0029"
down_revision = "0028"
branch_labels = None
depends_on = None
derived = "b01aefb63569b60d4ca64f0ec32881949fdbe2f2e3d87f4495d2e45061e9338f"


def upgrade() -> None:
    """Two sequences for each account; those who have to wait at the login wait on.

    The functions and views that are other ones are made anew behind every upgrade.
    """
    for asked_for, kept in (("login", "a.failed"), ("change", "0")):
        op.execute(
            "DO $$ DECLARE a record; BEGIN FOR a IN SELECT * FROM recon.account LOOP "
            f"EXECUTE 'CREATE SEQUENCE recon.tries_' || md5('{asked_for} ' || a.name); "
            f"PERFORM setval('recon.tries_' || md5('{asked_for} ' || a.name), greatest(1, "
            f"({kept}::bigint << 42) | (extract(epoch FROM coalesce(a.failed_at, now())) * 1000)"
            "::bigint)); END LOOP; END $$"
        )
    op.drop_column("account", "failed", schema="recon")
    op.drop_column("account", "failed_at", schema="recon")
    op.execute("DROP FUNCTION IF EXISTS recon.password_fits(text, text)")
