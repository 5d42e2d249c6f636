"""The schema at an earlier revision."""

import sqlalchemy as sa
from alembic import command
from alembic.config import Config

from connectors.postgres.schema.revisions import MIGRATIONS
from connectors.postgres.schema.upgrade import engine_on


def brought_to(url: str, revision: str) -> None:
    """The tables of an earlier revision, in an empty database, and a trigger as each one has."""
    engine = engine_on(url)
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    with engine.begin() as connection:
        connection.execute(sa.text("CREATE SCHEMA recon"))
        config.attributes |= {"connection": connection, "tables_only": True}
        command.upgrade(config, revision)
        connection.execute(
            sa.text(
                "CREATE TRIGGER event_append_only BEFORE UPDATE ON recon.event "
                "FOR EACH ROW EXECUTE FUNCTION suppress_redundant_updates_trigger()"
            )
        )
    engine.dispose()
