"""dlt loads the clean file into a keyed table: Arrow tables from the file, merged by Id.

`adbc` is its fastest way into PostgreSQL: Parquet files through ADBC, strategy `upsert`.
`default` is `write_disposition="merge"` without an ADBC driver: CSV files, delete and insert.
"""

import argparse
import os
from pathlib import Path
from urllib.parse import parse_qs, quote, urlsplit

import dlt
import pyarrow as pa
from clock import Clock
from dlt.destinations import postgres
from pyarrow import csv

TYPES = {
    "Id": pa.int64(),
    "TenantsId": pa.int32(),
    "ActionsId": pa.int64(),
    "DebtsId": pa.int64(),
    "PaymentDate": pa.timestamp("us", "UTC"),
    "PaidAmount": pa.float64(),
    "DiscountAmount": pa.float64(),
    "CurrenciesId": pa.int32(),
    "CurrencyRatesId": pa.int64(),
}
BLOCK_BYTES = 16 * 1024 * 1024
WAYS = {
    "adbc": ("parquet", {"disposition": "merge", "strategy": "upsert"}),
    "default": ("csv", "merge"),
}


def destination_url(url: str) -> str:
    """The same server for dlt, which wants the socket's folder where a host stands."""
    parts = urlsplit(url)
    folder = parse_qs(parts.query)["host"][0]
    return f"postgresql://{parts.username}:-@{quote(folder, safe='')}:5432{parts.path}"


def main() -> None:
    """Run one pipeline and print what its three steps cost."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--url", required=True)
    parser.add_argument("--home", type=Path, required=True)
    parser.add_argument("--server", type=int)
    parser.add_argument("way", choices=WAYS)
    parser.add_argument("file")
    asked = parser.parse_args()
    os.environ["RUNTIME__DLTHUB_TELEMETRY"] = "false"
    file_format, disposition = WAYS[asked.way]

    @dlt.resource(name="payment", write_disposition=disposition, primary_key="Id")
    def payments():
        yield from csv.open_csv(
            asked.file,
            read_options=csv.ReadOptions(block_size=BLOCK_BYTES),
            convert_options=csv.ConvertOptions(column_types=TYPES),
        )

    pipeline = dlt.pipeline(
        "benchmark",
        pipelines_dir=str(asked.home / "dlt"),
        destination=postgres(destination_url(asked.url)),
        dataset_name="loaded",
    )
    clock = Clock(asked.server)
    pipeline.extract(payments(), loader_file_format=file_format)
    clock.lap("extract")
    pipeline.normalize()
    clock.lap("normalize")
    info = pipeline.load()
    clock.lap("load")
    info.raise_on_failed_jobs()
    kinds = {
        job.job_file_info.file_format
        for load in info.load_packages
        for job in load.jobs["completed_jobs"]
        if job.job_file_info.table_name == "payment"
    }
    clock.report(dlt=dlt.__version__, loaded_as=sorted(kinds))


if __name__ == "__main__":
    main()
