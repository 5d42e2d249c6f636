"""Receive: a delivery becomes a batch, or turns out to be one already."""

import json
import logging
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import psycopg

from connectors.errors import BatchStateError, CorrectionError, EvidenceBroken
from connectors.files.incoming.delivery import find_extracts
from connectors.files.incoming.inbox import hash_of
from connectors.files.incoming.manifest_entries import entry_text
from connectors.files.profiles.profile import Profile
from connectors.files.text.content import canonical_encoding
from connectors.files.text.encodings import is_utf8
from connectors.postgres.accounts import visible_batches
from connectors.postgres.auditing.batch_hashes import received_detail
from connectors.postgres.batches import ledger
from connectors.postgres.batches.batch_reports import folder_of
from connectors.postgres.batches.corrections import lock_corrections
from connectors.postgres.batches.ledger import Extract, State
from connectors.postgres.heartbeat import in_turn
from connectors.postgres.push.gate import note_birth
from connectors.postgres.resume import resumed
from connectors.postgres.trail import add_event
from connectors.settings import Settings
from flows.stages.receiving.kept_settings import with_settings
from flows.stages.receiving.known import (
    ASK_WHOSE,
    FOR_OTHERS,
    batch_of,
    content_id_of,
    contents_of,
    known_remark,
    made_otherwise,
    note_other_names,
    read_otherwise,
    refuse_other_terms,
    refuse_taken_otherwise,
    refused_now,
    taken_by,
    taken_elsewhere,
    taken_otherwise,
)
from flows.stages.receiving.opened import Opened, open_delivery
from flows.stages.receiving.put_right import PutRight, note_back
from flows.stages.receiving.terms import (
    StatedTerms,
    refuse_unapplied,
    secret_constants,
    stored_profile,
    terms_taken,
)
from flows.stages.workspace import Workspace, named_service
from schemas.guards.leases import Held
from schemas.own_columns import PARENT_COLUMN

log = logging.getLogger("recon.receive")


@dataclass(frozen=True, slots=True)
class Received:
    batch_id: int
    new: bool
    """False if the delivery was known; `batch_id` is then the batch that took it."""
    ended: bool
    """The known batch has ended, so there is nothing left to do."""
    messages: tuple[str, ...] = ()


def receive(
    workspace: Workspace, paths: Sequence[str], stated: StatedTerms, files_hash: str | None = None
) -> Received:
    """Archive the files of a delivery and open a batch for them, once for the same bytes.

    Raises what `archived` raises.
    """
    delivery = archived(workspace, paths, stated, files_hash)

    def register() -> Received:
        with workspace.database.connect() as connection:
            return delivery.register(connection)

    return resumed(workspace.database, register)


def archived(
    workspace: Workspace, paths: Sequence[str], stated: StatedTerms, files_hash: str | None = None
) -> "ArchivedDelivery":
    """Archive the files of a delivery for which a batch is to be opened.

    `files_hash` is the hash of the files when an inbox took them; raises EvidenceBroken if it
    differs now. A correction is taken on the terms of the batch it corrects; raises CorrectionError
    if other terms are stated, or if files of repairs are not delivered as a correction.
    Raises SettingsError if a sheet needs a table of currencies that cannot be used.
    """
    given, record, corrects = stated.profile, stated.record, stated.corrects
    if corrects is None and given.change_records:
        raise CorrectionError(
            "--change-records is about rows that repair others, and the delivery corrects no "
            "batch: an ordinary row changes the record with its key anyway. Leave it out, or say "
            "with --corrects which batch. Nothing was imported."
        )
    terms = terms_taken(workspace, stated)
    profile, likely, service = terms.profile, terms.record, terms.service
    if profile.push and service is None:
        service = named_service(workspace.settings.service)
    delivery = find_extracts(paths, workspace.settings.limits)
    opened = open_delivery(workspace, delivery, profile, record, likely)
    if corrects is None:
        refuse_repairs(opened)
    elif profile.encoding is not None and canonical_encoding(profile.encoding) != "utf-8":
        _refuse_utf8(opened, profile.encoding)
    if files_hash is not None and hash_of(contents_of(opened)) != files_hash:
        raise EvidenceBroken(
            f"{paths[0]}: the files were changed after the inbox took them. Nothing of them was "
            "imported. Put the files into the inbox again as they were delivered, and then run "
            "this once more."
        )
    headers = [one.header for one in opened if one.header is not None]
    profile = with_settings(profile, workspace.settings, headers)
    profile = replace(profile, record=record or profile.record)
    return ArchivedDelivery(
        opened, given, profile, corrects, service, workspace.settings, delivery.remarks
    )


