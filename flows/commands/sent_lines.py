"""The history of a row at the service, as `recon sends` and `recon row` show it."""

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from schemas.counting import quantity

if TYPE_CHECKING:
    from connectors.postgres.push.earlier import WhoseWord
    from connectors.postgres.push.sends import Sent, SentBefore


def sent_json(sent: "Sent") -> dict[str, Any]:
    return _facts(sent) | {"earlier": [_facts(one) for one in sent.earlier]}


def _facts(sent: "Sent | SentBefore") -> dict[str, Any]:
    facts = sent._asdict()
    for name in ("decided", "ended"):
        if word := facts.get(name):
            facts[name] = word._asdict()
    return facts | {"error_data": json.loads(sent.error_data) if sent.error_data else None}


def sent_lines(sent: "Sent") -> Iterator[str]:
    """What was sent and answered, followed by what had happened earlier."""
    yield f"{sent.operation} {_came_to(sent)}"
    yield f"push key {sent.push_key}"
    yield f"body     {sent.jsondata}"
    yield from _answered(sent)
    for one in sent.earlier:
        yield f"earlier  {_came_to(one)}, until {one.ended_in_words}{_word(one.ended)}"
        yield f"    push key {one.push_key}"
        yield from (f"    {line}" for line in _answered(one))


def listed_words(sent: "Sent") -> "set[WhoseWord | None]":
    """The decisions that `sent_lines` mentions."""
    earlier = ({one.decided, one.ended} for one in sent.earlier)
    return {sent.decided}.union(*earlier)


def _came_to(sent: "Sent | SentBefore") -> str:
    status = f", HTTP {sent.status}" if sent.status else ""
    status += f", decided: {sent.decision}{_word(sent.decided)}" if sent.decision else ""
    return f"{sent.state.replace('_', ' ')}, {quantity(sent.attempts, 'attempt')}{status}"


def _answered(sent: "Sent | SentBefore") -> Iterator[str]:
    if sent.echo:
        yield f"answered {sent.echo}"
    for error in json.loads(sent.error_data) if sent.error_data else ():
        yield f"{error['ErrorCode']}: {error['Message']}"


def _word(word: "WhoseWord | None") -> str:
    return "" if word is None else f" {word}"
