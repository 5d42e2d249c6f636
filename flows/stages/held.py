"""Held: why somebody has to decide about a delivery, as a batch or as examined files."""

from collections.abc import Iterable, Sequence
from typing import Any

from connectors.files.profiles.profile import Profile
from connectors.files.text.linear_patterns import group_names
from flows.stages.examining.verdicts import FileVerdict
from flows.steps.validate.budget import over_budget
from schemas.counting import agree, quantity


def not_proven(name: str, why: str) -> str:
    """Why one of its files holds a batch."""
    return f"{name} cannot be proven to be whole: {why}"


def because(reasons: Iterable[str | None]) -> str | None:
    return "; ".join(filter(None, reasons)) or None


def has_budget(profile: Profile) -> bool:
    """Whether a feed states how much of a delivery has to be good, or has headings among rows."""
    stated = (profile.budget_errors, profile.budget_rate, profile.budget_read)
    return stated != (None, None, None) or bool(group_names(profile.skip_lines))


def beyond_budget(
    profile: Profile,
    *,
    rows: int,
    errors: int,
    excluded: int,
    skipped: int,
    headed: bool,
    left_blank: int,
) -> str | None:
    """Why a delivery exceeds the budget of its feed, or None; `skipped` lines are no rows.

    `headed`: rows take values from heading lines above them. A row in error, or one that is
    `left_blank`, may be a heading that no pattern fits; unless the feed states a budget, none is
    allowed.
    """
    undecided = (profile.budget_errors, profile.budget_rate) == (None, None)
    if headed and undecided and (errors or left_blank) and group_names(profile.skip_lines):
        have = f"{errors} of {quantity(rows, 'row')} {agree(errors, 'has', 'have')} errors"
        if not errors:
            are = agree(left_blank, "is", "are")
            have = f"{left_blank} of {quantity(rows, 'row')} {are} left out by an empty cell"
        return (
            f"{have}, and such a row may be a heading that no pattern of skip_lines fits: the rows "
            "below it would have what the heading before says. Look at each; budget.errors says "
            "how many may have errors"
        )
    return over_budget(
        rows,
        errors,
        excluded,
        skipped,
        most_errors=profile.budget_errors,
        highest_rate=profile.budget_rate,
        least_read=profile.budget_read,
    )


def would_be_held(verdicts: Sequence[FileVerdict], profile: Profile) -> str | None:
    """Why an import would hold the files of a delivery, in the words of the import; else None.

    Findings that need the database may hold it as well.
    """
    unproven = [not_proven(one.name, one.unproven) for one in verdicts if one.unproven]
    over = beyond_budget(
        profile,
        rows=sum(one.rows_in for one in verdicts),
        errors=sum(len(one.rejects) for one in verdicts),
        excluded=sum(one.excluded for one in verdicts),
        skipped=sum(one.valueless.lines + one.comments.lines for one in verdicts),
        headed=any(one.headed for one in verdicts),
        left_blank=sum(one.left_blank for one in verdicts),
    )
    return because([*unproven, over])


def left_blank(left_out: Iterable[Sequence[Any]], profile: Profile) -> int:
    """Rows that `keep_only` leaves out for an empty cell; items are column, cell, rows, first."""
    named = {name for name, cells in profile.leave_out.items() if "" in cells}
    columns = profile.keep_only.keys() - named
    return sum(of[2] for of in left_out if of[1] == "" and of[0] in columns)