def refuse_repairs(opened: Sequence[Opened]) -> None:
    """Raise CorrectionError for files of repairs that would be taken as new records.

    A mistyped key would then overwrite another record, and the rows they repair would stay in error
    for good.
    """
    for one in opened:
        if one.header is not None and one.header.parent_column is not None:
            raise CorrectionError(
                f"{one.name}: its column {PARENT_COLUMN} names rows that it repairs, and the "
                "delivery corrects no batch. Say which one with --corrects (a batch of Prefect: "
                "rerun-batch with corrected_file), or take that column out of the file if its rows "
                "are to be new ones. Nothing was imported."
            )


def _refuse_utf8(opened: Sequence[Opened], encoding: str) -> None:
    """Raise CorrectionError for a file of repairs not saved in the encoding it was written in.

    Text in another encoding is hardly ever valid UTF-8 by chance, and each of its characters beyond
    ASCII would be read as several others. The feed's own profile, stated again, says nothing about
    how somebody saved the file.
    """
    for one in opened:
        if one.header is None or one.header.parent_column is None or one.stored is None:
            continue
        if is_utf8(one.stored.path):
            raise CorrectionError(
                f"{one.name} is saved as UTF-8, and files of the feed are written in {encoding}: "
                f"its characters beyond ASCII would be read as others. Save it as {encoding}, or "
                "as UTF-8 with a byte-order mark, and import it again. Nothing was imported."
            )


@dataclass(slots=True)
class ArchivedDelivery:
    """The archived files of a delivery, and the terms they are taken on."""

    opened: Sequence[Opened]
    given: Profile
    """The profile as stated, before a correction inherits other terms."""
    profile: Profile
    corrects: int | None
    service: str | None
    settings: Settings
    remarks: tuple[str, ...] = ()
    """Remarks about files that were found but do not belong to the delivery."""
    _put_right: PutRight | None = None

    def register(self, connection: psycopg.Connection) -> Received:
        """Open a batch for the files, or find the one that took them.

        Call it again if the connection is lost: the batch is the same. Repairs of kept copies are
        noted even if the delivery is refused.
        """
        try:
            return self._registered(connection)
        except (BatchStateError, CorrectionError):
            if self._put_right is not None:
                self._put_right.note(connection, None)
            raise

    def _registered(self, connection: psycopg.Connection) -> Received:
        with (
            # Two runs that receive one delivery at the same time must not open two batches.
            in_turn(connection, Held.RECEIVE, "Saying which batch a delivery is"),
            connection.transaction(),
        ):
            note_birth(connection)
            # Asked once: if the answer to the commit is lost, the ledger knows the contents
            # already.
            self._put_right = self._put_right or PutRight(connection, self.opened)
            note_back(connection, self.settings.archive, self.opened)
            taken = taken_by(connection, self.profile.feed, self.opened)
            received = _register(connection, self, taken)
            note_other_names(connection, self.opened, taken, received.batch_id)
            put_back = self._put_right.note(connection, received.batch_id)
            return replace(received, messages=received.messages + put_back + self.remarks)


