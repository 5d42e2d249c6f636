"""How the feeds of a run were read differently than in the run it is compared with.

The measure is how the last delivery of a feed in the earlier run was read. Every batch after it is
compared with that, so a batch that was read differently is reported even if later ones are read as
before. A correction may have a form of its own: it is compared too, but is no measure for later
deliveries.
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
"""Keys of a profile that are compared name by name."""
FEED, RECORD, SERVICE = "feed", "record", "service"
BESIDE = (FEED, "kept_settings", "change_records")
"""Keys that do not affect how a feed is read, or that are reported as settings."""

Keys = dict[str, str]
"""How a batch was read, key by key; keys that are not set are missing."""


def profile_changes(
    connection: psycopg.Connection, base: Base, before: Method, now: Method
) -> Iterator[RuleChange]:
    """Every key by which batches of a run were read differently, feed by feed.

    A new feed, or one without any batch left, is only reported against a report of the same scope,
    because another scope has other feeds.
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
    """Whether the earlier run read a batch; if unknown, whether the batch was opened before it."""
    if before.batches is None:
        return batch.opened_at <= base.run.opened_at
    return batch.id in before.batches


def _changed(feed: str, then: Keys, since: list[Batch]) -> Iterator[RuleChange]:
    """How batches differ from what was signed, grouped while consecutive ones have equal keys."""
    for now, batches in groupby(since, lambda one: _keys(one, then)):
        numbers = [one.id for one in batches]
        for key in sorted(then.keys() | now.keys()):
            if then.get(key) != now.get(key):
                name = f"{feed}, {_batch_range(numbers, last=since[-1].id)}: {key}"
                yield RuleChange(name, then.get(key, ""), now.get(key, ""))


def _new(feed: str, first: Batch, signed: list[Batch]) -> Iterator[RuleChange]:
    """A feed that no signed report covers: the feed whose form it has, or each key it sets."""
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
    """How a batch was read and where it goes; a key its version did not know has its default.

    A secret constant is only shown as present. If nobody stated a correction's record kind, its
    header decides; it is then taken as the kind in `then`, with which it is compared.
    """
    keys = _flat(asdict(DEFAULT) | stored_terms(batch))
    if batch.service is not None:
        keys[SERVICE] = batch.service
    if batch.corrects is not None and RECORD not in keys and then and RECORD in then:
        keys[RECORD] = then[RECORD]
    return keys


def _flat(values: dict[str, object]) -> Keys:
    flat: dict[str, object] = {}
    if values["repeats"] == BY_KEY:  # Profiles do not state this value; it is the unstated default.
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
