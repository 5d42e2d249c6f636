"""Compare two tables of any columns: `recon compare`."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from flows.commands.console import out, print_json, refuse_password
from flows.commands.deliver import Json

Side = Annotated[
    str,
    Parameter(
        help="A CSV file (compressed ones too), a Parquet file, a folder of Parquet files, or "
        "postgresql://HOST/DB?table=SCHEMA.TABLE."
    ),
]


def compare_command(
    left: Side,
    right: Side,
    *,
    key: Annotated[str, Parameter(help="Columns that identify a row, separated by commas.")],
    tolerance: Annotated[
        list[str] | None,
        Parameter(
            help="How far the values of a column may differ: amount=0.01, amount=0.1%, paid_at=2s; "
            "may be repeated; default: not at all."
        ),
    ] = None,
    ignore: Annotated[
        list[str] | None, Parameter(help="Column to leave out; may be repeated.")
    ] = None,
    delimiter: Annotated[
        str | None, Parameter(help="Character between CSV columns; default: recognised.")
    ] = None,
    out_folder: Annotated[
        Path | None,
        Parameter(
            name="--out", help="Folder for the report and all differences; default: not written."
        ),
    ] = None,
    json: Json = False,
) -> int:
    """Compare two tables with any columns exactly: every row on either side gets one status.

    Numbers are compared as exact decimals or 64-bit integers; the same instant is equal in any time
    zone; NULL is not an empty text; a key that occurs twice is listed, not paired.

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
