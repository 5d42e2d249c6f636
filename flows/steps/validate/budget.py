"""The error budget: how many rows may have errors before a batch is held for an operator."""

from fractions import Fraction

from schemas.counting import agree, quantity


def over_budget(
    rows: int,
    errors: int,
    excluded: int = 0,
    skipped: int = 0,
    *,
    most_errors: int | None,
    highest_rate: float | None,
    least_read: float | None = None,
) -> str | None:
    """Why a batch has to be held, with both numbers; None if it is within its budget.

    `skipped` lines are not rows; if there are only such lines, nothing was read of the delivery.
    """
    have = f"{errors} of {quantity(rows, 'row')} {agree(errors, 'has', 'have')} errors"
    if most_errors is not None and errors > most_errors:
        return f"{have}; the budget allows {quantity(most_errors, 'row')}"
    if highest_rate is not None and rows and errors > _share(highest_rate, rows):
        return f"{have} ({errors / rows:.2%}); the budget allows {highest_rate:.2%}"
    if least_read and not rows and skipped:
        lines = f"{quantity(skipped, 'line')} behind the header {agree(skipped, 'is', 'are')}"
        return (
            f"there is no row: {lines} no record, as the feed profile says; "
            f"at least {least_read:.2%} have to be read"
        )
    read = rows - errors - excluded
    if least_read is not None and rows and read < _share(least_read, rows):
        return (
            f"{read} of {quantity(rows, 'row')} {agree(read, 'is', 'are')} read "
            f"({read / rows:.2%}), {errors} have errors and {excluded} are left out by the feed "
            f"profile; at least {least_read:.2%} have to be read"
        )
    return None


def _share(rate: float, rows: int) -> Fraction:
    """The share of rows for a rate, exact to its written digits."""
    return Fraction(str(rate)) * rows
