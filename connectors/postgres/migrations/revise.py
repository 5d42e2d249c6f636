"""Write a migration for what the field tables changed; `make fields` calls it.

They are compared with a scratch database that has all earlier migrations, so nothing is guessed.
Where it has all that they say, and views, functions and triggers are those of the newest one,
nothing is written.
"""

import sys
import tempfile
from pathlib import Path

import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from alembic.operations.ops import MigrationScript
from alembic.script import Script, ScriptDirectory

from connectors.postgres.migrations import DERIVED_HASH
from connectors.postgres.server.embedded import embedded_url
from schemas.derived.sql import SCHEMA


def revise(message: str) -> Path | None:
    """Add a revision under `versions/` that leads from the newest one to the field tables.

    Gives its file, or None where the newest one leads there already.
    """
    with tempfile.TemporaryDirectory() as folder:
        url = embedded_url(Path(folder) / "postgres").replace("://", "+psycopg://", 1)
        engine = sa.create_engine(url)
        with engine.connect() as connection:
            connection.execute(sa.text(f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}"))
            connection.commit()
            config = Config()
            config.set_main_option("script_location", str(Path(__file__).parent))
            config.attributes |= {"connection": connection, "tables_only": True}
            command.upgrade(config, "head")
            connection.commit()
            config.set_main_option("file_template", "%%(rev)s_%%(slug)s")
            newest = ScriptDirectory.from_config(config).get_revision("head")
            follows = newest.module.derived == DERIVED_HASH

            def none_that_is_empty(_: object, __: object, steps: list[MigrationScript]) -> None:
                upgrade = steps[0].upgrade_ops
                if follows and (upgrade is None or upgrade.is_empty()):
                    steps.clear()

            written = command.revision(
                config,
                message,
                autogenerate=True,
                rev_id=f"{int(newest.revision) + 1:04}",
                process_revision_directives=none_that_is_empty,
            )
        engine.dispose()
    return Path(written.path) if isinstance(written, Script) else None


if __name__ == "__main__":
    path = revise(" ".join(sys.argv[1:]) or "follow the field tables")
    sys.stdout.write(f"{path or 'The migrations lead to the field tables.'}\n")