def _register(
    connection: psycopg.Connection, delivery: ArchivedDelivery, taken: Mapping[str, Extract]
) -> Received:
    opened, profile = delivery.opened, delivery.profile
    batches = {
        batch.id: batch
        for batch in ledger.batches_of(connection, {one.batch_id for one in taken.values()})
    }
    named = ledger.find_names(connection, profile.feed, [one.name for one in opened])
    content_id = content_id_of(profile.feed, opened, taken)
    known = batch_of(connection, content_id, opened, taken)
    others = {one.batch_id for one in named.values()} | ({known.id} if known else set())
    visible = visible_batches(connection, {*batches} | others)
    if delivery.corrects is not None:
        refuse_taken_otherwise(delivery.corrects, taken, batches, visible)
    if known is not None:
        if known.id not in visible:
            raise _taken_for_others()
        return _known(connection, known, delivery, taken)
    messages, fresh, earlier = [], [], []
    for one in opened:
        extract = taken.get(one.stored.sha256) if one.stored else None
        if extract:
            earlier.append(extract.batch_id)
            of = batches[extract.batch_id]
            if of.id not in visible:
                messages.append(f"{one.name}: its bytes were {FOR_OTHERS}; nothing is done.")
                continue
            messages.append(
                f"{one.name}: these bytes were taken in batch {of.id} as {extract.name}; nothing "
                f"to do.{read_otherwise(of, profile, [extract])}"
                f"{taken_otherwise(of, delivery.given)}{refused_now([one], taken)}"
            )
            continue
        if one.same_as is not None:
            messages.append(one.same_bytes_message)
            continue
        used = named.get(one.name)
        if used and one.stored and used.sha256 != one.stored.sha256 and used.batch_id in visible:
            messages.append(
                f"{one.name}: this name was delivered in batch {used.batch_id} with other "
                "content; it is taken as a new extract."
            )
        messages += [f"{one.name}: {remark}" for remark in one.remarks]
        fresh.append(one)
    if earlier and not fresh:
        if not visible.issuperset(earlier):
            raise _taken_for_others()
        batch = batches[max(earlier)]
        refuse_other_terms(batch, delivery.given)
        return Received(batch.id, False, batch.state in ledger.ENDED, tuple(messages))
    if delivery.corrects is not None:
        # Checked again after the files were read: the batch may have been taken back since.
        lock_corrections(connection, delivery.corrects)
        refuse_unapplied(ledger.find_batch(connection, delivery.corrects))
    else:
        messages += made_otherwise(connection, profile)
    messages += taken_elsewhere(connection, profile, fresh)
    terms, service = stored_profile(profile), delivery.service
    service = service and ledger.known_service(connection, service)
    batch_id = ledger.add_batch(
        connection,
        content_id=content_id or "",
        feed=profile.feed,
        profile=terms,
        corrects=delivery.corrects,
        service=service,
        # A restored database gives out numbers of batches it lost, whose reports still exist.
        is_used=lambda number: os.path.lexists(folder_of(delivery.settings.reports, number)),
    )
    ledger.add_secret_constants(connection, batch_id, secret_constants(profile))
    ledger.add_extracts(connection, [_extract(batch_id, one) for one in fresh])
    detail = received_detail(connection, batch_id, terms, service)
    add_event(connection, f"batch {State.RECEIVED.value}", batch_id=batch_id, detail=detail)
    return Received(batch_id, True, False, tuple(messages))


def _taken_for_others() -> BatchStateError:
    """The refusal of a delivery about which the caller may not be told more."""
    return BatchStateError(
        f"These bytes were {FOR_OTHERS}, and are not taken once more: nothing was imported. "
        f"{ASK_WHOSE}"
    )


def _known(
    connection: psycopg.Connection,
    batch: ledger.Batch,
    delivery: ArchivedDelivery,
    taken: Mapping[str, Extract],
) -> Received:
    refuse_other_terms(batch, delivery.given)
    ended = batch.state in ledger.ENDED
    message = (
        f"This delivery was taken in batch {batch.id} on {batch.opened_at:%Y-%m-%d %H:%M} UTC "
        f"and is {batch.state.replace('_', ' ')}; "
        + ("nothing to do." if ended else "going on with it.")
    )
    message += known_remark(
        connection, batch, delivery.opened, taken, delivery.given, delivery.profile
    )
    if delivery.service and batch.service is None:
        message += f" It was not to be pushed; `recon push {batch.id}` does it."
    # A run that took the delivery and died may not have said so.
    elsewhere = () if ended else taken_elsewhere(connection, delivery.profile, delivery.opened)
    return Received(batch.id, False, ended, (message, *elsewhere))


def _extract(batch_id: int, one: Opened) -> Extract:
    return Extract(
        id=0,
        batch_id=batch_id,
        name=one.name,
        sha256=one.stored.sha256 if one.stored else None,
        bytes=one.stored.bytes if one.stored else None,
        record=one.header.table.name if one.header else None,
        header=json.dumps(one.header.names) if one.header else None,
        manifest=entry_text(one.entry) if one.entry else None,
        refused=one.refusal.code if one.refusal else None,
        message=str(one.refusal) if one.refusal else None,
        pieces=one.stored.pieces if one.stored else None,
    )
