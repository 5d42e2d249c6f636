"""The error budget: how many rows may carry errors before a batch is shown to an operator."""


def over_budget(
    rows: int, errors: int, *, most_errors: int | None, highest_rate: float | None
) -> str | None:
    """Why a batch has to be held, with both numbers; None when it is inside its budget."""
    if most_errors is not None and errors > most_errors:
        return f"{errors} of {rows} rows have errors; the budget allows {most_errors} rows"
    if highest_rate is not None and rows and errors > highest_rate * rows:
        return (
            f"{errors} of {rows} rows have errors ({errors / rows:.2%}); "
            f"the budget allows {highest_rate:.2%}"
        )
    return None
