"""Kept content of a batch: opened with its proof, and proven whole when a batch continues.

A content may be missing only if housekeeping says it removed it. Any other content that is not as
delivered stops the batch: removed, cut, altered, swapped, a link or a folder in its place.
"""

import os
from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from datetime import date

import psycopg

from connectors.errors import BatchStateError, EvidenceBroken, ExtractRefused
from connectors.files.archived.archive import kept_path
from connectors.files.layout.header import Header
from connectors.files.layout.known_headers import KnownHeaders
from connectors.files.profiles.profile import Profile
from connectors.files.text.content import Content, open_kept
from connectors.files.text.evidence import Evidence, prove
from connectors.postgres.auditing.batch_hashes import (
    altered_since_applied,
    altered_since_held,
    is_profile_altered,
)
from connectors.postgres.auditing.removals import removed_contents
from connectors.postgres.batches import ledger
from connectors.postgres.batches.corrections import reads_staged, unrepaired
from connectors.postgres.batches.digests import (
    changed_receipts,
    differing,
    kept_digests,
    recorded,
    row_digests,
)
from connectors.postgres.batches.ledger import Extract
from connectors.settings import Settings
from flows.stages.chunk_ranges import STAGE
from flows.stages.receiving.kept_settings import LIMITS
from flows.stages.receiving.terms import prove_constants
from flows.stages.workspace import Workspace
from schemas.counting import first_of
from schemas.derived.sql_names import staged_name
from schemas.tables import EXTRACTS

IMPORT_AGAIN = (
    "Import the same file again: that puts its bytes back and is taken as known; then run "
    "this command again. `recon archive verify` lists every kept file that does not match."
)

FAULTS_NAMED = 3
"""The number of alterations that an error describes; it counts the others."""
PUT_BACK = "Put back what stood there; or undo the batch and import its files again."
"""The way out for somebody who altered a batch in the database."""


def evidence_of(workspace: Workspace, extract: Extract) -> Evidence:
    """What the ledger says about the kept content of an extract."""
    assert extract.sha256 is not None
    assert extract.bytes is not None
    return Evidence(
        path=kept_path(workspace.settings.archive, extract.sha256),
        sha256=extract.sha256,
        bytes=extract.bytes,
        pieces=extract.pieces,
        about=f"{extract.name} of batch {extract.batch_id}",
        remedy=removed_remedy(extract) if is_cleared(workspace, extract) else IMPORT_AGAIN,
    )


def removed_remedy(extract: Extract) -> str:
    """What to do if an extract's content is needed that housekeeping removed."""
    assert extract.cleared_at is not None
    return (
        f"{removed_on(extract.cleared_at)} Import the file again where "
        "it is needed: its bytes are kept anew."
    )


def removed_on(day: date) -> str:
    """The sentence about a content that is missing as it should be."""
    return f"Housekeeping removed the kept file on {day:%Y-%m-%d}."


def is_cleared(workspace: Workspace, extract: Extract) -> bool:
    """Whether housekeeping removed an extract's content, and nobody delivered it again."""
    return extract.sha256 in cleared_of(workspace, [extract])


def cleared_of(workspace: Workspace, extracts: Iterable[Extract]) -> Collection[str]:
    """Hashes of extracts' contents that housekeeping removed, according to the trail."""
    gone = {
        one.sha256
        for one in extracts
        if one.sha256 is not None
        and one.cleared_at is not None
        and not os.path.lexists(kept_path(workspace.settings.archive, one.sha256))
    }
    if not gone:
        return gone
    with workspace.database.connect() as connection:
        return removed_contents(connection, gone).keys()


def open_extract_kept(workspace: Workspace, extract: Extract, profile: Profile) -> Content:
    """The kept content of an extract; raises EvidenceBroken if it is not as delivered."""
    return open_kept(
        evidence_of(workspace, extract),
        profile.encoding,
        name=extract.name,
        sheet=profile.sheet,
        formulas=profile.formulas,
    )


def headers_of(profile: Profile, settings: Settings, *, taken: bool = False) -> KnownHeaders:
    """A reader of stored headers by their feed's profile; `taken`: without judging them."""
    limits = replace(settings.limits, **profile.kept_settings.get(LIMITS, {}))
    return KnownHeaders(profile, limits, taken=taken)


def open_archived(
    workspace: Workspace, extract: Extract, profile: Profile
) -> tuple[Content, Header]:
    """The kept content of an extract that was taken in, and its header.

    If its record kind was redefined since, a column whose field is gone has no field.
    """
    content = open_extract_kept(workspace, extract, profile)
    record = EXTRACTS[extract.record] if extract.record else None
    headers = headers_of(profile, workspace.settings, taken=record is not None)
    return content, headers.read(content, record)


