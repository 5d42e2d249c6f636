"""The verdict of a reconciliation and the reasons for it."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from flows.steps.reconcile.break_lines import BreakFigures
from flows.steps.reconcile.report import AsideLine, PreviousLine
from flows.steps.reconcile.roll_forward import RUN_OUT, RollForward
from flows.steps.reconcile.self_test import SelfTest
from flows.steps.reconcile.totals import PROOF_TEXTS, ChainLine, ControlLine, Proof, ProofLine
from flows.steps.totals import in_currency
from schemas.amounts import in_text
from schemas.breaks import Status
from schemas.counting import agree, quantity
from schemas.tables import EXTRACTS, title_of


@dataclass(frozen=True, slots=True)
class Opinion:
    verdict: str
    """One of `report.VERDICTS`."""
    because: tuple[str, ...]


def reached(
    *,
    incomplete: Iterable[str],
    unexplained: Iterable[str],
    breaks: BreakFigures,
    proven: Sequence[Proof],
    previous: PreviousLine | None,
    currencies: Mapping[str, str],
) -> Opinion:
    """Reach a verdict.

    `incomplete` says in words what is missing for one, `unexplained` what does not tie.
    `currencies` are names by CurrenciesId.
    """
    missing = (*incomplete, *breaks.not_looked_at)
    left = tuple(dict.fromkeys(unexplained))
    if missing:
        verdict = "INCOMPLETE"
    elif breaks.open or left:
        verdict = "NOT_RECONCILED"
    elif breaks.accepted or breaks.aside:
        verdict = "RECONCILED_WITH_ACCEPTED"
    else:
        verdict = "RECONCILED"
    because = (
        *missing,
        *left,
        *((quantity(breaks.open, "open break"),) if breaks.open else ()),
        *_run_out(breaks.roll_forward, previous, currencies),
        *_unreadable(proven),
        *_some_are(breaks.outgrown, "accepted break", "not what was accepted"),
        *_some_are(breaks.accepted, "break", "accepted"),
        *breaks.accepted_unseen,
        *_waived(breaks.aside),
    )
    return Opinion(verdict, because)


def untied(
    proven: Iterable[Proof],
    controls: Iterable[ControlLine],
    chain: Iterable[ChainLine],
    breaks: BreakFigures,
    self_test: SelfTest,
    currencies: Mapping[str, str],
) -> Iterator[str]:
    """Yield, in words, whatever leaves something unexplained; `currencies` are names by id."""
    for proof in proven:
        if proof.unexplained:
            of = _in(currencies, proof.currency)
            yield f"{title_of(proof.record)} {proof.field}: {proof.unexplained}{of} unexplained"
    for line in controls:
        if _leaves(line):
            of = _in(currencies, line.currency, line.record)
            yield f"{title_of(line.record)}: a residual in the control totals{of}"
    for step in chain:
        if _leaves(step):
            of = _in(currencies, step.currency, step.record)
            yield f"{title_of(step.record)}, {step.stage}: a residual in the chain{of}"
    for forward in (*breaks.roll_forward, *breaks.accepted_forward, *breaks.aside_forward):
        if forward.residual_rows or forward.residual or forward.residual_gross:
            yield f"the roll-forward does not tie{_in(currencies, forward.currency)}"
    if self_test.missed or self_test.found != self_test.planted:
        yield f"the self-test missed {', '.join(self_test.missed)}"


def _in(names: Mapping[str, str], currency: str, record: str | None = None) -> str:
    """The currency in words; empty for a record kind that has no amounts at all."""
    if currency:
        return f" in {in_currency(currency, names.get(currency))}"
    bare = record in EXTRACTS and not EXTRACTS[record].amounts
    return "" if bare else " without a currency"


def _waived(aside: Iterable[AsideLine]) -> Iterator[str]:
    for one in aside:
        if one.by_rules:
            are = agree(one.breaks, "is", "are")
            yield f"{quantity(one.breaks, 'break')} of before {are} {one.state}: {one.because}"


def _run_out(
    forwards: Sequence[RollForward], previous: PreviousLine | None, names: Mapping[str, str]
) -> Iterator[str]:
    """Say how many acceptances have run out since the previous run, and their money."""
    lines = [
        (forward, line)
        for forward in forwards
        for line in forward.lines
        if line.text == RUN_OUT and line.rows
    ]
    if not lines:
        return
    rows = sum(line.rows for _, line in lines)
    since = "the run before"
    if previous is not None:
        since = f"reconciliation {previous.run} as of {previous.as_of}"
    amounts = "; ".join(_of_money(forward, line, names) for forward, line in lines)
    have = agree(rows, "has", "have")
    yield f"{quantity(rows, 'acceptance')} {have} run out since {since}: {amounts}"


def _of_money(forward: RollForward, line: ProofLine, names: Mapping[str, str]) -> str:
    """The number of breaks of a line in a currency, and their money."""
    currency = in_currency(forward.currency, names.get(forward.currency))
    money = [
        f"{kind} {in_text(amount)}"
        for kind, amount in (("difference", line.amount), ("gross", line.gross))
        if amount
    ]
    if line.unreadable:
        money.append(f"{line.unreadable} not readable")
    return f"{line.rows} in {currency}" + (f" ({', '.join(money)})" if money else "")


def _unreadable(proven: Iterable[Proof]) -> Iterator[str]:
    """Say which amounts of rejected rows are in no sum because they cannot be read."""
    counts = Counter[tuple[str, str]]()
    for one in proven:
        for line in one.lines:
            if line.unreadable and line.text == PROOF_TEXTS[Status.REJECTED]:
                counts[one.record, one.field] += line.unreadable
    for (record, field), rows in counts.items():
        have = agree(rows, "has", "have")
        yield (
            f"{title_of(record)}: {quantity(rows, 'rejected row')} {have} no readable {field}, "
            "so that no total holds what was delivered there"
        )


def _some_are(breaks: int, noun: str, what: str) -> Iterator[str]:
    if breaks:
        yield f"{quantity(breaks, noun)} {agree(breaks, 'is', 'are')} {what}"


def _leaves(line: ControlLine | ChainLine) -> bool:
    return bool(line.residual_rows) or any(line.residual.values())
