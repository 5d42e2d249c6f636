"""Settings from the environment, typed; an error names the variable and its value."""

import math
import os
import re
import sys
from collections.abc import Mapping
from dataclasses import Field, dataclass, field, fields
from pathlib import Path
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from connectors.addresses import (
    check_database_address,
    check_service_address,
    read_home,
    read_path,
    real_path,
    witness_places,
)
from connectors.desk_links import desk_url
from connectors.environment import setting
from connectors.errors import SettingsError
from schemas.endpoints import POST
from schemas.guards.leases import MOST_SECONDS
from schemas.operations import OPERATIONS, Operation
from schemas.tables import OWN

KIB = 1024
MIB = 1024 * KIB
SETTLE_SECONDS = 10.0
"""How long a file has to stay unchanged before it counts as complete."""
MOST_BATCH = 200
"""Most rows of one request: with a key for each, its header still fits through gateways."""
MOST_CONNECTIONS = 1024
"""Most connections to the service; each is an open file and has buffers of its own."""
_MOST = {
    "batch": (MOST_BATCH, "rows of one request"),
    "concurrency": (MOST_CONNECTIONS, "connections"),
}
LEAST_RATE = 0.001
"""Requests a second; a lower rate would make a push wait longer than anybody."""
STRICT_BYTES = 256 * KIB
"""Up to this size, plain Python reads a piece sooner than compiled code would be loaded."""
MOST = 2**50
"""Highest value of any limit on bytes or counts."""


def _limit(default: int, *, least: int = 1, most: int = MOST) -> int:
    """A limit with a floor, below which work is cut into too many pieces ever to end.

    Above its ceiling nothing else would happen.
    """
    return field(default=default, metadata={"least": least, "most": most})


def floor_of(limit: Field[int]) -> int:
    """The lowest value that a limit may be set to."""
    return int(limit.metadata.get("least", 1))


def ceiling_of(limit: Field[int]) -> int:
    """The highest value that a limit may be set to."""
    return int(limit.metadata.get("most", MOST))


@dataclass(frozen=True, slots=True)
class Limits:
    """Upper bounds on reading; each can be set by `RECON_LIMIT_<NAME>`.

    A limit that only refuses may be as low as 1; one that decides how work is cut may not.
    """

    file_bytes: int = 64 * 1024 * MIB
    """Decompressed size of one extract."""
    compression_ratio: int = 1000
    """Decompressed over compressed size; above it an archive counts as a bomb."""
    columns: int = 2_000
    field_bytes: int = 1 * MIB
    record_bytes: int = 4 * MIB
    look_ahead_bytes: int = 32 * MIB
    """How far to look for the close of a quote; at least twice `record_bytes`. A record that closes
    within it is one record, too large or not."""
    archive_members: int = 10_000
    block_bytes: int = _limit(4 * MIB, least=512)
    """How much of a file is in memory at once."""
    strict_bytes: int = STRICT_BYTES
    """Up to this size, a piece of a file is read without compiled code, which loads more slowly."""
    check_bytes: int = _limit(8 * MIB, least=64 * KIB)
    """How much of the kept rows is settled at once when a delivery is only examined."""
    compare_bytes: int = _limit(256 * MIB, least=64 * KIB)
    """How much of two tables is compared at once; larger ones in partitions of their keys."""
    reconcile_bytes: int = _limit(32 * MIB, least=64 * KIB)
    """How much of both sides of a record kind is reconciled at once; more in ranges of keys."""
    database_wait_seconds: int = 60
    """How long a database may take to come back when its connection was lost."""
    inbox_wait_seconds: int = 24 * 60 * 60
    """After this long, a file in an inbox that waits for completion is reported as late."""
    lease_seconds: int = _limit(120, most=MOST_SECONDS)
    """How long a run may show no sign of life before another may take its batch over."""


def zone_of(text: str) -> ZoneInfo:
    """The IANA zone of a name; raises KeyError, ValueError or OSError if there is none."""
    # "localtime" differs from machine to machine; "Factory" means that no zone was chosen.
    if text in {"localtime", "Factory"}:
        raise ValueError(f"{text} is no zone that is the same everywhere")
    return ZoneInfo(text)


