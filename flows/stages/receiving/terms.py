"""Terms: what a batch was opened with, and what a correction inherits from the batch it corrects.

A correction is part of the delivery it repairs: it belongs to the same feed, may only write the
same tenant, has the same budget, reads files the same way and goes to the same service.
"""

import json
from dataclasses import asdict, dataclass, replace
from typing import Any

import psycopg

from connectors.errors import BatchStateError, CorrectionError, EvidenceBroken, ProfileError
from connectors.files.profiles.profile import BY_KEY, DEFAULT, Profile
from connectors.files.text.linear_patterns import check_pattern
from connectors.postgres.auditing.batch_hashes import are_constants_altered
from connectors.postgres.batches import ledger
from connectors.postgres.batches.ledger import IN_DATABASE, TAKEN_BACK, Batch, State
from connectors.printable import shown
from flows.stages.receiving.kept_settings import (
    broken_settings,
    inherited,
    other_settings,
    unknown_settings,
)
from flows.stages.workspace import Workspace
from schemas.tables import EXTRACTS, SECRETS

KEPT = "(kept in secret_constant)"
STATED = ("tenant", "budget_errors", "budget_rate", "push")
"""What may be stated for one delivery, besides how its feed writes files."""
_LIMITS = {"tenant": "tenant", "budget_errors": "max-errors", "budget_rate": "max-error-rate"}
"""Terms among them that let a row, or a batch, into a target -> their names on import."""
VALIDATED_BY = ("duplicate", "reference", "complete")
"""Terms by which rows of a delivery are compared, including rows of its corrections."""

CHANGE_RECORDS = "change_records"
"""Stated for one correction only, and not for those that correct it."""


@dataclass(frozen=True, slots=True)
class StatedTerms:
    """The terms stated for a delivery."""

    profile: Profile = DEFAULT
    record: str | None = None
    """The kind of its files; None: what their headers say."""
    corrects: int | None = None
    """The batch whose rejects it repairs."""


@dataclass(frozen=True, slots=True)
class Inherited:
    """The terms on which a delivery is taken; a correction inherits most of them."""

    profile: Profile
    record: str | None
    """The kind of its rows, unless their header contradicts."""
    service: str | None
    """The service of the batch it corrects, to which it goes too."""


def restored_profile(batch: Batch) -> Profile:
    """The profile a batch was opened with; raises BatchStateError if another version wrote it."""
    values = stored_terms(batch)
    unknown = sorted(values.keys() - Profile.__dataclass_fields__.keys())
    unknown += unknown_settings(values.get("kept_settings", {}))
    if unknown:
        raise BatchStateError(
            f"Batch {batch.id} was opened by another version of recon, on terms that this one does "
            f"not know: {', '.join(unknown)}. Go on with that version. Nothing was changed."
        )
    named = ("leave_out", "keep_only")
    lists = [values, *values.get("fields", {}).values(), *(values.get(one, {}) for one in named)]
    for of in lists:  # JSON has no tuples.
        of |= {name: tuple(one) for name, one in of.items() if isinstance(one, list)}
    profile = Profile(**values)
    try:
        for key in ("skip_lines", "footer"):
            for pattern in getattr(profile, key):
                check_pattern(key, pattern)
    except ProfileError as error:
        raise BatchStateError(
            f"Batch {batch.id} was opened by another version of recon, with a pattern that this "
            f"one does not read. {error} Go on with that version. Nothing was changed."
        ) from None
    return profile


def terms_taken(workspace: Workspace, stated: StatedTerms) -> Inherited:
    """The terms a delivery is opened on; raises BatchUnknown and CorrectionError.

    A profile stated for a correction says how this file is written, and has to be of the same feed.
    """
    batch_id, given = stated.corrects, stated.profile
    if batch_id is None:
        return Inherited(given, None, None)
    with workspace.database.connect() as connection:
        batch = ledger.find_batch(connection, batch_id)
        theirs = with_secrets(connection, batch_id, restored_profile(batch))
        likely = None if stated.record or given.record else _record_of(connection, batch)
    _refuse_others(batch, theirs, given)
    of_delivery = {name: getattr(given, name) for name in (*STATED, CHANGE_RECORDS)}
    form = theirs if given == replace(DEFAULT, **of_delivery) else given
    terms: dict[str, Any] = {
        name: getattr(theirs if getattr(given, name) == getattr(DEFAULT, name) else given, name)
        for name in (*STATED, "budget_read", "repeats")
    }
    terms |= {name: getattr(theirs, name) for name in VALIDATED_BY}
    if terms["repeats"] == BY_KEY and _divides(theirs) and not _divides(form):
        terms["repeats"] = "conflict"  # Rows are numbered here like those they repair.
    terms |= {CHANGE_RECORDS: given.change_records, "kept_settings": inherited(theirs)}
    constants = {**secret_constants(theirs), **form.constants}
    profile = replace(form, **terms, constants=constants, feed=theirs.feed)
    return Inherited(replace(profile, record=given.record), likely, batch.service)


def _divides(profile: Profile) -> bool:
    """Whether equal rows are several things in a kind that files of this profile may have."""
    known = EXTRACTS.get(profile.record or "")
    return not all(map(profile.merges, [known] if known else EXTRACTS.values()))


def _record_of(connection: psycopg.Connection, batch: Batch) -> str | None:
    """The kind stated for a batch, or for the batch it corrects."""
    stated = restored_profile(batch).record
    if stated is None and batch.corrects is not None:
        return _record_of(connection, ledger.find_batch(connection, batch.corrects))
    return stated


