"""Control manifests: what the sender says was sent, against what arrived and what was read."""

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from functools import reduce
from typing import NamedTuple

from connectors.errors import DeliveryError, ExtractRefused
from connectors.files.archived.archive import Stored
from connectors.files.incoming.delivery import Control, OpenedDelivery, Source, open_source
from connectors.files.incoming.manifest_entries import ALL, ManifestEntry, Sums, entries_of
from connectors.files.incoming.stores import unreadable
from connectors.files.text.content import refused
from connectors.printable import shown
from schemas.amounts import EXACT, KEYS

READ_BYTES = 1 << 20
ROWS = "rows"
"""What a number that is stated may be of, beside KEYS and amount fields."""


class Difference(NamedTuple):
    """One number of a file that is not the one stated."""

    of: str
    """The field whose sum it is, or ROWS or KEYS."""
    text: str
    """What it is, with both numbers."""


class Gap(NamedTuple):
    """A file of the manifest that is not in the delivery as stated, or the other way round."""

    name: str
    refusal: ExtractRefused
    entry: ManifestEntry | None = None
    """What is stated of one that is absent."""


@dataclass(frozen=True, slots=True)
class Statement:
    """All that the manifests of one delivery say."""

    entries: Mapping[str, ManifestEntry]
    """By the source's name."""
    gaps: tuple[Gap, ...]
    """Each with code incomplete_file: absent files, files not listed, zips of other bytes."""


def read_manifests(delivery: OpenedDelivery) -> Statement:
    """What the manifests found with the delivery say of its sources.

    Raises DeliveryError for a manifest that is not one, and for two that differ about a file.
    """
    entries: dict[str, ManifestEntry] = {}
    gaps: list[Gap] = []
    for control in delivery.controls:
        stated = entries_of(control.source)
        covered = [source for source in delivery.sources if _covers(control, source)]
        for source in covered:
            entry = stated.get(_called(control, source))
            if entry is None:
                continue
            earlier = entries.setdefault(source.name, entry)
            if earlier.facts != entry.facts:
                raise DeliveryError(
                    f"{source.name}: {earlier.manifest} and {entry.manifest} state different "
                    "things. Keep the right one."
                )
        gaps += _gaps(control, stated, covered, _delivered_names(control, delivery))
    return Statement(entries, tuple(sorted(gaps, key=lambda gap: gap.name)))


def check_bytes(entry: ManifestEntry, stored: Stored) -> None:
    """Compare bytes and hash, of the file as delivered or of its decompressed content.

    Raises ExtractRefused `incomplete_file` with both values.
    """
    sizes = (stored.delivered_bytes, stored.bytes)
    hashes = (stored.delivered_sha256, stored.sha256)
    details = []
    if entry.bytes is not None and entry.bytes not in sizes:
        details.append(_difference("bytes", entry.bytes, _both(sizes)))
    if entry.sha256 is not None and entry.sha256 not in hashes:
        details.append(_difference("sha256", entry.sha256, _both(hashes)))
    if details:
        raise incomplete(entry, stored.name, details)


def differences(
    entry: ManifestEntry, rows: int, sums: Sums, hash_total: str | int
) -> list[Difference]:
    """What was read against what is stated; empty: all tie.

    `rows` counts data records, `sums` is by field and currency, `hash_total` is of the keys.
    """
    found = []
    if entry.rows is not None and entry.rows != rows:
        found.append(Difference(ROWS, _difference("rows", entry.rows, rows)))
    for field, stated in (entry.sums or {}).items():
        texts = _sum_differences(field, stated, sums.get(field))
        found += (Difference(field, one) for one in texts)
    if entry.hash_total is not None and not _same_number(entry.hash_total, str(hash_total)):
        found.append(Difference(KEYS, _difference("hash total", entry.hash_total, hash_total)))
    return found


def incomplete(entry: ManifestEntry, name: str, details: Sequence[str]) -> ExtractRefused:
    """The refusal of a file whose numbers are not those of its manifest."""
    return refused("incomplete_file", name, detail=f"{'; '.join(details)} ({entry.manifest})")


def _sum_differences(
    field: str, stated: Mapping[str, Decimal], read: Mapping[str, Decimal] | None
) -> list[str]:
    if read is None:
        return [f"a sum of {field} is stated, which is no amount of this record"]
    if ALL in stated:
        # Not an amount of money but a control number: the sender added up all currencies.
        total = total_of(read)
        return [] if stated[ALL] == total else [_difference(f"sum of {field}", stated[ALL], total)]
    return [
        _difference(f"sum of {field} in {_in(currency)}", expected, actual)
        for currency in sorted({*stated, *read})
        if (expected := stated.get(currency, Decimal(0)))
        != (actual := read.get(currency, Decimal(0)))
    ]


