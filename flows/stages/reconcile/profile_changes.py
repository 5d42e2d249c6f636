"""How the feeds of a run were read otherwise than in the run it is held against.

What was signed is what the last delivery of a feed was read by that the earlier run is about. Every
batch that came after it is held against that, so one that was read otherwise is told, also where
later ones are read as before. A correction may be written in a form of its own: it is held against
that as well, and is no measure for what is delivered after it.
"""

import json
from collections.abc import Iterator
from dataclasses import asdict
from itertools import groupby

import psycopg

from connectors.files.profiles.profile import BY_KEY, DEFAULT
from connectors.postgres.batches import ledger
from connectors.postgres.batches.ledger import Batch
from flows.stages.receiving.terms import stored_terms
from flows.stages.reconcile.held_against import Base
from flows.stages.reconcile.method import Method
from flows.steps.reconcile.report import RuleChange
from schemas.counting import quantity
from schemas.derived.views import LISTING_FEED

SECTIONS = ("columns", "constants")
"""Keys of a profile that are told name by name."""
FEED, RECORD, SERVICE = "feed", "record", "service"
BESIDE = (FEED, "kept_settings", "change_records")
"""What is no key that a feed is read by; of settings a run tells what they are itself."""

Keys = dict[str, str]
"""What a batch was read by, key by key; what is not set is not there."""


def profile_changes(
    connection: psycopg.Connection, base: Base, before: Method, now: Method
) -> Iterator[RuleChange]:
    """Every key by which batches of a run were read otherwise, feed by feed.

    A feed that is new, or of which no batch is left, is told of a report of the same scope alone:
    another scope has other feeds.
    """
    mine = now.batches or frozenset()
    every = ledger.batches_of(connection, mine | (before.batches or frozenset()))
    read = [one for one in every if one.feed != LISTING_FEED]
    signed = {one.id: one for one in read if _was_there(one, base, before)}
    for feed in sorted({one.feed for one in read}):
        then = [one for one in signed.values() if one.feed == feed]
        since = [one for one in read if one.feed == feed and one.id not in signed]
        if then and base.own and not any(one.id in mine for one in (*then, *since)):
            yield RuleChange(feed, f"{quantity(len(then), 'batch')} of it", "no batch of it")
        if not then and base.signed:
            yield from _new(feed, since[0], [*signed.values()])
        if then or since:
            delivered = [one for one in then if one.corrects is None]
            yield from _changed(feed, _keys((delivered or then or since[:1])[-1]), since)


def _was_there(batch: Batch, base: Base, before: Method) -> bool:
    """Whether the earlier run read a batch; where it does not tell, by when that was opened."""
    if before.batches is None:
        return batch.opened_at <= base.run.opened_at
    return batch.id in before.batches


def _changed(feed: str, then: Keys, since: list[Batch]) -> Iterator[RuleChange]:
    """What batches were read by, in runs of the same keys, against what was signed."""
    for now, batches in groupby(since, lambda one: _keys(one, then)):
        numbers = [one.id for one in batches]
        for key in sorted(then.keys() | now.keys()):
            if then.get(key) != now.get(key):
                name = f"{feed}, {_batch_range(numbers, last=since[-1].id)}: {key}"
                yield RuleChange(name, then.get(key, ""), now.get(key, ""))


def _new(feed: str, first: Batch, signed: list[Batch]) -> Iterator[RuleChange]:
    """A feed that no signed report is about: whose form it has, or each key that it sets."""
    name, keys = f"{feed}, new from batch {first.id} on", _keys(first)
    same = next((one.feed for one in reversed(signed) if _keys(one) == keys), None)
    if same is not None:
        yield RuleChange(name, "", f"read as {same} is")
        return
    default = _flat(asdict(DEFAULT))
    own = {key: text for key, text in keys.items() if default.get(key) != text}
    yield RuleChange(name, "", f"{quantity(len(own), 'key')} set")
    for key, text in sorted(own.items()):
        yield RuleChange(f"{name}: {key}", "", text)


def _batch_range(numbers: list[int], *, last: int) -> str:
    first = numbers[0]
    if numbers[-1] == last:
        return f"from batch {first} on"
    return f"batch {first}" if len(numbers) == 1 else f"batches {first} to {numbers[-1]}"


def _keys(batch: Batch, then: Keys | None = None) -> Keys:
    """What a batch was read by and goes to; a key that its version did not know has its default.

    Of a secret constant it says only that there is one. The record kind of a correction is by its
    header, where nobody stated one: it is no other than that of what it is held against, `then`.
    """
    keys = _flat(asdict(DEFAULT) | stored_terms(batch))
    if batch.service is not None:
        keys[SERVICE] = batch.service
    if batch.corrects is not None and RECORD not in keys and then and RECORD in then:
        keys[RECORD] = then[RECORD]
    return keys


def _flat(values: dict[str, object]) -> Keys:
    flat: dict[str, object] = {}
    if values["repeats"] == BY_KEY:  # No profile says that: it is what one means that says nothing.
        values = values | {"repeats": None}
    for key, value in values.items():
        if isinstance(value, dict) and key in SECTIONS:
            flat |= {f"{key} {name}": text for name, text in value.items()}
        elif key not in BESIDE:
            flat[key] = value
    return {
        key: value if isinstance(value, str) else json.dumps(value, sort_keys=True)
        for key, value in flat.items()
        if value is not None
    }
