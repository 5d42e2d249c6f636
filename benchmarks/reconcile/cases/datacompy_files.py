"""datacompy's polars engine: read both files, compare, write the rows that differ."""

import sys
from pathlib import Path

import polars as pl
from clock import Clock
from datacompy import PolarsCompare


def main(left: str, right: str, out: Path) -> None:
    clock = Clock()
    read = pl.read_parquet if left.endswith(".parquet") else pl.read_csv
    compared = PolarsCompare(read(left), read(right), join_columns=["Id", "TenantsId"])
    compared.matches()
    clock.lap("compare")
    mismatches = compared.all_mismatch()
    out.mkdir(parents=True)
    mismatches.write_parquet(out / "mismatches.parquet")
    compared.df1_unq_rows.write_parquet(out / "left.parquet")
    compared.df2_unq_rows.write_parquet(out / "right.parquet")
    clock.lap("write")
    clock.report(
        different=mismatches.height,
        only_left=compared.df1_unq_rows.height,
        only_right=compared.df2_unq_rows.height,
    )


if __name__ == "__main__":
    main(*sys.argv[1:3], Path(sys.argv[3]))
