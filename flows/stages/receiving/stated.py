"""What a footer or a manifest states about a file, compared with what was read."""

from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from itertools import chain, groupby
from operator import attrgetter
from types import MappingProxyType
from typing import NamedTuple

from connectors.files.incoming.manifest import Difference, differences, shown_number, total_of
from connectors.files.incoming.manifest_entries import ALL, ManifestEntry, read_entry
from connectors.files.profiles.profile import Profile
from connectors.postgres.batches.ledger import Extract, Receipt
from flows.steps.totals import NO_CURRENCY, Totals, add
from flows.steps.validate.states import EXCLUDED
from schemas.amounts import KEYS
from schemas.counting import agree, quantity
from schemas.tables import EXTRACTS


class Tied(NamedTuple):
    """How a file agrees with what is stated about it."""

    differences: Sequence[Difference]
    """Empty if everything ties."""
    unread: Mapping[str, int]
    """By summed field: rows whose value was delivered but cannot be read."""
    no_currency: Mapping[str, Decimal] = MappingProxyType({})
    """By field that is stated by currency, and ties over all currencies: the sum of rows whose
    currency cannot be read and so may be any."""

    @property
    def details(self) -> list[str]:
        """Each difference, with both numbers."""
        return [one.text for one in self.differences]

    @property
    def is_refused(self) -> bool:
        """Whether it is not the stated file, because no unread cell can explain the difference."""
        return any(
            not (self.unread.get(one.of) or one.of in self.no_currency) for one in self.differences
        )

    @property
    def unproven(self) -> str | None:
        """Why it may be the stated file although that cannot be told; None if it is or is not."""
        if not self.differences or self.is_refused:
            return None
        return "; ".join(
            f"{'; '.join(one.text for one in of)}, and {self._unread_text(name)}"
            for name, of in groupby(self.differences, key=attrgetter("of"))
        )

    def _unread_text(self, name: str) -> str:
        if not self.unread.get(name):
            amount = shown_number(self.no_currency[name])
            return f"rows with {amount} of it have no currency that can be read"
        rows, part = self.unread[name], "key" if name == KEYS else "amount"
        have = f"{quantity(rows, 'row')} {agree(rows, 'has', 'have')}"
        return f"{have} no {part} there that can be read"


TotalsRead = Mapping[str, Mapping[str, Totals]]
"""Sums of rows, by record kind and state."""


def tied(entry: ManifestEntry, parts: Sequence[TotalsRead], profile: Profile, record: str) -> Tied:
    """Compare what was read with what is stated; `record` is the kind of the file."""
    every = profile.totals == "all"
    by_state = chain.from_iterable(states.items() for part in parts for states in part.values())
    read = add(totals for state, totals in by_state if every or state != EXCLUDED)
    amounts = (EXTRACTS[name].amounts for name in (record, *chain.from_iterable(parts)))
    sums: dict[str, dict[str, Decimal]] = {name: {} for of in amounts for name in of}
    for currency, values in read.amounts.items():
        for name, value in values.items():
            sums[name][currency] = value
    no_currency = {
        name: sums[name][NO_CURRENCY]
        for name, stated in (entry.sums or {}).items()
        if ALL not in stated
        and NO_CURRENCY in sums.get(name, {})
        and total_of(stated) == total_of(sums[name])
    }
    return Tied(differences(entry, read.rows, sums, read.keys), read.unreadable, no_currency)


def tied_in_batch(extract: Extract, profile: Profile, receipts: Iterable[Receipt]) -> Tied | None:
    """The same for a staged file with these receipts; None if nothing is stated about it."""
    if extract.manifest is None:
        return None
    parts = [
        {
            record: {state: Totals.from_json(shape) for state, shape in states.items()}
            for record, states in receipt.totals.items()
        }
        for receipt in receipts
    ]
    return tied(read_entry(extract.manifest), parts, profile, str(extract.record))
