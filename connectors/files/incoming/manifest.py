"""Control manifests: what the sender says was sent, against what arrived and was read."""

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
"""Name of the row count among the compared numbers, besides KEYS and amount fields."""


class Difference(NamedTuple):
    """A number of a file that differs from the stated one."""

    of: str
    """The field of the sum, or ROWS or KEYS."""
    text: str
    """The difference in words, with both numbers."""


class Gap(NamedTuple):
    """A file missing from the delivery or from its manifest, or not as stated."""

    name: str
    refusal: ExtractRefused
    entry: ManifestEntry | None = None
    """What is stated about an absent file."""


@dataclass(frozen=True, slots=True)
class Statement:
    """Everything the manifests of one delivery state."""

    entries: Mapping[str, ManifestEntry]
    """By the source's name."""
    gaps: tuple[Gap, ...]
    """Each has code incomplete_file: absent files, unlisted files, and zips with other bytes."""


def read_manifests(delivery: OpenedDelivery) -> Statement:
    """Read what the delivery's manifests state about its sources.

    Raises DeliveryError for an invalid manifest, and for two that disagree about a file.
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
    """Compare bytes and hash with the file as delivered or with its decompressed content.

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
    """Compare what was read with what is stated; empty if everything ties.

    `rows` counts data records, `sums` is by field and currency, `hash_total` is over the keys.
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
    """The refusal of a file whose numbers differ from its manifest's."""
    return refused("incomplete_file", name, detail=f"{'; '.join(details)} ({entry.manifest})")


def _sum_differences(
    field: str, stated: Mapping[str, Decimal], read: Mapping[str, Decimal] | None
) -> list[str]:
    if read is None:
        return [f"a sum of {field} is stated, which is no amount of this record"]
    if ALL in stated:
        # No amount of money but a control number: the sender added up all currencies.
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
    """The exact sum over all currencies."""
    return reduce(EXACT.add, by_currency.values(), Decimal(0))


def _difference(what: str, stated: object, read: object) -> str:
    numbers = [shown_number(n) if isinstance(n, Decimal) else str(n) for n in (stated, read)]
    return f"{what}: stated {numbers[0]}, the file has {numbers[1]}"


def shown_number(number: Decimal) -> str:
    """The number with at least two decimals if it has any, and no further trailing zeros."""
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
    """Name of the file that holds the source: its own or the zip's."""
    return source.location.rpartition("/")[2]


def _delivered_names(control: Control, delivery: OpenedDelivery) -> set[str]:
    """Names a manifest may list without a loss: extracts and files left alone."""
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
    # If members of a zip are listed, all of its members count as named, whatever else was.
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
    """The gaps of a zip that is listed itself: with other bytes than stated, all its members."""
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
