"""Open a delivery: archive its files, and read their headers."""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from connectors.errors import ExtractRefused
from connectors.files.archived.archive import Stored, store_all
from connectors.files.incoming.delivery import OpenedDelivery
from connectors.files.incoming.manifest import check_bytes, incomplete, read_manifests
from connectors.files.incoming.manifest_entries import ManifestEntry
from connectors.files.layout.footer import with_footer
from connectors.files.layout.header import Header, remarks_on_unnamed
from connectors.files.layout.known_headers import KnownHeaders
from connectors.files.profiles.profile import Profile
from connectors.files.sheets.workbook import check_workbook
from connectors.files.text.content import Content, open_content, open_kept
from connectors.recovery import reach
from connectors.settings import Settings
from flows.stages.receiving.kept import headers_of
from flows.stages.rows_above import check_rows_above
from flows.stages.workspace import Workspace
from schemas.counting import grouped, quantity
from schemas.tables import EXTRACTS

log = logging.getLogger("recon.receive")


@dataclass(frozen=True, slots=True)
class Opened:
    """A file of a delivery, as far as it could be opened."""

    name: str
    stored: Stored | None = None
    header: Header | None = None
    refusal: ExtractRefused | None = None
    entry: ManifestEntry | None = None
    """The entry of the file in a control manifest."""
    remarks: tuple[str, ...] = ()
    """Sentences on what a person sees differently in the file, such as merged cells."""
    same_as: str | None = None
    """The file of the delivery with the same bytes, which is taken instead of this one."""

    @property
    def same_bytes_message(self) -> str:
        """The message about a file that is not taken because of `same_as`."""
        return f"{self.name}: the same bytes as {self.same_as} in this delivery; nothing to do."

    def content(self, profile: Profile) -> Content:
        """Its archived content, read in the way its feed writes files."""
        assert self.stored is not None
        return open_content(
            self.stored.path,
            profile.encoding,
            name=self.name,
            sheet=profile.sheet,
            formulas=profile.formulas,
        )


def open_delivery(
    workspace: Workspace,
    delivery: OpenedDelivery,
    profile: Profile,
    record: str | None,
    likely: str | None = None,
) -> list[Opened]:
    """Archive the files of a delivery and read their headers, as far as they can be opened.

    Each file is of the kind `record`. If that is None, it is of the kind `likely` (such as the kind
    of the corrected batch) if its header allows that, else of the kind that its header says.
    """
    opened = []
    for one in each_opened(
        workspace.settings,
        delivery,
        profile,
        (record or likely, record),
        archive=workspace.settings.archive,
        progress=partial(workspace.progress, "receive"),
    ):
        _log(one)
        reach("open")
        opened.append(one)
    return opened


def each_opened(
    settings: Settings,
    delivery: OpenedDelivery,
    profile: Profile,
    kinds: Sequence[str | None],
    *,
    archive: Path,
    lasting: bool = True,
    progress: Callable[[int, int | None], None],
) -> Iterator[Opened]:
    """The files of a delivery by name, then those that are listed but were not delivered.

    Each is of the first of `kinds` that its header allows; None: the kind that its header says. Its
    content is in the folder `archive`, and `lasting` requires it to be there durably at the end. Of
    files with the same bytes, only the first readable one is to be taken.
    """
    statement = read_manifests(delivery)
    unlike_manifest = {gap.name: gap for gap in statement.gaps}
    headers = headers_of(profile, settings)
    contents: dict[str, str] = {}
    archived = store_all(delivery.sources, archive, settings.limits, lasting=lasting)
    for number, (source, stored) in enumerate(archived):
        progress(number, len(delivery.sources))
        entry = statement.entries.get(source.name)
        first, *others = dict.fromkeys(kinds)
        one = _open_stored(source.name, stored, settings, profile, headers, first, entry=entry)
        for kind in others if one.refusal else ():
            other = _open_stored(source.name, stored, settings, profile, headers, kind, entry=entry)
            one = one if other.refusal else other
        unlike = unlike_manifest.pop(source.name, None)
        if unlike and not one.refusal:
            one = replace(one, refusal=unlike.refusal)
        yield _once(one, contents, statement.entries)
    for name, gap in unlike_manifest.items():
        yield Opened(name, refusal=gap.refusal, entry=gap.entry)
    progress(len(delivery.sources), len(delivery.sources))


def _once(one: Opened, contents: dict[str, str], stated: Mapping[str, ManifestEntry]) -> Opened:
    """A file, or that another brings the same bytes; `contents` are names by SHA-256.

    If two different statements are made about one content, the second file is refused.
    """
    if one.stored is None or one.refusal is not None:
        return one
    name = contents.setdefault(one.stored.sha256, one.name)
    if name == one.name:
        return one
    entry, other = stated.get(one.name), stated.get(name)
    if entry is None or (other is not None and other.facts == entry.facts):
        return replace(one, same_as=name)
    what = "nothing" if other is None else "something else"
    detail = f"{name} has the same bytes, of which {what} is stated"
    return replace(one, refusal=incomplete(entry, one.name, [detail]))


def _log(opened: Opened) -> None:
    if opened.refusal is not None:
        log.warning("%s: refused (%s)", opened.name, opened.refusal.code)
    elif opened.same_as is not None:
        log.info("%s", opened.same_bytes_message)
    elif opened.stored and opened.header:
        size = quantity(opened.stored.bytes, "byte", grouped)
        record, sha256 = opened.header.table.name, opened.stored.sha256
        log.info("%s: %s, %s, kept as %s", opened.name, record, size, sha256)


def _open_stored(
    name: str,
    stored: Stored | ExtractRefused,
    settings: Settings,
    profile: Profile,
    headers: KnownHeaders,
    record: str | None,
    *,
    entry: ManifestEntry | None,
) -> Opened:
    """Read the header of a stored file; an unusable file is returned with its refusal."""
    if isinstance(stored, ExtractRefused):
        return Opened(name, refusal=stored)
    try:
        if entry is not None:
            check_bytes(entry, stored)
        content = open_kept(
            stored.evidence,
            profile.encoding,
            name=name,
            sheet=profile.sheet,
            formulas=profile.formulas,
        )
        sheets = check_workbook(content, settings.limits).remarks if content.workbook else ()
        header = headers.read(content, EXTRACTS[record] if record else None)
        check_rows_above(content, header, profile, settings.limits)
        if header.footer is not None:
            entry = with_footer(entry, header.footer, name)
        remarks = [f"{'; '.join(sheets)}. All cells are read as they are."] if sheets else []
        own = slice(header.line_width)  # Not the names carried from lines above the records.
        remarks += remarks_on_unnamed(header.names[own], header.fields[own], profile)
        return Opened(name, stored, header, entry=entry, remarks=tuple(remarks))
    except ExtractRefused as refusal:
        return Opened(name, stored, refusal=refusal)
