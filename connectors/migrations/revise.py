"""Write a migration for what the field tables changed: `python -m connectors.migrations.revise`.

It is compared with a scratch database that has all earlier migrations, so nothing is guessed.
"""

import sys
import tempfile
from pathlib import Path

import sqlalchemy as sa
from alembic import command
from alembic.config import Config

from connectors.embedded import embedded_url
from schemas.sql import SCHEMA


def revise(message: str) -> None:
    """Add a revision under `versions/` that leads from the newest one to the field tables."""
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
            number = len(list((Path(__file__).parent / "versions").glob("[0-9]*.py"))) + 1
            config.set_main_option("file_template", "%%(rev)s_%%(slug)s")
            command.revision(config, message, autogenerate=True, rev_id=f"{number:04}")
        engine.dispose()


if __name__ == "__main__":
    revise(" ".join(sys.argv[1:]) or "follow the field tables")
