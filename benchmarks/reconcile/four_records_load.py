"""Import what was delivered, then change the database as the other side says it is."""

import sys
from pathlib import Path

import polars as pl
import psycopg
from clock import Clock
from four_records_truths import TABLES, read_truths
from psycopg import sql

from connectors.files.profiles.profile import DEFAULT
from connectors.postgres.database import open_database
from connectors.settings import Settings
from flows.stages.sequence import import_delivery
from flows.stages.workspace import Workspace
from flows.steps.frames.sources import record_schema
from schemas.derived.sql_names import SCHEMA
from schemas.field import TIMES, Table
from schemas.kinds import OFFSET
from schemas.tables import PAYMENT


def main(url: str, home: Path, folder: Path) -> None:
    """Four CSV files through the whole import, and the differences of payments by SQL."""
    clock = Clock()
    extract, database = read_truths(folder)
    delivery = home / "delivery"
    delivery.mkdir(parents=True)
    for table in TABLES:
        rows = extract[table.name]
        if "PaymentsId" in rows.columns:
            known = extract[PAYMENT.name].select(pl.col("Id").cast(pl.Int32).alias("PaymentsId"))
            lost = rows.filter(pl.col("PaymentsId").is_not_null()).join(
                known, on="PaymentsId", how="anti"
            )
            rows = rows.join(lost.select("row"), on="row", how="anti", maintain_order="left")
        _delivered(table, rows).write_csv(delivery / f"{table.name}.csv")
    clock.lap("files")
    settings = Settings(home, url)
    workspace = Workspace(settings, open_database(settings))
    done = import_delivery(workspace, [str(delivery)], DEFAULT)
    clock.lap("import")
    with workspace.database.connect() as connection:
        _changed(connection, extract[PAYMENT.name], database[PAYMENT.name])
    clock.lap("changes")
    clock.report(state=str(done.batch.state))


def _delivered(table: Table, rows: pl.DataFrame) -> pl.DataFrame:
    return rows.select(
        (_moment(field.name) if field.kind in TIMES else field.name) for field in table.delivered
    )


def _moment(name: str) -> pl.Expr:
    """A time as text, at its own offset where it has one."""
    minutes = pl.col(name + OFFSET).cast(pl.Int64)
    wall = pl.col(name).to_physical() + minutes.fill_null(0) * 60_000_000
    zone = pl.format(
        "{}{}:{}",
        pl.when(minutes < 0).then(pl.lit("-")).otherwise(pl.lit("+")),
        (minutes.abs() // 60).cast(pl.String).str.zfill(2),
        (minutes.abs() % 60).cast(pl.String).str.zfill(2),
    )
    text = wall.cast(pl.Datetime("us")).dt.to_string("%Y-%m-%dT%H:%M:%S")
    return pl.concat_str(text, zone.fill_null("")).alias(name)


def _changed(connection: psycopg.Connection, delivered: pl.DataFrame, there: pl.DataFrame) -> None:
    """Payments that were changed, deleted and added behind the back of the import."""
    columns = [*record_schema(PAYMENT)]
    key = ["Id", "TenantsId"]
    other = there.select(columns).join(delivered.select(columns), on=columns, how="anti",
                                       nulls_equal=True)  # fmt: skip
    gone = delivered.join(there, on=key, how="anti").select(key)
    with connection.transaction(), connection.cursor() as cursor:
        target = sql.Identifier(SCHEMA, PAYMENT.name)
        cursor.execute(
            sql.SQL("CREATE TEMP TABLE other ON COMMIT DROP AS SELECT {} FROM {} LIMIT 0").format(
                sql.SQL(", ").join(map(sql.Identifier, columns)), target
            )
        )
        with cursor.copy("COPY other FROM STDIN (FORMAT csv)") as copy:
            copy.write(other.write_csv(include_header=False).encode())
        cursor.execute(
            sql.SQL(
                'UPDATE {} t SET "PaidAmount" = o."PaidAmount", "PaymentDate" = o."PaymentDate" '
                'FROM other o WHERE t."Id" = o."Id" AND t."TenantsId" = o."TenantsId"'
            ).format(target)
        )
        names = sql.SQL(", ").join(map(sql.Identifier, columns))
        cursor.execute(
            sql.SQL(
                "INSERT INTO {} ({}, batch_id, extract_id, record_number) SELECT o.*, t.* FROM "
                "other o, (SELECT batch_id, extract_id, 0 FROM {} LIMIT 1) t ON CONFLICT DO NOTHING"
            ).format(target, names, target)
        )
        cursor.executemany(
            sql.SQL('DELETE FROM {} WHERE "Id" = %s AND "TenantsId" = %s').format(target),
            list(gone.iter_rows()),
        )


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]))
