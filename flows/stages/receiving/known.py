"""Known: which batch took the bytes of a delivery, and the messages about it."""

import hashlib
import json
from collections.abc import Collection, Iterable, Mapping, Sequence

import psycopg

from connectors.errors import BatchStateError, CorrectionError
from connectors.files.incoming.manifest_entries import entry_text
from connectors.files.profiles.profile import Profile
from connectors.postgres.accounts import OF_OTHERS, visible_batches
from connectors.postgres.batches import ledger
from connectors.postgres.batches.ledger import Extract
from connectors.postgres.batches.other_names import note_names
from flows.stages.receiving.opened import Opened
from flows.stages.receiving.terms import other_terms, stated_otherwise
from schemas.derived.sql_names import listed
from schemas.derived.views import LISTING_FEED
from schemas.reasons import NOT_SHOWN

FOR_OTHERS = f"taken before, in {OF_OTHERS}"
"""The message about bytes for a reader who sees nothing of the batch that has them."""
ASK_WHOSE = "Ask somebody who sees every batch whose rows they are."


def contents_of(opened: Iterable[Opened]) -> list[str]:
    """The hashes of the files that could be read."""
    return [one.stored.sha256 for one in opened if one.stored is not None]


def taken_by(
    connection: psycopg.Connection, feed: str, opened: Iterable[Opened]
) -> dict[str, Extract]:
    """By SHA-256, the extract that brought the bytes of a file before."""
    return ledger.find_extracts(connection, feed, contents_of(opened))


def note_other_names(
    connection: psycopg.Connection,
    opened: Sequence[Opened],
    taken: Mapping[str, Extract],
    batch_id: int,
) -> None:
    """Note which files' bytes were taken under another name, if the caller may know about it.

    `batch_id` is the batch that has what nobody took before, such as the same file twice.
    """
    files = [(one, one.stored.sha256) for one in opened if one.stored]
    others = [
        (taken[sha256].batch_id, sha256, one.name)
        for one, sha256 in files
        if sha256 in taken and taken[sha256].name != one.name
    ]
    visible = visible_batches(connection, {batch for batch, *_ in others})
    doubled = (
        (batch_id, sha256, one.name)
        for one, sha256 in files
        if one.same_as is not None and sha256 not in taken
    )
    note_names(connection, [*(other for other in others if other[0] in visible), *doubled])


def taken_elsewhere(
    connection: psycopg.Connection, profile: Profile, opened: Iterable[Opened]
) -> list[str]:
    """Messages about files whose bytes another feed has taken as records of the same kind.

    They may be meant for both. But if a file was first imported for the wrong tenant, or with a
    copy of a profile, its money is there twice, and neither feed knows of the other. An account
    bound to a tenant is told nothing about batches that are not.
    """
    if profile.compare_only:
        return []  # No row of it becomes a record.
    files = [
        (one.name, one.stored.sha256, one.header.table.name)
        for one in opened
        if one.stored and one.header and not one.refusal
    ]
    names, contents, records = zip(*files, strict=True) if files else ((), (), ())
    found = connection.execute(
        f"""SELECT DISTINCT ON (f.at) f.name, b.id, b.feed, e.name,
            coalesce(%(tenant)s::bigint IS NULL
                OR %(tenant)s = (b.profile::json ->> 'tenant')::bigint, FALSE) AS shown
        FROM unnest(%(names)s::text[], %(contents)s::text[], %(records)s::text[])
            WITH ORDINALITY AS f (name, sha256, record, at)
        JOIN extract e ON e.sha256 = f.sha256 AND e.record = f.record AND e.refused IS NULL
        JOIN batch b ON b.id = e.batch_id
        WHERE b.feed NOT IN (%(feed)s, '{LISTING_FEED}')
            AND (b.profile::json ->> 'compare_only')::boolean IS NOT TRUE
            AND b.state NOT IN ({listed(ledger.TAKEN_BACK)})
            -- A file that has been read and has no row is the same in any feed.
            AND (b.state = '{ledger.State.RECEIVED}' OR EXISTS (SELECT FROM receipt r
                WHERE r.batch_id = b.id AND r.extract_id = e.id AND r.stage = 'stage'))
        ORDER BY f.at, shown DESC, e.id""",
        {
            "tenant": profile.tenant,
            "names": list(names),
            "contents": list(contents),
            "records": list(records),
            "feed": profile.feed,
        },
    ).fetchall()
    return [
        (f"{name}: batch {batch} took these bytes in feed {feed} as {then}" if shown else
         f"{name}: these bytes were taken in another feed {NOT_SHOWN}")
        + ", and they are taken once more. If they are not for both, undo one of the batches."
        for name, batch, feed, then, shown in found
    ]  # fmt: skip