def _in(currency: str) -> str:
    return f"currency {shown(currency, 20)}" if currency else "no currency"


def total_of(by_currency: Mapping[str, Decimal]) -> Decimal:
    """The sum over all currencies, no digit of it lost."""
    return reduce(EXACT.add, by_currency.values(), Decimal(0))


def _difference(what: str, stated: object, read: object) -> str:
    numbers = [shown_number(n) if isinstance(n, Decimal) else str(n) for n in (stated, read)]
    return f"{what}: stated {numbers[0]}, the file has {numbers[1]}"


def shown_number(number: Decimal) -> str:
    """With hundredths if with any decimals, and no zeros behind them."""
    text = f"{number:f}0" if "." in f"{number:f}" else f"{number:f}"
    return re.sub(r"(\.\d\d\d*?)0+$", r"\1", text)


def _both(values: tuple[object, object]) -> str:
    delivered, unpacked = values
    return str(delivered) if delivered == unpacked else f"{delivered}, unpacked {unpacked}"


def _same_number(one: str, other: str) -> bool:
    try:
        return Decimal(one) == Decimal(other)
    except InvalidOperation:
        return one == other


def _covers(control: Control, source: Source) -> bool:
    if control.prefix:
        within = source.key.startswith(control.prefix)
        here = within and source.location == control.source.location
        return here and control.of_file in (None, _called(control, source))
    if source.folder != control.source.folder:
        return False
    return control.of_file is None or _file_key(source) == control.of_file


def _called(control: Control, source: Source) -> str:
    return source.key.removeprefix(control.prefix)


def _file_key(source: Source) -> str:
    """Name of the file that holds the source: its own, or the zip's."""
    return source.location.rpartition("/")[2]


def _delivered_names(control: Control, delivery: OpenedDelivery) -> set[str]:
    """What the manifest may list without a loss: extracts, and files that are left alone."""
    there = [source for source in delivery.sources if source.folder == control.source.folder]
    return {_called(control, source) for source in there}.union(
        name.removeprefix(control.prefix) for name in delivery.left_alone
    )


def _gaps(
    control: Control,
    stated: Mapping[str, ManifestEntry],
    covered: list[Source],
    delivered: set[str],
) -> list[Gap]:
    by_name = {_called(control, source): source for source in covered}
    by_file: dict[str, list[Source]] = {}
    for source in covered:
        if source.member is not None and not control.prefix:
            by_file.setdefault(_file_key(source), []).append(source)
    # Of a zip whose members are listed all members are there, whatever else was named.
    zips = by_file.keys() & {name.partition("/")[0] for name in stated}
    gaps = []
    for name, entry in stated.items():
        if name in by_file:
            gaps += _check_zip(name, entry, by_file[name])
        elif name not in delivered and (control.is_named(name) or name.partition("/")[0] in zips):
            detail = f"listed in {control.source.name}, but not delivered"
            where = shown(f"{control.prefix}{name}")
            gaps.append(Gap(where, refused("incomplete_file", where, detail=detail), entry))
    for name, source in by_name.items():
        is_named = control.is_named(name) or _file_key(source) in zips
        if is_named and not {name, _file_key(source)} & stated.keys():
            detail = f"delivered, but not listed in {control.source.name}"
            gaps.append(Gap(source.name, refused("incomplete_file", source.name, detail=detail)))
    return gaps


def _check_zip(name: str, entry: ManifestEntry, members: list[Source]) -> list[Gap]:
    """A zip that is listed itself has other bytes than stated: none of its members is proved."""
    if (entry.rows, entry.sums, entry.hash_total) != (None, None, None):
        raise DeliveryError(
            f"{entry.manifest}: rows and sums of {shown(name)} belong to its members. "
            f"State them under {shown(members[0].key)}."
        )
    if entry.sha256 is None and entry.bytes is None:
        return []
    size, digest = 0, hashlib.sha256()
    location = members[0].location
    try:
        with open_source(Source(shown(name), location, members[0].folder, name)) as file:
            while piece := file.read(READ_BYTES):
                size += len(piece)
                digest.update(piece)
    except OSError as error:
        raise unreadable(location, error) from error
    details = []
    if entry.bytes not in {None, size}:
        details.append(_difference(f"bytes of {shown(name)}", entry.bytes, size))
    if entry.sha256 not in {None, digest.hexdigest()}:
        details.append(_difference(f"sha256 of {shown(name)}", entry.sha256, digest.hexdigest()))
    if not details:
        return []
    return [Gap(member.name, incomplete(entry, member.name, details)) for member in members]