def read_zone(name: str, text: str) -> ZoneInfo:
    """The time zone a setting names; raises SettingsError unless it is the same everywhere."""
    try:
        return zone_of(text)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise SettingsError(f"{name}={text!r} is no time zone such as Europe/Berlin.") from None


@dataclass(frozen=True, slots=True)
class ServiceSettings:
    """How the service is reached; each can be set by `RECON_SERVICE_<NAME>`."""

    url: str | None = None
    """Base URL, http or https; None if no service is set."""
    format: str = "csv"
    """Format of bodies in both directions: csv or json."""
    zone: str = "UTC"
    """Time zone of the server, in which it keeps and shows datetimes."""
    concurrency: int = 8
    """Most requests in flight, each on its own connection; MOST_CONNECTIONS at most."""
    rate: float = 0.0
    """Most requests begun in a second; 0 for no limit."""
    batch: int = 1
    """Rows of one auto-batch request of a POST operation; 1: every row in its own request."""
    operations: Mapping[str, str] = field(default_factory=dict)
    """The host's names of operations, by default name: `EditPayment=SavePayment,...`."""
    ca_file: Path | None = None
    """Certificates to trust instead of the system's."""
    connect_seconds: float = 10.0
    answer_seconds: float = 60.0
    """From the first step of one attempt to the last byte of its answer."""
    row_seconds: float = 300.0
    """All attempts at one row and the waits between them."""
    idle_seconds: float = 15.0
    """A connection idle for this long is not used again."""
    attempts: int = 6
    """Most attempts at one row, if it may be attempted again at all."""
    backoff_seconds: float = 0.25
    """Longest wait before the second attempt; it doubles with every attempt."""
    backoff_most_seconds: float = 20.0
    retry_after_most_seconds: float = 120.0
    """Longest pause a service may ask for; a longer one is not waited for."""
    breaker: int = 20
    """Nothing more is sent after this many unanswered rows in a row, none sent concurrently."""
    idempotent: bool = False
    """The host carries a request out once for each Idempotency-Key, so a POST may be repeated."""
    health_path: str = "/auth"
    """Path asked by GET, without effect, after a POST whose answer was lost."""
    health_attempts: int = 8
    """How often that path is asked before the run stops."""
    turn_seconds: float = 120.0
    """How long a run waits for another run that sends to the same operation."""
    seed: int = 0
    """Seed of the jitter between attempts."""
    answer_bytes: int = 16 * MIB
    listing_bytes: int = 512 * MIB

    @property
    def rows_at_once(self) -> int:
        """Most rows of one request; a host that honours keys knows one key for each request."""
        return 1 if self.idempotent else self.batch

    def __post_init__(self) -> None:
        if self.url is not None:
            check_service_address(self.url)
        if self.format not in ("csv", "json"):
            raise SettingsError(f"RECON_SERVICE_FORMAT={self.format!r} is neither csv nor json.")
        read_zone("RECON_SERVICE_ZONE", self.zone)
        if re.fullmatch(r"/[\x21-\x22\x24-\x7e]*", self.health_path) is None:
            raise SettingsError(
                f"RECON_SERVICE_HEALTH_PATH={self.health_path!r} is no path such as /auth."
            )


@dataclass(frozen=True, slots=True)
class AuditSettings:
    """Who witnesses the audit trail, and the key that signs the witnesses."""

    key: Path
    """RECON_AUDIT_KEY: the private key."""
    public_key: Path
    """RECON_AUDIT_PUBLIC_KEY: the public key, enough to check with."""
    public_key_named: bool = False
    """Whether that is set, so that no other key replaces it."""
    witness: tuple[str, ...] = ()
    """RECON_AUDIT_WITNESS: files, object stores and webhooks; if empty, nothing is signed."""


