"""An outage: after a lost answer POSTs are held until the service says that it is back.

Requests that may be repeated are not held: they are tried again until one is answered.
"""

from enum import Enum
from functools import partial

from connectors.service.asking import Problem, answers_later, ask_until
from connectors.service.connection import Failed, Reply
from connectors.service.host import Host
from connectors.service.line import Line


class _State(Enum):
    GOING = "going"
    TO_ASK = "to ask"
    ASKED = "asked"
    TRYING = "trying"
    """The service says it is back; requests go one at a time until one is answered."""


class Outage:
    """Whether POSTs may begin, by how earlier ones went; times are those of the loop."""

    def __init__(self, capacity: int, requests: int) -> None:
        self._capacity = capacity
        """Rows that may be in flight at once."""
        self._requests = requests
        """Requests that may be in flight at once."""
        self._state = _State.GOING
        self._since = float("-inf")
        """When POSTs were last released."""
        self._doubtful = 0
        self._trial = False
        self._trials_lost = 0
        """Trial requests lost since the last good answer."""

    @property
    def open(self) -> bool:
        """Whether POSTs are held or go one by one."""
        return self._state is not _State.GOING

    @property
    def to_ask(self) -> bool:
        """Whether the service has to be asked whether it is back."""
        return self._state is _State.TO_ASK

    @property
    def may_begin(self) -> bool:
        """Whether a POST may begin now."""
        return self._state is _State.GOING or (self._state is _State.TRYING and not self._trial)

    @property
    def alone(self) -> bool:
        """Whether the next POST is a trial request."""
        return self._state is _State.TRYING

    def hold(self) -> None:
        """Begin no POST before the service was asked.

        An earlier run already lost its requests, so one more lost request stops this one.
        """
        self._state = _State.TO_ASK
        self._trials_lost = self._requests - 1

    def asked(self) -> None:
        self._state = _State.ASKED

    def is_back(self, now: float) -> None:
        """Record that the service has answered the question whether it is back."""
        self._state, self._since, self._trial = _State.TRYING, now, False

    def begin(self) -> None:
        self._trial = self._state is _State.TRYING

    def not_read(self, began: float) -> None:
        """Record that a POST that began at `began` was not handed over at all."""
        if began >= self._since:
            self._trial = False

    def answered(self, began: float) -> None:
        """Record an answer without doubt; POSTs go on if its request began after the outage."""
        self._doubtful = self._trials_lost = 0
        if began >= self._since:
            self._trial = False
            if self._state is _State.TRYING:
                self._state = _State.GOING

    def in_doubt(self, began: float, rows: int) -> bool:
        """Record rows left in doubt by a POST begun at `began`; whether the run has to stop.

        It has to if more rows, or as many trials, as can be in flight were lost one after another
        although the service says that it is back.
        """
        self._doubtful += rows
        if began >= self._since:
            self._trial = False
            self._trials_lost += self._state is _State.TRYING
            if self._state in (_State.GOING, _State.TRYING):
                self._state = _State.TO_ASK
        return self._doubtful > self._capacity or self._trials_lost >= self._requests


async def wait_until_back(host: Host, line: Line) -> str | None:
    """Ask until the service is back; returns the reason to send nothing more if it is not."""
    path = host.settings.health_path
    problem = await ask_until(host, line, host.outgoing.read(path, {}), partial(_not_back, host))
    return problem and (
        f"A POST had no usable answer, and the service does not say at {path} that it is back: "
        f"{problem}."
    )


def _not_back(host: Host, answer: Reply | Failed) -> Problem | None:
    """The evidence against the service being back; None if it is back.

    Any answer of the service itself counts, even a refusal. A gateway in its place answers with a
    server error or a page.
    """
    if isinstance(answer, Failed):
        return Problem(answer.cause, final=answer.hopeless)
    if 300 <= answer.status < 400:
        return Problem(f"it {host.classifier.redirect(answer)}")
    if answers_later(answer):
        return Problem(f"it answered {answer.status}")
    if "html" in answer.headers.get("content-type", "").lower():
        return Problem(f"it answered {answer.status} with a page")
    return None
