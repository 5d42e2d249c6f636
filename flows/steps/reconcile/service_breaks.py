"""The breaks of sending: what was not sent, not confirmed, refused, or echoed in other words."""

import polars as pl

from flows.steps.breaks.match_breaks import line_breaks
from flows.steps.frames.statuses import Lines
from flows.steps.reconcile.answers import echo_differences
from schemas.breaks import Status
from schemas.field import Table

CODES = {
    Status.REJECTED: "REFUSED",
    Status.NOT_SENT: "NOT_SENT",
    Status.IN_DOUBT: "IN_DOUBT",
    Status.SENT_UNCONFIRMED: "UNCONFIRMED",
}
"""The status a send gave its record -> the break."""
_DECIDED = pl.concat_str(pl.lit("decided: "), pl.col("decision").cast(pl.String))
_ANSWERED = pl.concat_str(pl.lit("HTTP status "), pl.col("status").cast(pl.String))


def service_breaks(table: Table, lines: Lines, sent: pl.DataFrame) -> list[pl.DataFrame]:
    """One break per row whose send did not come to a good end, with what the service said."""
    breaks = []
    for status, code in CODES.items():
        rows = (sent["service"] == status.value).fill_null(value=False).arg_true()
        answers = sent[rows].select(
            pl.concat_str(_DECIDED, _ANSWERED, separator=", ", ignore_nulls=True).alias("note"),
            rows.alias("row"),
        )
        side = "R" if status is Status.NOT_SENT else "A"
        breaks.append(line_breaks(table, lines, answers, code=code, side=side))
    return breaks


def echoed(
    table: Table, extract: pl.DataFrame, sent: pl.DataFrame, answers: pl.DataFrame
) -> pl.DataFrame:
    """Where echoes differ from what was sent (`answers.ECHO_SCHEMA`)."""
    differing = sent.with_row_index("row").filter(pl.col("service") == Status.MISMATCH.value)
    return echo_differences(
        table,
        extract[differing["row"]],
        answers.select("echo", "errors")[differing["answer"]].with_columns(differing["row"]),
    )