UTC = ZoneInfo("UTC")
DATABASE = "RECON_DATABASE_URL"
"""The setting that names the database."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Where the product keeps its data and which database it uses."""

    home: Path
    """Folder of the embedded database, the archive and the reports."""
    database_url: str | None = None
    """None for the embedded PostgreSQL under `home`."""
    database_from: str = field(default=DATABASE, kw_only=True)
    """What names the database, for messages that say where to fix it."""
    limits: Limits = Limits()
    currencies: Path | None = None
    """CSV file `CurrenciesId,Code` that names currencies in reports."""
    service: ServiceSettings = ServiceSettings()
    time_zone: ZoneInfo = UTC
    """Zone in which a business day begins and ends: today, and the day of a scheduled run."""
    login_file: Path | None = None
    """File with the login of the user at the command line; None if there is no place for it."""
    named_audit: AuditSettings | None = None
    """As set in the environment; None: the key is in `home`, and there are no witnesses."""

    @property
    def audit(self) -> AuditSettings:
        return self.named_audit or _audit(self.home, {})

    @property
    def archive(self) -> Path:
        """Delivered content, by hash."""
        return self.home / "archive"

    @property
    def reports(self) -> Path:
        """Reports, one folder per batch."""
        return self.home / "reports"

    @property
    def spool(self) -> Path:
        """Rows waiting to be applied, one folder per batch."""
        return self.home / "spool"

    @property
    def scratch(self) -> Path:
        """Folders that exist only for a moment."""
        return self.home / "scratch"


PATHS = (
    *("RECON_CURRENCIES", "RECON_RECORDS", "RECON_LOGIN_FILE", "RECON_SERVICE_CA_FILE"),
    *("RECON_AUDIT_KEY", "RECON_AUDIT_PUBLIC_KEY"),
)
"""Settings that name a file or folder, besides RECON_HOME and the places of witnesses."""


def read_settings(environment: Mapping[str, str] = os.environ) -> Settings:
    """The settings of this process; raises SettingsError for a value that cannot be used."""
    if (encoding := sys.getfilesystemencoding()) != "utf-8":
        raise SettingsError(
            f"Python reads names of files as {encoding} here, and recon keeps them as UTF-8. Unset "
            "PYTHONUTF8 or set it to 1, without -X utf8=0."
        )
    folder = home_folder(environment)
    url = setting(DATABASE, environment)
    if url is not None:
        check_database_address(DATABASE, url, "unset it for the embedded one")
    currencies = setting("RECON_CURRENCIES", environment)
    check_own_kinds()
    desk_url(environment)  # Work that ends with a link to a page must not begin with a bad address.
    return Settings(
        home=folder,
        database_url=url,
        limits=_limits(environment),
        currencies=read_path("RECON_CURRENCIES", currencies) if currencies else None,
        service=read_service_settings(environment),
        time_zone=read_zone("RECON_TIME_ZONE", setting("RECON_TIME_ZONE", environment) or "UTC"),
        login_file=_login_file(environment),
        named_audit=_audit(folder, environment),
    )


def home_folder(environment: Mapping[str, str] = os.environ) -> Path:
    """The home folder, even if other settings are wrong."""
    return read_home(setting("RECON_HOME", environment) or ".recon")


def check_own_kinds() -> None:
    """Raise SettingsError for a file that defines no record kind; an import cannot report it."""
    if OWN.fault:
        raise SettingsError(*OWN.fault.split("\n"))


def _audit(home: Path, environment: Mapping[str, str]) -> AuditSettings:
    """By default the key is in the home: outside the database, private, and on every worker."""
    named = setting("RECON_AUDIT_KEY", environment)
    key = real_path(read_path("RECON_AUDIT_KEY", named)) if named else home / "audit-key.pem"
    public = setting("RECON_AUDIT_PUBLIC_KEY", environment)
    return AuditSettings(
        key=key,
        public_key=real_path(read_path("RECON_AUDIT_PUBLIC_KEY", public))
        if public
        else key.parent / f"{key.stem}.pub.pem",
        public_key_named=bool(public),
        witness=witness_places(
            "RECON_AUDIT_WITNESS", (setting("RECON_AUDIT_WITNESS", environment) or "").split(",")
        ),
    )