def batch_of(
    connection: psycopg.Connection,
    content_id: str | None,
    opened: Sequence[Opened],
    taken: Collection[str],
) -> ledger.Batch | None:
    """The batch that took this very content.

    Files that no batch has now, because they were refused or their batch undone, have to be in it.
    """
    if content_id is None:
        return None
    missing = [
        one.stored.sha256 if one.stored else one.name
        for one in opened
        if one.stored is None or one.stored.sha256 not in taken
    ]
    stated = {
        one.stored.sha256: entry_text(one.entry) for one in opened if one.stored and one.entry
    }
    return ledger.find_content(connection, content_id, missing, stated)


def known_remark(
    connection: psycopg.Connection,
    batch: ledger.Batch,
    opened: Sequence[Opened],
    taken: Mapping[str, Extract],
    given: Profile,
    profile: Profile,
) -> str:
    """How a batch took this content otherwise than it would be now; empty if it did not.

    `given` is the profile as stated, and `profile` the terms on which the content would be taken.
    """
    return (
        read_otherwise(batch, profile, taken.values())
        + taken_otherwise(batch, given)
        + refused_then(connection, batch, opened, taken)
        + refused_now(opened, taken)
    )


def refused_then(
    connection: psycopg.Connection,
    batch: ledger.Batch,
    opened: Iterable[Opened],
    taken: Collection[str],
) -> str:
    """Which files of this content a batch that has ended refused, and what to do; else empty."""
    names = {
        one.stored.sha256: one.name
        for one in opened
        if one.stored and one.refusal is None and one.stored.sha256 not in taken
    }
    if not names or batch.state not in ledger.ENDED:
        return ""
    refused = {
        name: extract.refused
        for extract in ledger.list_extracts(connection, batch.id)
        if extract.refused and (name := names.get(str(extract.sha256)))
    }
    undo = f"`recon undo {batch.id} --reason ...`"
    as_stated = [name for name, why in refused.items() if why == "incomplete_file"]
    others = [f"{name} ({why})" for name, why in refused.items() if why != "incomplete_file"]
    message = ""
    if as_stated:
        message += (
            f" It refused {', '.join(as_stated)}. Where the file was right and its manifest was "
            f"not, deliver both again; without a manifest, {undo} and import it again."
        )
    if others:
        message += (
            f" It refused {', '.join(others)}: to have it read anew, as by another feed profile, "
            f"{undo} and import it again."
        )
    return message


def refused_now(opened: Iterable[Opened], taken: Collection[str]) -> str:
    return "".join(
        f" {one.name} would be refused now: {one.refusal}"
        for one in opened
        if one.refusal and one.stored and one.stored.sha256 in taken
    )


