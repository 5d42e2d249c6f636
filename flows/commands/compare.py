"""Compare two tables of any columns: `recon compare`."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from flows.commands.console import out, print_json, refuse_password
from flows.commands.deliver import Json

Side = Annotated[
    str,
    Parameter(
        help="A CSV file (packed ones too), a Parquet file or a folder of them, or "
        "postgresql://HOST/DB?table=SCHEMA.TABLE."
    ),
]


def compare_command(
    left: Side,
    right: Side,
    *,
    key: Annotated[str, Parameter(help="Columns that tell rows apart, separated by commas.")],
    tolerance: Annotated[
        list[str] | None,
        Parameter(help="How far a column may be apart: amount=0.01, amount=0.1%, paid_at=2s."),
    ] = None,
    ignore: Annotated[
        list[str] | None, Parameter(help="A column to leave out; may be repeated.")
    ] = None,
    delimiter: Annotated[
        str | None, Parameter(help="Between the columns of CSV; default: recognised.")
    ] = None,
    out_folder: Annotated[
        Path | None, Parameter(name="--out", help="Folder for the report and all differences.")
    ] = None,
    json: Json = False,
) -> int:
    """Compare two tables of any columns exactly: every row on either side gets one status.

    Numbers are compared as decimals, 64-bit integers as themselves, equal instants are equal in any
    offset, NULL is not an empty text, and a key that occurs twice is listed, not paired.

    Example: `recon compare left.csv right.parquet --key Id --tolerance PaidAmount=0.01 --out diff`

    Exit code 0: the sides agree; 1: they differ; 2: could not run.
    """
    from flows.report.comparison import as_json, render_text
    from flows.stages.comparing.compare_run import run_comparison

    for side in (left, right):
        refuse_password(side, "The address of a table", "PGPASSWORD or ~/.pgpass")
    comparison = run_comparison(
        left,
        right,
        key=key,
        tolerances=tolerance or [],
        ignore=ignore or [],
        delimiter=delimiter,
        folder=out_folder,
    )
    if json:
        print_json(as_json(comparison))
    else:
        out().print(render_text(comparison))
        if out_folder is not None:
            out().print(f"\nreport: {out_folder / 'report.html'}")
    return 0 if comparison.agrees else 1
