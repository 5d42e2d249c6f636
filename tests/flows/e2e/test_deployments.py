"""The table of deployments: its flows take its parameters, and prefect.yaml says the same."""

import re
from pathlib import Path

import pytest

from connectors.errors import SettingsError
from flows.ops.up_options import UpOptions, refuse_open_doors

ROOT = Path(__file__).parents[3]


def test_prefect_yaml_is_the_table() -> None:
    from flows.ops.deployments import prefect_yaml

    assert (ROOT / "prefect.yaml").read_text() == prefect_yaml(), (
        "write it again: python -m flows.ops.deployments > prefect.yaml"
    )


def test_names_are_unique_and_every_flow_is_found() -> None:
    from flows.ops.deployments import DEPLOYMENTS, load

    names = [line.full_name for line in DEPLOYMENTS]
    assert len(set(names)) == len(names)
    for line in DEPLOYMENTS:
        assert f"{load(line).name}/{line.name}" == line.full_name


def test_a_scheduled_run_needs_no_parameter() -> None:
    from prefect.utilities.callables import parameter_schema

    from flows.ops.deployments import DEPLOYMENTS, load

    for line in DEPLOYMENTS:
        assert line.schedule is None or not parameter_schema(load(line)).required, line.full_name


@pytest.mark.parametrize(
    ("host", "login", "refused"),
    [
        ("127.0.0.1", None, None),
        ("127.0.0.9", None, None),
        ("::1", None, None),
        ("localhost", None, None),
        ("0.0.0.0", None, "can be reached from other machines"),
        ("10.0.0.7", None, "can be reached from other machines"),
        ("example.com", None, "can be reached from other machines"),
        ("0.0.0.0", "ann:secret", None),
        ("127.0.0.1", "ann", "must be NAME:PASSWORD"),
        ("127.0.0.1", ":secret", "must be NAME:PASSWORD"),
        ("127.0.0.1", "ann:", "must be NAME:PASSWORD"),
    ],
)
def test_a_door_others_can_reach_needs_a_login(
    host: str, login: str | None, refused: str | None
) -> None:
    if refused is None:
        refuse_open_doors(UpOptions(host=host), login)
        return
    with pytest.raises(SettingsError, match=refused) as told:
        refuse_open_doors(UpOptions(host=host), login)
    assert "secret" not in str(told.value)


@pytest.mark.parametrize("page", ["runbook.md", "production.md"])
def test_what_a_page_names_is_there(page: str) -> None:
    from flows.__main__ import COMMANDS
    from flows.ops.deployments import DEPLOYMENTS

    text = (ROOT / "docs" / page).read_text()
    commands = set(re.findall(r"`(?:[A-Z_]+=\S+ )?recon ([a-z]+)", text))
    assert commands
    assert commands <= set(COMMANDS)
    for image in re.findall(r"\]\((images/[^)]+)\)", text):
        assert (ROOT / "docs" / image).is_file(), image
    names = {line.name for line in DEPLOYMENTS} | {line.flow for line in DEPLOYMENTS}
    for named in re.findall(r"Deployments > ([a-z-]+)", text):
        assert named in names, named
