"""The arguments of a job as its row keeps them, checked when it is ordered and when it is done.

They contain no paths: files are named by the token of an upload, a profile by its name.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints
from pydantic import ValidationError as Invalid

from connectors.errors import JobRefused
from connectors.files.incoming.stores import UPLOAD_NAMED
from connectors.files.profiles.profile import DEFAULT, Profile
from connectors.files.profiles.profile_file import load_profile
from connectors.postgres.push.sends import SendDecision, SendState
from connectors.settings import Settings
from schemas.counting import quantity
from schemas.jobs import JobKind
from schemas.operations import BY_NAME
from schemas.tables import EXTRACTS, OWN

MOST_PLACES = 1_000
OF_YOUR_OWN = "; a record kind of your own has to be defined in RECON_RECORDS here"
PROFILE = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$"


def _one_of(known: frozenset[str]) -> AfterValidator:
    def check(text: str) -> str:
        # If a file of own kinds has a fault, no kind of its is known; doing the job reports the
        # fault.
        if text not in known and not OWN.fault:
            raise ValueError(f"has to be one of {', '.join(sorted(known))}{OF_YOUR_OWN}")
        return text

    return AfterValidator(check)


Number = Annotated[int, Field(ge=1, lt=2**31)]
"""The number of a batch, an extract or a run."""
Rows = Annotated[int, Field(ge=1, lt=2**63)]
"""A number of rows, or the number of a row in its file."""
Tenant = Annotated[int, Field(ge=-(2**31), lt=2**31)]
Token = Annotated[str, StringConstraints(pattern=UPLOAD_NAMED)]
Reason = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=2_000)]
Record = Annotated[str, _one_of(frozenset(EXTRACTS))]
Operation = Annotated[str, _one_of(frozenset(BY_NAME))]


WRONG: Mapping[str, str] = {
    "int_parsing": "has to be a whole number",
    "int_type": "has to be a whole number",
    "less_than": "has to be less than {lt}",
    "greater_than_equal": "has to be at least {ge}",
    "string_pattern_mismatch": "cannot be written so",
    "string_too_long": "has more than {max_length} characters",
    "string_too_short": "is empty",
    "value_error": "{error}",
}
"""What is wrong with an argument, by pydantic's name of the error."""


class Arguments(BaseModel):
    """The arguments of one kind of job."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)


class ImportArguments(Arguments):
    """Take uploaded files in as a delivery."""

    upload: Token
    tenant: Tenant | None = None
    profile: Annotated[str, StringConstraints(pattern=PROFILE)] | None = None
    record: Record | None = None
    push: bool = False


class CorrectArguments(Arguments):
    """Take a batch's rows with errors in again; without an upload as they were delivered."""

    batch: Number
    upload: Token | None = None
    change_records: bool = False


class RerunArguments(Arguments):
    """Go on with a batch; `from_start` reads its kept files again, if nothing is applied yet."""

    batch: Number
    from_start: bool = False


class HeldArguments(Arguments):
    """Decide about a batch that is held."""

    batch: Number
    reason: Reason
    held: Annotated[int, Field(ge=0, lt=2**63)]
    """The event that says the batch is held, as it was seen; a later one prevents the decision."""


class ReleaseArguments(HeldArguments):
    """Let the batch go on with its clean rows."""


class DiscardArguments(HeldArguments):
    """End the batch without applying anything."""


class UndoArguments(Arguments):
    """Take a batch back out of the database."""

    batch: Number
    reason: Reason
    over_changes: bool = False


class ResolveArguments(Arguments):
    """Settle rows at the service: the named ones, or all that match."""

    batch: Number
    decision: SendDecision
    reason: Reason
    rows: tuple[str, ...] = ()
    places: Annotated[tuple[tuple[Number, Rows], ...], Field(max_length=MOST_PLACES)] = ()
    """Extract and record number of each row, as pages have them."""
    operation: Operation | None = None
    states: tuple[SendState, ...] = ()
    expected: Rows | None = None
    """How many rows were looked at; if the number differs, none is settled."""


class PushArguments(Arguments):
    """Send unsent rows, of one batch or of all."""

    batch: Number | None = None


class ReconcileArguments(Arguments):
    """Compare as of today: the scope and rules of a run, or everything by the default rules."""

    run: Number | None = None


ARGUMENTS: Mapping[JobKind, type[Arguments]] = {
    JobKind.IMPORT: ImportArguments,
    JobKind.CORRECT: CorrectArguments,
    JobKind.RERUN: RerunArguments,
    JobKind.RELEASE: ReleaseArguments,
    JobKind.DISCARD: DiscardArguments,
    JobKind.UNDO: UndoArguments,
    JobKind.RESOLVE: ResolveArguments,
    JobKind.PUSH: PushArguments,
    JobKind.RECONCILE: ReconcileArguments,
}


def check_arguments(kind: JobKind, given: Mapping[str, Any]) -> Arguments:
    """Check a job's arguments; raises JobRefused, which names the wrong one."""
    try:
        arguments = ARGUMENTS[kind].model_validate(given)
    except Invalid as error:
        first = error.errors(include_input=False, include_url=False)[0]
        where = ".".join(map(str, first["loc"])) or "what is asked for"
        more = error.error_count() - 1
        others = f" and {quantity(more, 'more')}" if more else ""
        wrong = first["msg"]
        if first["type"] in WRONG:
            wrong = WRONG[first["type"]].format(**first.get("ctx", {}))
        raise JobRefused(
            f"{where}: {wrong}{others}. Nothing was ordered: correct it and send it again."
        ) from None
    if isinstance(arguments, ResolveArguments) and not (
        arguments.rows or arguments.places or arguments.operation or arguments.states
    ):
        # A list that was forgotten must not mean everything.
        raise JobRefused("No row is chosen. Choose rows, an operation or a state.")
    return arguments


def profiles_folder(settings: Settings) -> Path:
    """The folder of the feed profiles that jobs can name."""
    return settings.home / "profiles"


def profile_names(settings: Settings) -> list[str]:
    """The names of the existing feed profiles."""
    found = profiles_folder(settings).glob("*.toml")
    return sorted(path.stem for path in found if path.is_file())


def profile_path(settings: Settings, name: str | None) -> Path | None:
    """The file of a feed profile; raises JobRefused if there is none of this name."""
    if name is None:
        return None
    if name not in profile_names(settings):
        raise JobRefused(
            f"There is no profile {name!r} in {profiles_folder(settings)}. Put {name}.toml there, "
            "or choose another."
        )
    return profiles_folder(settings) / f"{name}.toml"


def profile_of(settings: Settings, name: str | None) -> Profile:
    """The feed profile of this name; None gives the form of the service document."""
    path = profile_path(settings, name)
    return load_profile(path) if path else DEFAULT