def _login_file(environment: Mapping[str, str]) -> Path | None:
    if named := setting("RECON_LOGIN_FILE", environment):
        return read_path("RECON_LOGIN_FILE", named)
    try:
        return Path("~/.config/recon/login").expanduser()
    except RuntimeError:
        return None  # A user without a home folder, as in a container.


def is_limit(name: str, value: object) -> bool:
    """Whether the limit of this name may have this value."""
    (limit,) = (one for one in fields(Limits) if one.name == name)
    return type(value) is int and floor_of(limit) <= value <= ceiling_of(limit)


def _limits(environment: Mapping[str, str]) -> Limits:
    chosen: dict[str, int] = {}
    for limit in fields(Limits):
        name = f"RECON_LIMIT_{limit.name.upper()}"
        text = setting(name, environment)
        if text is None:
            continue
        number = _digits(text)
        if number is None or not is_limit(limit.name, number):
            allowed = f"from {floor_of(limit)} to {ceiling_of(limit)}"
            raise SettingsError(f"{name}={text!r} is not a whole number {allowed}.")
        chosen[limit.name] = number
    return Limits(**chosen)


def _digits(text: str) -> int | None:
    """The whole number of a text of ASCII digits; None for any other text or too many digits."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 18 else None


def read_service_settings(environment: Mapping[str, str]) -> ServiceSettings:
    """The settings of the service; raises SettingsError for a value that cannot be used."""
    chosen: dict[str, object] = {}
    for one in fields(ServiceSettings):
        name = f"RECON_SERVICE_{one.name.upper()}"
        if text := setting(name, environment):
            chosen[one.name] = _service_value(name, one.name, one.type, text)
    return ServiceSettings(**chosen)  # type: ignore[arg-type]


def _service_value(name: str, setting: str, kind: object, text: str) -> object:
    if setting == "operations":
        return _operation_names(name, text)
    if setting == "ca_file":
        return read_path(name, text)
    if kind is bool:
        if text.lower() not in ("true", "false"):
            raise SettingsError(f"{name}={text!r} is neither true nor false.")
        return text.lower() == "true"
    if kind is int:
        number = _digits(text)
        if number is None or (number == 0 and setting != "seed"):
            raise SettingsError(f"{name}={text!r} is not a positive whole number.")
        most, of = _MOST.get(setting, (number, ""))
        if number > most:
            raise SettingsError(f"{name}={text!r} is more than {most} {of}.")
        return number
    if kind is float:
        try:
            amount = float(text)
        except ValueError:
            amount = math.nan
        if not math.isfinite(amount) or amount < 0 or (amount == 0 and setting != "rate"):
            raise SettingsError(f"{name}={text!r} is not a positive number.")
        if setting == "rate" and 0 < amount < LEAST_RATE:
            raise SettingsError(f"{name}={text!r} is less than {LEAST_RATE} requests a second.")
        return amount
    return text


def _operation_names(name: str, text: str) -> dict[str, str]:
    """The host's unique name of each operation, by which a batch of a POST is sent."""
    known = {operation.name for operation in OPERATIONS}
    found: dict[str, str] = {}
    for pair in text.split(","):
        ours, _, theirs = map(str.strip, pair.partition("="))
        if ours not in known or not theirs.isidentifier():
            raise SettingsError(
                f"{name}={text!r}: {ours!r} has to be one of {', '.join(sorted(known))}, "
                "with the name of the host behind an equals sign."
            )
        if found.setdefault(ours, theirs) != theirs:
            raise SettingsError(f"{name}={text!r}: {ours} has two names of the host. Give one.")
    taken: dict[str, Operation] = {}
    for one in OPERATIONS:
        other = taken.setdefault(found.get(one.name, one.name).lower(), one)
        if other is not one and POST in (one.method, other.method):
            raise SettingsError(
                f"{name}={text!r}: {other.name} and {one.name} have one name at the host, where a "
                "batch of one would be taken for the other. Give each its own."
            )
    return found
