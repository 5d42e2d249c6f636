"""Requirements for a decision about breaks: its terms, its ceiling, and what the person saw.

The texts name terms as the caller calls them (`DecisionRefused`).
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import polars as pl
import psycopg

from connectors.errors import DecisionRefused, DecisionsMoved
from connectors.postgres.runs import reconciliations
from connectors.postgres.runs.breaks import Decision, breaks_of, decisions_since
from connectors.postgres.runs.reconciliations import Reconciliation
from flows.report.spelling import neutral
from flows.steps.breaks.acceptance import BOUND, is_same, size, values
from flows.steps.breaks.saved import from_saved
from schemas.amounts import is_ceiling
from schemas.counting import first_of, quantity
from schemas.life import DONE, OPEN, SIDES, Choice

NAMED = 5
"""The most breaks that a refusal names; it counts the others."""


@dataclass(frozen=True, slots=True)
class Looked:
    """What somebody looked at before deciding."""

    digest: str
    """Digest of the chosen breaks, with the values an acceptance is bound to (`digest_of`)."""
    through: int
    """The last decision on the run that was taken into account."""
    about: Sequence[str]
    """Ids of the breaks in question, whatever state they are in by now."""


def digest_of(meant: pl.DataFrame) -> str:
    """A digest that changes with the breaks or their values."""
    lines = meant.select("id", *BOUND).sort("id").write_json()
    return hashlib.sha256(lines.encode()).hexdigest()


def refuse_if_decided(connection: psycopg.Connection, run: Reconciliation, seen: Looked) -> None:
    """Refuse if somebody has decided about any of the breaks since they were seen."""
    since = decisions_since(connection, run.scope_hash, seen.through)
    ours = since.filter(
        pl.col("break_id").is_in(list(seen.about)), pl.col("what") != Choice.COMMENT
    ).group_by("event_id", maintain_order=True)
    lines = [
        f"{neutral(rows['by'][0])} {DONE[rows['what'][0]]} {quantity(rows.height, 'break')} at "
        f"{rows['at'][0]:%Y-%m-%d %H:%M:%S} UTC ({neutral(rows['reason'][0], 80)})"
        for _, rows in ours
    ]
    if lines:
        raise DecisionsMoved(
            "Somebody has decided about these breaks since you looked: {lines}. Nothing was "
            "decided now: look at them as they are, and decide again.",
            lines=first_of(lines, NAMED, by="; "),
        )


def refuse_if_other(meant: pl.DataFrame, seen: Looked) -> None:
    """Refuse if the breaks are not those that were seen."""
    if digest_of(meant) != seen.digest:
        raise DecisionsMoved(
            "The breaks are not those that you looked at any more: there are {number} now. "
            "Nothing was decided: look at them as they are, and decide again.",
            number=meant.height,
        )


def refuse_if_followed(connection: psycopg.Connection, run: Reconciliation) -> None:
    """Refuse decisions on a run that was followed; they belong to the last run of its scope."""
    last = reconciliations.latest_run(connection, run.scope)
    if last is not None and last.id != run.id:
        raise DecisionsMoved(
            "Reconciliation {this} was followed by {last}. "
            "Decide on the breaks of that one: {run} {last}.",
            this=run.id, last=last.id,
        )  # fmt: skip


def refuse_ceiling(meant: pl.DataFrame, decision: Decision) -> None:
    """Refuse a ceiling that does not suit every break, or that a break already exceeds."""
    if decision.up_to is None:
        return
    sized = meant.with_columns(size().alias("size"))
    none = sized.filter(pl.col("size").is_null() | (pl.col("size") == 0))
    if none.height:
        raise DecisionRefused(
            "{up_to} is a ceiling for an amount, and these breaks have none to hold it "
            "against: {lines}. Accept them without it, as they are. Nothing was decided.",
            lines=first_of(none["id"].to_list(), NAMED),
        )
    if meant["currency"].n_unique() > 1:
        raise DecisionRefused(
            "{up_to} is an amount in one currency, and these breaks are in several. "
            "{one_currency}. Nothing was decided."
        )
    above = sized.filter(pl.col("size").abs() > decision.up_to)
    if above.height:
        sizes = above.select("id", "size").rows()
        raise DecisionRefused(
            "{up_to} {amount} is less than what is there: {lines}. Nothing was decided.",
            amount=decision.up_to,
            lines=lambda spell: first_of([f"{one} is {spell(size)}" for one, size in sizes], NAMED),
        )


def refuse_unseen(
    connection: psycopg.Connection,
    run: Reconciliation,
    meant: pl.DataFrame,
    currencies: Mapping[str, str],
    *,
    by_id: bool,
) -> None:
    """Refuse changes since the previous run, if the decision names no run: it may have been seen.

    Breaks chosen by a filter are also refused if they are new or open again since; with an id the
    caller shows that the break is known. `currencies` are the names of currencies.
    """
    if run.previous_id is None:
        return
    before = from_saved(breaks_of(connection, run.previous_id))
    joined = meant.join(
        before.select("id", "state", *BOUND, there=True),
        on="id",
        how="left",
        suffix="_then",
        maintain_order="left",
    )
    other = joined.filter(pl.col("there") & ~is_same("{}_then".format))
    then = other.select("id", *(pl.col(f"{name}_then").alias(name) for name in BOUND))
    stated = values(currencies)
    changed = zip(other["id"], then.select(stated).to_series(), other.select(stated).to_series(),
               strict=True)  # fmt: skip
    lines = [f"{one} was {was}; it is now {now}" for one, was, now in changed]
    if not by_id:
        new = joined.filter(pl.col("there").is_null() | ~pl.col("state_then").is_in(OPEN))
        added = zip(new["id"], new["state_then"], new.select(stated).to_series(), strict=True)
        lines += [
            f"{one} {f'was {was}, and is open now' if was else 'is new'}, {now}"
            for one, was, now in added
        ]
    if not lines:
        return
    raise DecisionRefused(
        "Reconciliation {this} has other breaks than {before} had: {lines}. To accept what is "
        "there now, name the run you have seen: {run} {this}. Nothing was decided.",
        this=run.id, before=run.previous_id, lines=first_of(lines, NAMED, by=". "),
    )  # fmt: skip


def refuse_terms(run: Reconciliation, decision: Decision) -> None:
    """Refuse a decision that lacks a term its kind requires."""
    if not decision.reason.strip():
        raise DecisionRefused("A decision needs a reason: {give_reason}.")
    if decision.by is not None and not decision.by.strip():
        raise DecisionRefused("{by} is empty. Name who decides, or leave it out.")
    match decision.what:
        case Choice.ACCEPT | Choice.PROPOSE if decision.until is None:
            raise DecisionRefused("An acceptance needs its last day: {give_until}.")
        case Choice.ACCEPT | Choice.PROPOSE if (
            decision.until is not None and decision.until < run.as_of
        ):
            raise DecisionRefused(
                "{until} {day} has passed: reconciliation {this} is as of {as_of}. "
                "Name a day from then on.",
                day=decision.until, this=run.id, as_of=run.as_of,
            )  # fmt: skip
        case Choice.ACCEPT | Choice.PROPOSE if decision.up_to is not None and not is_ceiling(
            decision.up_to
        ):
            raise DecisionRefused(
                "{up_to} needs an amount above zero with at most 20 digits before the point and 18 "
                "behind it, as 250.00."
            )
        case Choice.RESOLVE if decision.side not in SIDES:
            raise DecisionRefused("{side} must be one of: {sides}.", sides=", ".join(SIDES))
        case Choice.ASSIGN if not (decision.owner or "").strip():
            raise DecisionRefused("An assignment needs an owner: {give_owner}.")
        case Choice.ASSIGN if decision.until is not None and decision.until < run.as_of:
            raise DecisionRefused(
                "{due} {day} has passed: reconciliation {this} is as of {as_of}. "
                "Name a day from then on.",
                day=decision.until, this=run.id, as_of=run.as_of,
            )  # fmt: skip
