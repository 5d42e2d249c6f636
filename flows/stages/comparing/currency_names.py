"""The codes of records' currencies, to compare with those that a sheet's cells name."""

from collections.abc import Mapping, Sequence

from connectors.currencies import currency_number
from connectors.files.chunks.amount_currencies import amount_currencies
from connectors.files.chunks.chunk import Chunk
from connectors.files.layout.header import Header
from connectors.files.profiles.profile import Profile
from connectors.settings import Settings
from flows.stages.receiving.kept_settings import currencies_of, needs_currencies
from flows.steps.validate.other_currency import NOT_NAMED, NamedCurrencies
from schemas.currency_codes import CODES

Names = Mapping[int, Sequence[str]]
"""The codes of a currency, by its number; most have one."""
NO_NAMES: Names = {}


def currency_names(settings: Settings, header: Header, profile: Profile) -> Names:
    """What RECON_CURRENCIES and the profile say of a sheet's currencies; nothing for a text.

    The table is the one the batch was opened with. Raises SettingsError if it was not kept and
    cannot be used now.
    """
    if not needs_currencies(header):
        return NO_NAMES
    of_feed = profile.fields.get(str(header.table.currency), {}).get("map", {})
    pairs = [
        *of_feed.items(),
        *((code, id_) for id_, code in currencies_of(profile, settings).items()),
    ]
    names: dict[int, list[str]] = {}
    for code, text in sorted(pairs):
        number = currency_number(text)
        if code in CODES and number is not None and code not in names.get(number, ()):
            names.setdefault(number, []).append(code)
    return names


def named_currencies(
    chunk: Chunk, header: Header, profile: Profile, names: Names
) -> NamedCurrencies:
    """The currencies that the cells of a chunk's sound records name."""
    if chunk.currencies is None or not names:
        return NOT_NAMED
    return NamedCurrencies(names, amount_currencies(chunk, header, profile))
