"""What a host of the service decides: style, users, operation names, zone and faults.

The service document leaves these open, so each is a setting; defaults are the recorded host's.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from connectors.errors import SettingsError
from connectors.sandbox.faults import NO_FAULTS, Faults
from schemas.operations import OPERATIONS, Operation


@dataclass(frozen=True, slots=True)
class Style:
    """How one generation of the framework reads and writes."""

    camel_case: bool
    """JSON member names start with a lower-case letter; CSV headers never do."""
    system_json: bool
    """JSON has ISO 8601 times, and a member that cannot be read refuses the body."""
    shortest_doubles: bool
    """Doubles have the shortest text that reads back the same, instead of 15 digits."""
    trimmed_headers: bool
    """Blanks around the names of a CSV header are ignored."""
    not_empty: str
    """Message of the NotEmpty rule, after the field's name."""
    dotted_mail_domain: bool
    """Whether `a@b` is refused as an e-mail address."""
    quoted_filename: bool
    refused_sign_in: str
    batch_index: bool
    """A failed batch names the record it failed at."""
    api_key_header: bool
    """X-Api-Key is accepted besides the bearer form."""
    malformed_token_status: int


STYLES = {
    "pascal-5": Style(
        camel_case=False,
        system_json=False,
        shortest_doubles=False,
        trimmed_headers=False,
        not_empty="should not be empty.",
        dotted_mail_domain=True,
        quoted_filename=False,
        refused_sign_in="Invalid UserName or Password",
        batch_index=False,
        api_key_header=False,
        malformed_token_status=500,
    ),
    "camel-core": Style(
        camel_case=True,
        system_json=True,
        shortest_doubles=True,
        trimmed_headers=True,
        not_empty="must not be empty.",
        dotted_mail_domain=False,
        quoted_filename=True,
        refused_sign_in="Invalid Username or Password",
        batch_index=True,
        api_key_header=True,
        malformed_token_status=401,
    ),
}
"""The host the exchanges were recorded from, and a current .NET host."""


@dataclass(frozen=True, slots=True)
class User:
    """An account that exists when the sandbox starts."""

    name: str
    password: str = field(repr=False)
    roles: tuple[str, ...] = ()
    api_key: str | None = field(default=None, repr=False)


@dataclass(frozen=True)
class SandboxOptions:
    """Everything about the host that the service document leaves open."""

    port: int = 0
    """0 takes any free port."""
    style: str = "pascal-5"
    users: tuple[User, ...] = ()
    operation_names: Mapping[str, str] = field(default_factory=dict)
    """The host's own operation names, by default name."""
    unvalidated: frozenset[str] = frozenset()
    """Operations (by default name) that the host does not validate: nulls are saved."""
    zone: str = "UTC"
    """Time zone of the server, in which a datetime without offset is kept."""
    faults: Faults = NO_FAULTS
    clock: Callable[[], datetime] = lambda: datetime.now(UTC)
    password_cost: int = 2**14
    """Cost of one password hash (scrypt's n); a power of two."""

    @cached_property
    def traits(self) -> Style:
        return STYLES[self.style]

    def name_of(self, operation: Operation) -> str:
        return self.operation_names.get(operation.name, operation.name)

    def __post_init__(self) -> None:
        if self.style not in STYLES:
            raise SettingsError(f"style={self.style!r} is not one of {', '.join(STYLES)}.")
        known = {operation.name for operation in OPERATIONS}
        if unknown := sorted({*self.operation_names, *self.unvalidated} - known):
            raise SettingsError(f"{unknown} are no operations; known are {sorted(known)}.")
        try:
            ZoneInfo(self.zone)
        except (ZoneInfoNotFoundError, ValueError):
            raise SettingsError(f"zone={self.zone!r} is no time zone such as UTC.") from None
