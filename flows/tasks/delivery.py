"""The form of an import: what to import and on which terms, as a run's parameters hold it."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal

from prefect.exceptions import ParameterTypeError
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, WithJsonSchema, model_validator

from connectors.files.profiles.profile import DEFAULT
from connectors.files.profiles.profile_file import load_profile, with_terms
from flows.stages.jobs.arguments import Number, Record, Tenant
from flows.stages.receiving.terms import StatedTerms
from schemas.tables import EXTRACTS

EARLIER = {"reject": "discard", "load": "release"}
"""Words of version 0.1, which deployments and waiting forms may still send."""
LEFT_OUT = "content_id"
"""What version 0.1 told runs about files from an inbox; waiting runs still have it."""
OverBudget = Literal["ask", "discard", "release", "reject", "load"]

_WORDS = (
    *("sig", "token", "key", "secret", "passw", "pwd", "credential"),
    *("auth", "login", "jwt", "sas"),
)
_NAMES = "|".join("".join(f"[{sign}{sign.upper()}]" for sign in word) for word in _WORDS)
ADDRESS_WITH_LOGIN = rf"://[^/?#]*@|[?&#;][^=&]*({_NAMES})[^=&]*="
"""Parameters of a run are kept and shown, and so would be a login or signature in a URL.

The pattern uses no flags, so that a JSON schema can contain it: the server then refuses such a
parameter before keeping it.
"""
WITHOUT_SECRET = rf"^(?![\s\S]*({ADDRESS_WITH_LOGIN}))"
REFUSED = (
    "this address carries a login, a key or a signature, and parameters of a run are shown "
    "to everyone; take it out and let the worker's environment give access"
)


def _without_secret(path: str) -> str:
    if re.search(ADDRESS_WITH_LOGIN, path):
        raise ValueError(REFUSED)
    return path


def _bare_without_secret(path: str) -> str:
    if re.search(ADDRESS_WITH_LOGIN, path):
        # Unlike a ValueError, this error is not shown and logged together with the value.
        raise ParameterTypeError(REFUSED[:1].upper() + REFUSED[1:] + ".")
    return path


_SCHEMA = WithJsonSchema({"type": "string", "minLength": 1, "pattern": WITHOUT_SECRET})
Address = Annotated[str, AfterValidator(_without_secret), _SCHEMA]
"""An address inside a model that hides its input in errors."""
BareAddress = Annotated[str, AfterValidator(_bare_without_secret), _SCHEMA]
"""An address that is itself a parameter of a flow."""
_MAY_BE_EMPTY = WithJsonSchema({"type": "string", "pattern": WITHOUT_SECRET})
Place = Annotated[str, AfterValidator(_without_secret), _MAY_BE_EMPTY]
"""A file or folder in such a model, which may be mistaken for an address; empty means none."""
BarePlace = Annotated[str, AfterValidator(_bare_without_secret), _MAY_BE_EMPTY]
"""The same as a flow parameter of its own."""
RecordName = Annotated[Record, WithJsonSchema({"type": "string", "enum": sorted(EXTRACTS)})]
"""A record kind, own kinds included; the form lists those known at deployment."""


class Delivery(BaseModel):
    """What to import and on which terms."""

    # A refused address may contain a secret, and error texts are kept.
    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    paths: list[Address] = Field(
        title="Files",
        description="Files, folders, glob patterns, zip archives or URLs, as the worker sees them.",
        min_length=1,
        json_schema_extra={"position": 0},
    )
    profile: Place | None = Field(
        default=None,
        title="Feed profile",
        description="Path of the feed's TOML file. If empty, the form of the service document.",
        json_schema_extra={"position": 1},
    )
    record: RecordName | None = Field(
        default=None,
        title="Record kind",
        description="If empty, it is recognised from the header.",
        json_schema_extra={"position": 2},
    )
    tenant: Tenant | None = Field(
        default=None,
        title="Tenant",
        description="Reject rows with any other TenantsId. If empty, take the rows of all tenants.",
        json_schema_extra={"position": 3},
    )
    max_errors: int | None = Field(
        default=None,
        title="Hold above this many rows with errors",
        description="A held batch applies nothing until somebody releases it.",
        ge=0,
        lt=2**31,
        json_schema_extra={"position": 4},
    )
    max_error_rate: float | None = Field(
        default=None,
        title="Hold above this share of rows with errors",
        description="0 to 1: 0.01 holds a batch with more than one bad row in a hundred.",
        ge=0,
        le=1,
        json_schema_extra={"position": 5},
    )
    corrects: Number | None = Field(
        default=None,
        title="Corrects batch",
        description="Number of the batch whose rejected rows or refused files this repairs.",
        json_schema_extra={"position": 6},
    )
    over_budget: OverBudget = Field(
        default="ask",
        title="Over its error budget",
        description=(
            "ask waits for a decision on the run's page; discard ends the batch; release applies "
            "its clean rows anyway (reject and load are the earlier names). A run without a "
            "deployment cannot ask, so its batch stays held."
        ),
        json_schema_extra={"position": 7},
    )
    push: bool = Field(
        default=False,
        title="Push to the service",
        description="Also send the applied rows to the service that the worker is set up for.",
        json_schema_extra={"position": 8},
    )
    files_hash: str | None = Field(
        default=None,
        title="Hash of the files",
        description=(
            "Set for deliveries from an inbox: files that have changed since are not imported. "
            "Leave it empty when you start a run yourself."
        ),
        json_schema_extra={"position": 9},
    )

    change_records: bool = Field(
        default=False,
        title="Change records of other deliveries",
        description=(
            "For a correction: let its rows change records of other deliveries, where the rows "
            "they repair have other keys. Without this they are rejected (RecordOfAnother)."
        ),
        json_schema_extra={"position": 10},
    )

    @model_validator(mode="before")
    @classmethod
    def _without_left_out(cls, given: Any) -> Any:
        if not isinstance(given, dict):
            return given
        return {name: value for name, value in given.items() if name != LEFT_OUT}

    @property
    def terms(self) -> StatedTerms:
        """The terms on which its files are opened and taken; raises ProfileError."""
        stated = {
            "tenant": self.tenant,
            "budget_errors": self.max_errors,
            "budget_rate": self.max_error_rate,
            "push": self.push or None,
        }
        profile = load_profile(Path(self.profile)) if self.profile else DEFAULT
        profile = replace(with_terms(profile, stated), change_records=self.change_records)
        return StatedTerms(profile, self.record, self.corrects)

    @property
    def label(self) -> str:
        """A name for the run: the last part of the first path, and how many more there are."""
        first = re.split(r"[?#]", self.paths[0])[0] if "://" in self.paths[0] else self.paths[0]
        name = re.split(r"[/\\]", first.rstrip("/\\"))[-1] or first
        more = f" and {len(self.paths) - 1} more" if self.paths[1:] else ""
        corrected = f", correcting batch {self.corrects}" if self.corrects else ""
        return name + more + corrected
