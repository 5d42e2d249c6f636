"""DuckDB's typed reading with its table of rejects; every column is computed, nothing is kept."""

import os
import sys

import duckdb
from clock import Clock

COLUMNS = {
    "Id": "BIGINT",
    "TenantsId": "INTEGER",
    "ActionsId": "BIGINT",
    "DebtsId": "BIGINT",
    "PaymentDate": "TIMESTAMPTZ",
    "PaidAmount": "DOUBLE",
    "DiscountAmount": "DOUBLE",
    "CurrenciesId": "INTEGER",
    "CurrencyRatesId": "BIGINT",
}


def main(path: str) -> None:
    """Read the file and count what was good and what was rejected."""
    connection = duckdb.connect(config={"threads": len(os.sched_getaffinity(0))})
    values = ", ".join(f'max("{name}")::VARCHAR' for name in COLUMNS)
    clock = Clock()
    # fetchall, because the table of rejects is there only when the result was read to its end.
    ((read, *_),) = connection.execute(
        f"SELECT count(*), {values} FROM read_csv(?, header=true, columns={COLUMNS!r}, "
        "store_rejects=true)",
        [path],
    ).fetchall()
    ((rejected,),) = connection.execute("SELECT count(DISTINCT line) FROM reject_errors").fetchall()
    clock.lap("read")
    clock.report(rows=read, rejected=rejected, duckdb=duckdb.__version__)


if __name__ == "__main__":
    main(sys.argv[1])
