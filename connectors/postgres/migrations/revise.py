"""Write a migration for changes of the field tables; `make fields` calls it.

The field tables are compared with a scratch database that has all earlier migrations, so nothing is
guessed. If it has all that they say, and the views, functions and triggers are those of the newest
migration, nothing is written.
"""

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from alembic.operations.ops import (
    AddColumnOp,
    ExecuteSQLOp,
    MigrateOperation,
    MigrationScript,
    ModifyTableOps,
)
from alembic.script import Script, ScriptDirectory

from connectors.postgres.migrations import DERIVED_HASH
from connectors.postgres.server.embedded import embedded_url
from schemas.derived.sql import TARGETS
from schemas.derived.sql_names import SCHEMA


class KeyChanged(Exception):
    """Primary keys have changed; the arguments say how, in sentences."""


def revise(message: str) -> Path | None:
    """Add a revision under `versions/` that leads from the newest one to the field tables.

    Gives its file, or None if the newest one already leads there. Raises KeyChanged.
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

            if changed := changed_keys(connection):
                raise KeyChanged(changed)

            def finished(_: object, __: object, steps: list[MigrationScript]) -> None:
                upgrade = steps[0].upgrade_ops
                if follows and (upgrade is None or upgrade.is_empty()):
                    steps.clear()
                elif upgrade is not None:
                    upgrade.ops += [*_required_where_empty(upgrade.ops)]

            written = command.revision(
                config,
                message,
                autogenerate=True,
                rev_id=f"{int(newest.revision) + 1:04}",
                process_revision_directives=finished,
            )
        engine.dispose()
    return Path(written.path) if isinstance(written, Script) else None


def changed_keys(connection: sa.Connection) -> list[str]:
    """How the keys of record tables have changed, a sentence for each.

    Existing rows would have to be told apart by a key that they were not accepted under. No tool
    knows how, and Alembic does not compare keys.
    """
    there = sa.inspect(connection)
    found = []
    for name, table in TARGETS.items():
        if not there.has_table(name, SCHEMA):
            continue
        before = there.get_pk_constraint(name, SCHEMA)["constrained_columns"]
        now = [column.name for column in table.primary_key]
        if before != now:
            found.append(f"{name}: its key was {', '.join(before)} and is {', '.join(now)}.")
    return found


def _required_where_empty(ops: list[MigrateOperation]) -> Iterator[MigrateOperation]:
    """Make new required columns nullable, and required only if the table has no rows.

    Existing rows have no value, and none is invented for them; new rows are validated.
    """
    for of_table in ops:
        if not isinstance(of_table, ModifyTableOps):
            continue
        table = f'{SCHEMA}."{of_table.table_name}"'
        for one in of_table.ops:
            if isinstance(one, AddColumnOp) and not one.column.nullable:
                one.column.nullable = True
                yield ExecuteSQLOp(
                    f"DO $$ BEGIN IF NOT EXISTS (SELECT FROM {table}) THEN "
                    f'ALTER TABLE {table} ALTER "{one.column.name}" SET NOT NULL; END IF; END $$'
                )


def main() -> None:
    """Write the missing migration; exits with 1 if it has to be written by hand."""
    try:
        path = revise(" ".join(sys.argv[1:]) or "follow the field tables")
    except KeyChanged as changed:
        sys.exit(
            f"{' '.join(changed.args[0])} The rows that a database has were told apart by the key "
            "before: write the migration by hand, drop and make the primary key, and say what "
            "becomes of rows that the new key does not tell apart."
        )
    sys.stdout.write(f"{path or 'The migrations lead to the field tables.'}\n")


if __name__ == "__main__":
    main()
