"""Held: why somebody has to decide about a delivery, of a batch and of files that are examined."""

from collections.abc import Iterable, Iterator

from connectors.files.profile import Profile
from flows.stages.verdicts import FileVerdict
from flows.steps.validate.budget import over_budget


def not_proven(name: str, why: str) -> str:
    """Why a batch is held for one of its files."""
    return f"{name} cannot be proven to be whole: {why}"


def because(reasons: Iterable[str | None]) -> str | None:
    return "; ".join(filter(None, reasons)) or None


def has_budget(profile: Profile) -> bool:
    """Whether a feed says how much of a delivery has to be good."""
    return (profile.budget_errors, profile.budget_rate, profile.budget_read) != (None, None, None)


def beyond_budget(
    profile: Profile, *, rows: int, errors: int, excluded: int, skipped: int
) -> str | None:
    """Why a delivery is held by the budget of its feed; `skipped` lines are no rows."""
    return over_budget(
        rows,
        errors,
        excluded,
        skipped,
        most_errors=profile.budget_errors,
        highest_rate=profile.budget_rate,
        least_read=profile.budget_read,
    )


def would_be_held(verdicts: Iterable[FileVerdict], profile: Profile) -> str | None:
    """Why an import of the files of a delivery is held, as it says it itself.

    What only a database knows may hold it as well.
    """
    return because(_reasons([*verdicts], profile))


def _reasons(verdicts: list[FileVerdict], profile: Profile) -> Iterator[str | None]:
    for one in verdicts:
        if one.unproven:
            yield not_proven(one.name, one.unproven)
    yield beyond_budget(
        profile,
        rows=sum(one.rows_in for one in verdicts),
        errors=sum(len(one.rejects) for one in verdicts),
        excluded=sum(one.excluded for one in verdicts),
        skipped=sum(one.valueless.lines + one.comments.lines for one in verdicts),
    )