def open_to_stage(
    workspace: Workspace, extract: Extract, profile: Profile, headers: KnownHeaders | None = None
) -> tuple[Content, Header]:
    """Like `open_archived`, to read rows by the present definition; raises BatchStateError.

    `headers` are those of this profile.
    """
    content = open_extract_kept(workspace, extract, profile)
    headers = headers or headers_of(profile, workspace.settings)
    record = EXTRACTS[extract.record] if extract.record else None
    try:
        return content, headers.read(content, record)
    except ExtractRefused as refusal:
        raise BatchStateError(
            f"{extract.name} of batch {extract.batch_id} was taken in as {extract.record}, and "
            f"does not fit the definition of that any more: {refusal} Define the record kind so "
            "that the file fits, then run this again; or undo the batch."
        ) from refusal


def prove_batch(workspace: Workspace, connection: psycopg.Connection, batch_id: int) -> None:
    """Hash all kept content of a batch; raises EvidenceBroken for the first that differs."""
    prove_profile(connection, batch_id)
    prove_extracts(workspace, ledger.list_extracts(connection, batch_id))


def prove_profile(connection: psycopg.Connection, batch_id: int) -> None:
    """Raise EvidenceBroken if a batch's profile is not the one it was received with."""
    if is_profile_altered(connection, batch_id):
        raise EvidenceBroken(
            f"The feed profile of batch {batch_id} (table batch, column profile) is not the one "
            "that it was received with: somebody altered it in the database. Nothing was read by "
            "it. Put back what stood there; or undo the batch and import its files again."
        )
    prove_constants(connection, batch_id)


def prove_held(connection: psycopg.Connection, batch_id: int) -> None:
    """Raise EvidenceBroken if a batch was altered since it was held."""
    altered = altered_since_held(connection, batch_id)
    if altered:
        raise EvidenceBroken(
            f"Since batch {batch_id} was held, somebody altered {' and '.join(altered)} in the "
            f"database. Nothing was decided. `recon audit verify` tells more; put back what stood "
            f"there, or `recon discard {batch_id} --reason ...` and import its files again."
        )


def prove_staged(connection: psycopg.Connection, batch_id: int) -> None:
    """Raise EvidenceBroken if the rows to be applied or sent are not those that were staged.

    Rows that an earlier version staged without hashing them are accepted as they are.
    """
    recorded_digests = recorded(connection, [batch_id])
    if recorded_digests[batch_id] is None:
        return
    kept = kept_digests(connection, [batch_id])
    records = {record for _, record in kept}
    for receipt in ledger.list_receipts(connection, batch_id, STAGE, with_clues=False):
        records |= receipt.totals.keys()
    # An account that is not shown secrets cannot hash rows that may hold one.
    records = {one for one in records if reads_staged(connection, staged_name(EXTRACTS[one]))}
    then = {of: digest for of, digest in kept.items() if of[1] in records}
    now = {
        of: digest
        for record in records
        for of, digest in row_digests(connection, EXTRACTS[record], [batch_id]).items()
    }
    altered = [record for (_, record), _ in differing(then, now)]
    if changed_receipts(connection, recorded_digests):
        what = "the receipts that say what was staged (table receipt)"
    elif altered:
        what = f"rows that were staged (table {staged_name(EXTRACTS[altered[0]])})"
    else:
        return
    raise EvidenceBroken(
        f"Since batch {batch_id} was staged, somebody altered {what} in the database. Nothing more "
        "was decided, applied or sent. Put back what stood there, then run this again. Else, if "
        f"nothing of it is applied yet, `recon rerun {batch_id} --from-start` reads its files "
        "again; if something is, undo the batch and import them again."
    )


def prove_to_send(connection: psycopg.Connection, batch_id: int) -> None:
    """Raise EvidenceBroken if the rows to be sent are not those that were staged and applied."""
    prove_staged(connection, batch_id)
    altered = [*altered_since_applied(connection, batch_id), *unrepaired(connection, [batch_id])]
    if altered:
        raise EvidenceBroken(
            f"Since the rows of batch {batch_id} were applied, somebody altered in the database "
            f"what became of them: {first_of(altered, FAULTS_NAMED, by='; ')}. Nothing more of it "
            f"is sent. `recon audit verify` tells more. {PUT_BACK}"
        )


def prove_extracts(workspace: Workspace, extracts: Iterable[Extract]) -> None:
    """Hash extracts' contents, each once; raises EvidenceBroken for the first that differs."""
    for _, fault in unproven(workspace, extracts):
        raise fault


def unproven(
    workspace: Workspace, extracts: Iterable[Extract], *, remedy: str | None = None
) -> Iterator[tuple[Extract, EvidenceBroken]]:
    """The extracts whose kept contents do not match, with the error of each.

    `remedy` says what to do; None: import the same file again.
    """
    extracts = list(extracts)
    proven: set[str] = set()
    cleared = cleared_of(workspace, extracts)
    for extract in extracts:
        wanted = extract.sha256 is not None and extract.refused is None
        if not wanted or extract.sha256 in proven or extract.sha256 in cleared:
            continue
        assert extract.sha256 is not None
        evidence = evidence_of(workspace, extract)
        try:
            prove(evidence if remedy is None else replace(evidence, remedy=remedy))
        except EvidenceBroken as fault:
            yield extract, fault
        else:
            proven.add(extract.sha256)
