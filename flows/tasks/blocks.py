"""Blocks, by which the server's operator says where runs find their database and service.

A flow looks for the block first, and uses the environment if there is none; the command line only
uses the environment. Secrets are encrypted in the server's database and masked in its pages.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import gettempdir
from typing import Self, TypeVar, cast
from uuid import UUID

import httpx
from prefect.blocks.core import Block
from prefect.context import FlowRunContext, TaskRunContext
from prefect.exceptions import ObjectNotFound
from pydantic import ConfigDict, Field, SecretStr, ValidationError, model_validator

from connectors.addresses import check_database_address, real_path
from connectors.environment import setting
from connectors.errors import SettingsError
from connectors.service.credentials import Credentials, Scheme, read_credentials
from connectors.settings import ServiceSettings, Settings, read_settings

TARGET = "target"
"""Name of the TargetDatabase that runs look for."""
SERVICE = "service"
"""Name of the ServiceCredentials that runs look for."""

Kind = TypeVar("Kind", bound=Block)


class TargetDatabase(Block):
    """The PostgreSQL database that deliveries are imported into."""

    _block_type_name = "Target database"
    _block_type_slug = "target-database"
    # Error texts are kept and shown, and the input in them would be the password.
    model_config = ConfigDict(hide_input_in_errors=True)

    url: SecretStr = Field(
        title="URL",
        description="postgresql://USER:PASSWORD@HOST/DATABASE; the role has to be allowed to load.",
    )

    @model_validator(mode="after")
    def _can_be_used(self) -> Self:
        self.settings(read_settings({}))
        return self

    def settings(self, settings: Settings) -> Settings:
        """The settings with this database; raises ValueError for an invalid PostgreSQL URL."""
        url = self.url.get_secret_value()
        try:
            check_database_address("The URL", url, "delete the block for the worker's own")
        except SettingsError as problem:
            raise ValueError(str(problem)) from None
        named = f"the block {self.get_block_type_slug()}/{TARGET}"
        return replace(settings, database_url=url, database_from=named)


class ServiceCredentials(Block):
    """The service that rows are pushed to, and the login to use there."""

    _block_type_name = "Service credentials"
    _block_type_slug = "service-credentials"
    model_config = ConfigDict(hide_input_in_errors=True)

    base_url: str = Field(
        title="Base URL",
        description="An http or https address, without a user or password in it.",
        json_schema_extra={"position": 0},
    )
    scheme: Scheme = Field(
        default=Scheme.BASIC,
        title="Scheme",
        description="How the service authenticates its callers.",
        json_schema_extra={"position": 1},
    )
    user: str = Field(
        default="",
        title="User",
        description="Only for the schemes basic and credentials.",
        json_schema_extra={"position": 2},
    )
    secret: SecretStr = Field(
        default=SecretStr(""),
        title="Secret",
        description="The password, token or API key, depending on the scheme.",
        json_schema_extra={"position": 3},
    )

    @model_validator(mode="after")
    def _can_be_used(self) -> Self:
        try:
            self.credentials()
            self.settings(ServiceSettings())
        except SettingsError as problem:
            text = re.sub(r"RECON_SERVICE_(\w+)", _field_of, str(problem))
            raise ValueError(text) from None
        return self

    def credentials(self) -> Credentials:
        """Who is calling; raises SettingsError if the scheme lacks something."""
        return Credentials(self.scheme, self.user or None, self.secret.get_secret_value() or None)

    def settings(self, settings: ServiceSettings) -> ServiceSettings:
        """The settings with this service; raises SettingsError."""
        return replace(settings, url=self.base_url)


def _field_of(setting: re.Match[str]) -> str:
    """The name on the form for what a setting of the environment says."""
    return {"URL": "Base URL", "USER": "User"}.get(setting[1], "Secret")


BLOCKS: tuple[type[Block], ...] = (TargetDatabase, ServiceCredentials)


def register() -> list[str]:
    """Register the block types and their forms on the server; gives their names."""
    for block in BLOCKS:
        block.register_type_and_schema()
    return [block.get_block_type_slug() for block in BLOCKS]


def run_settings() -> Settings:
    """The settings of a flow run: the blocks `target` and `service`, else the environment."""
    settings = read_settings()
    _refuse_folder_of_run(settings.home)
    target, service = find(TargetDatabase, TARGET), find(ServiceCredentials, SERVICE)
    if target:
        settings = target.settings(settings)
    return replace(settings, service=service.settings(settings.service)) if service else settings


def _refuse_folder_of_run(home: Path) -> None:
    """Raise SettingsError if the home is in the folder that a worker removes after its run.

    A worker without RECON_HOME has it there, and everything kept of a delivery would be lost.
    """
    here = next((one for one in home.parents if re.fullmatch("tmp.*prefect", one.name)), None)
    if here is not None and here.parent == real_path(Path(gettempdir())):
        raise SettingsError(
            f"RECON_HOME={setting('RECON_HOME') or '.recon'!r} is a folder of this run alone; "
            "its worker removes it after the run, with all that is kept there. Nothing was done. "
            "Set RECON_HOME of the worker to the whole path of a lasting folder, then Retry."
        )


def run_credentials() -> Credentials:
    """Who a flow run is to the service: from the block `service`, else the environment."""
    service = find(ServiceCredentials, SERVICE)
    return service.credentials() if service else read_credentials()


def find(block: type[Kind], name: str) -> Kind | None:
    """The block of this name, or None if there is none; raises SettingsError.

    An attempt at a run asks the server once, so that all its tasks use the same database and
    service. A retried task asks again, in case something was fixed meanwhile.
    """
    flow, task = FlowRunContext.get(), TaskRunContext.get()
    if flow is None or flow.flow_run is None:
        return _load(block, name)
    attempt = flow.flow_run.id, flow.flow_run.run_count
    if all(one != attempt for one, _ in _found):
        _found.clear()
    tried_again = task is not None and task.task_run.run_count > 1
    if tried_again or (attempt, name) not in _found:
        _found[attempt, name] = _load(block, name)
    return cast(Kind | None, _found[attempt, name])


_found: dict[tuple[tuple[UUID, int], str], Block | None] = {}
"""Blocks by attempt and name, of the last attempt that asked."""


def _load(block: type[Kind], name: str) -> Kind | None:
    slug = f"{block.get_block_type_slug()}/{name}"
    try:
        with deciphered(slug):
            return cast(Kind, block.load(name))
    except (ValueError, RuntimeError) as problem:
        if isinstance(problem.__cause__, ObjectNotFound):
            return None
        why = ""
        if isinstance(problem.__cause__, ValidationError):
            why = f": {_faults(problem.__cause__)}"
        elif isinstance(problem, RuntimeError):
            raise  # About the server, not about the block.
        raise SettingsError(
            f"The block {slug} cannot be used{why.rstrip('.')}. Open it in the server's pages, "
            "under Blocks, correct it and save it."
        ) from None


def _faults(invalid: ValidationError) -> str:
    """What is wrong with the values of a block, without the values."""
    return "; ".join(
        ": ".join([*map(str, one["loc"]), one["msg"].removeprefix("Value error, ")])
        for one in invalid.errors(include_url=False, include_input=False)
    )


@contextmanager
def deciphered(block: str) -> Iterator[None]:
    """Raise SettingsError if the server answers but cannot decrypt the values of this block."""
    try:
        yield
    except httpx.HTTPStatusError as problem:
        if problem.response.status_code != httpx.codes.INTERNAL_SERVER_ERROR:
            raise
        raise SettingsError(
            f"The Prefect server cannot read the block {block} (HTTP 500): it was saved with "
            "another PREFECT_SERVER_ENCRYPTION_KEY, or the server's log says what else is wrong. "
            "Start the server with the earlier key. docs/production.md, Secrets, says how to do "
            "without it where it is lost."
        ) from None
