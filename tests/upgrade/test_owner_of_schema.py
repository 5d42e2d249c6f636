"""A schema that a superuser brings to this version stays its owner's, with all that is in it."""

import psycopg
import pytest

from connectors.errors import DatabaseUnusable
from connectors.postgres.schema.revisions import revisions
from connectors.postgres.schema.upgrade import Way, bring_up_to_date
from schemas.guards.roles import script
from tests.upgrade.steps import brought_to

SECONDS = 10
OWNERS = """SELECT relname, relowner::regrole::text FROM pg_class
    WHERE relnamespace::regnamespace::text ~ '^recon' AND relkind IN ('r', 'v', 'S')
    UNION SELECT proname, proowner::regrole::text FROM pg_proc
    WHERE pronamespace = 'recon'::regnamespace
    UNION SELECT nspname, nspowner::regrole::text FROM pg_namespace WHERE nspname ~ '^recon'"""
OF_ANOTHER = (
    "TABLE recon.job", "TABLE recon.shown_row",
    "FUNCTION recon.add_event", "SCHEMA recon_shown",
)  # fmt: skip
"""As earlier versions left them where a superuser migrated and granted."""


def not_of(owner: psycopg.Connection) -> list[tuple[str, str]]:
    """What there is that belongs to somebody else, and to whom."""
    found = owner.execute(OWNERS).fetchall()
    return [(name, of) for name, of in found if of != owner.info.user]


@pytest.mark.long(but=("migrate",))
@pytest.mark.parametrize("way", ["migrate", "follow"])
def test_it_is_changed_as_its_owner(owned: tuple[str, str], way: Way) -> None:
    of_owner, of_superuser = owned
    brought_to(of_owner, revisions()[0])
    bring_up_to_date(of_superuser, SECONDS, "migrate")
    with psycopg.connect(of_owner, autocommit=True) as owner:
        assert not_of(owner) == []
        with psycopg.connect(of_superuser, autocommit=True) as superuser:
            superuser.execute(script().partition("\n")[2])  # type: ignore[call-overload]
            # The views of shown rows are whose who granted; who owns their schema makes them anew.
            assert {of for _, of in not_of(owner)} <= {"postgres"}
            assert not {name for name, _ in not_of(owner) if not name.startswith("staged_")}
            for one in OF_ANOTHER:
                superuser.execute(f"ALTER {one} OWNER TO postgres")  # type: ignore[call-overload]
            superuser.execute("CREATE TABLE recon.theirs (); CREATE TABLE theirs ()")
            superuser.execute("COMMENT ON TABLE recon.alembic_version IS NULL")
        with pytest.raises(DatabaseUnusable, match="or a superuser"):
            bring_up_to_date(of_owner, SECONDS, "migrate")
        bring_up_to_date(of_superuser, SECONDS, way)
        assert {*not_of(owner)} == {("theirs", "postgres")} | {
            (name, of) for name, of in not_of(owner) if name.startswith("staged_")
        }
        bring_up_to_date(of_owner, SECONDS, "migrate")


@pytest.mark.long
def test_who_may_not_be_its_owner_changes_nothing(owned: tuple[str, str]) -> None:
    of_owner, of_superuser = owned
    brought_to(of_superuser, revisions()[0])
    with psycopg.connect(of_superuser, autocommit=True) as superuser:
        user = psycopg.conninfo.conninfo_to_dict(of_owner)["user"]
        superuser.execute(f'GRANT ALL ON SCHEMA recon TO "{user}"')  # type: ignore[call-overload]
        superuser.execute(f'GRANT ALL ON ALL TABLES IN SCHEMA recon TO "{user}"')  # type: ignore[call-overload]
    with pytest.raises(DatabaseUnusable, match=r"may not bring it there\. Run any command"):
        bring_up_to_date(of_owner, SECONDS, "migrate")
    with psycopg.connect(of_superuser) as superuser:
        found = superuser.execute("SELECT version_num FROM recon.alembic_version").fetchone()
        assert found == (revisions()[0],)