def stored_profile(profile: Profile) -> str:
    """The profile as the ledger keeps it for all to read; a secret is only marked as present."""
    kept = {name: KEPT if name in SECRETS else text for name, text in profile.constants.items()}
    return json.dumps(asdict(profile) | {"constants": kept}, sort_keys=True)


def stored_terms(batch: Batch) -> dict[str, Any]:
    """The profile of a batch from the ledger, in the form this version writes.

    Raises BatchStateError if its kept settings are invalid, as only the database's owner can make
    them.
    """
    values: dict[str, Any] = json.loads(batch.profile)
    if broken := broken_settings(values.get("kept_settings", {})):
        raise BatchStateError(
            f"The profile of batch {batch.id} was altered in the database, table batch, column "
            f"profile: {shown(broken)} in its kept_settings is nothing that recon writes. Put back "
            "what stood there; or undo the batch and import its files again. Nothing was changed."
        )
    if not values.get("repeats"):  # An earlier version took equal rows for one.
        stated = {
            name: values[name] for name in ("record", "fields", "duplicate") if name in values
        }
        values["repeats"] = "superseded" if _divides(Profile(**stated)) else BY_KEY
    comment = values.get("comment", [])
    if not isinstance(comment, list):  # An earlier version had one text, or none.
        values["comment"] = [comment] if comment else []
    return values


def other_terms(batch: Batch, given: Profile) -> list[str]:
    """Terms that read files differently than a batch was opened with: profile keys and settings.

    A key that an earlier version did not know counts as not stated.
    """
    usual, now = (json.loads(stored_profile(one)) for one in (DEFAULT, given))
    then = usual | stored_terms(batch)
    ignored = {*STATED, "feed", "record", "keep", "budget_read", "kept_settings", CHANGE_RECORDS}
    keys = sorted(key for key in now if key not in ignored and now[key] != then[key])
    return [*keys, *other_settings(then["kept_settings"], given.kept_settings)]


def stated_otherwise(batch: Batch, given: Profile) -> str:
    """Terms stated differently than the batch was opened with; empty if there are none.

    A term that is not stated is taken from the batch.
    """
    then = stored_terms(batch)
    return ", ".join(
        f"{name} {now} (then: {'none' if was is None else was})"
        for key, name in _LIMITS.items()
        if (now := getattr(given, key)) not in (None, was := then.get(key))
    )


def with_secrets(connection: psycopg.Connection, batch_id: int, profile: Profile) -> Profile:
    """Add to a batch's profile its secret constants, which are kept apart from it.

    Raises EvidenceBroken if they are not those that the batch was received with.
    """
    if not secret_constants(profile):
        return profile
    prove_constants(connection, batch_id)
    kept = ledger.list_secret_constants(connection, batch_id)
    return replace(profile, constants={**profile.constants, **kept})


def prove_constants(connection: psycopg.Connection, batch_id: int) -> None:
    """Raise EvidenceBroken if a batch's secret constants are not those it was received with."""
    if are_constants_altered(connection, batch_id):
        raise EvidenceBroken(
            f"The secret constants of batch {batch_id} (table secret_constant) are not those that "
            "it was received with: somebody altered them in the database. Nothing was read by "
            "them. Put back what stood there; or undo or discard the batch and import its files "
            "again."
        )


def secret_constants(profile: Profile) -> dict[str, str]:
    """The constants of a profile whose values are never shown."""
    return {name: text for name, text in profile.constants.items() if name in SECRETS}


def refuse_unapplied(batch: Batch) -> None:
    """Raise CorrectionError for a batch whose rows are not, or not all, applied.

    Rows applied afterwards would overwrite their own repairs.
    """
    if batch.state in TAKEN_BACK:
        raise CorrectionError(
            f"Batch {batch.id} was {batch.state}: nothing of it is applied, nor its rows without "
            "errors, which repairs alone would leave out. Import its files again, and correct the "
            "batch that this makes."
        )
    if batch.state in IN_DATABASE:
        return
    first = f"`recon rerun {batch.id}` brings it to its end; correct it then."
    if batch.state is State.HELD:
        first = (
            "Release it first (`recon release`), and correct it then; or discard it (`recon "
            "discard`), and import its files corrected, without --corrects and without ReconRow."
        )
    raise CorrectionError(
        f"Batch {batch.id} is {batch.state}: its rows are not applied yet, and would go over what "
        f"repairs them. {first} Nothing was imported."
    )


def _refuse_others(batch: Batch, theirs: Profile, given: Profile) -> None:
    if theirs.compare_only:
        raise CorrectionError(
            f"Batch {batch.id} is a listing of the service, which nothing of ours corrects. "
            "Name the batch whose rows you repair."
        )
    refuse_unapplied(batch)
    if given.feed not in (DEFAULT.feed, theirs.feed):
        raise CorrectionError(
            f"Batch {batch.id} is of the feed {theirs.feed}, and this profile of {given.feed}. "
            "A correction belongs to the feed it repairs: leave the profile out, or name one of "
            "that feed."
        )
    if theirs.tenant is not None and given.tenant not in (None, theirs.tenant):
        raise CorrectionError(
            f"Batch {batch.id} is bound to tenant {theirs.tenant}, and this correction to "
            f"{given.tenant}. Leave the tenant out: a correction is bound as what it repairs."
        )
    for name, key in theirs.keys.items():
        now = given.keys.get(name)
        if now is not None and now.namespace != key.namespace:
            raise CorrectionError(
                f"In batch {batch.id} {name} has "
                f"{f'the namespace {key.namespace}' if key.namespace else 'no namespace'}, and in "
                "this profile another one or none: what is repaired would get other numbers than "
                f"the rest. Write fields.{name}.namespace as it was. Nothing was imported."
            )