def refuse_taken_otherwise(
    corrects: int,
    taken: Mapping[str, Extract],
    batches: Mapping[int, ledger.Batch],
    visible: Collection[int],
) -> None:
    """Raise CorrectionError if a file of a correction was taken in as something else.

    `visible` are the batches that may be named.
    """
    for extract in taken.values():
        of = batches[extract.batch_id]
        if corrects not in (of.id, of.corrects):
            if of.id not in visible:
                raise CorrectionError(
                    f"These bytes were {FOR_OTHERS}, and correct nothing of batch {corrects}. "
                    f"{ASK_WHOSE} Nothing was imported."
                )
            what = "none" if of.corrects is None else f"batch {of.corrects}"
            raise CorrectionError(
                f"These bytes were taken in batch {of.id} as {extract.name}, and that batch "
                f"corrects {what}: they are not taken once more. To have them correct batch "
                f"{corrects}, `recon undo {of.id} --reason ...` and import them again. Nothing "
                "was imported."
            )


def read_otherwise(batch: ledger.Batch, given: Profile, extracts: Iterable[Extract]) -> str:
    keys = other_terms(batch, given)
    if given.record and any(one.record not in (None, given.record) for one in extracts):
        keys.append("record")
    if not keys:
        return ""
    return (
        " It was read by the profile and settings of that time, which differ in "
        f"{', '.join(keys)}: to have it read anew, `recon undo {batch.id} --reason ...` and import "
        "it again."
    )


def taken_otherwise(batch: ledger.Batch, given: Profile) -> str:
    """The message about a batch that was opened on other terms than are stated now."""
    terms = stated_otherwise(batch, given)
    if not terms:
        return ""
    return (
        f" It was opened on other terms than are stated now: {terms}. To have it judged by these, "
        f"`recon undo {batch.id} --reason ...` and import it again."
    )


def made_otherwise(connection: psycopg.Connection, given: Profile) -> list[str]:
    """Messages about numbers made from other keys than in the feed's last batch with applied rows.

    A record delivered before gets another number then, so that it is no update when it comes again.
    """
    if not given.keys:
        return []
    row = connection.execute(
        f"""SELECT id, profile FROM batch b WHERE feed = %s AND corrects IS NULL
            AND state NOT IN ({listed(ledger.TAKEN_BACK)})
            AND profile::json ->> 'record' IS NOT DISTINCT FROM %s
            AND EXISTS (SELECT FROM receipt WHERE batch_id = b.id AND stage LIKE 'apply %%')
        ORDER BY id DESC LIMIT 1""",
        [given.feed, given.record],
    ).fetchone()
    if row is None:
        return []
    number = row[0] if visible_batches(connection, [row[0]]) else NOT_SHOWN
    then = json.loads(row[1]).get("fields", {})
    made = {name: (of["key"], of.get("namespace")) for name, of in then.items() if "key" in of}
    return [
        f"{name} is made of another key or namespace than in batch {number}, the last one of feed "
        f"{given.feed}: a record that comes again gets another number and is inserted beside the "
        "first. Where records may come again, undo this batch and those before it (`recon undo`), "
        "and import their files again."
        for name, key in given.keys.items()
        if made.get(name) != ([*key.names], key.namespace)
    ]


def refuse_other_terms(batch: ledger.Batch, given: Profile) -> None:
    """Raise BatchStateError if a batch would continue on other terms than are stated."""
    if batch.state not in ledger.ENDED and (differences := taken_otherwise(batch, given)):
        raise BatchStateError(
            f"This delivery was taken in batch {batch.id}, which is "
            f"{batch.state.replace('_', ' ')}.{differences} Or leave them out to go on "
            "with it as it was opened. Nothing was changed."
        )


def content_id_of(feed: str, opened: Iterable[Opened], taken: Collection[str]) -> str | None:
    """Hash of what was delivered, whatever the names; None if no file can be read.

    A refused file only counts if its bytes are among those that were `taken`.
    """
    hashes = sorted(
        one.stored.sha256
        for one in opened
        if one.stored and (one.refusal is None or one.stored.sha256 in taken)
    )
    if not hashes:
        return None
    return hashlib.sha256(json.dumps([feed, *hashes]).encode()).hexdigest()
