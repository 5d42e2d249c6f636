"""Whatever a caller sends, the answer is one that the host's description names, and never a 500.

The long run sends 100 requests for every operation of either style instead of a few. In the gate an
operation is called rightly or wrongly at one of the styles, in turn.
"""

import csv
import io
import re
from collections.abc import Iterator, Mapping
from math import isfinite, isinf
from typing import Any, TypeAlias

import pytest
import requests
import schemathesis
from _pytest.mark import ParameterSet
from hypothesis import HealthCheck, Phase, assume, given, seed, settings
from hypothesis import strategies as st
from schemathesis import Case as AnyCase
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.core.result import Ok
from schemathesis.schemas import APIOperation as AnyOperation
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)
from schemathesis.transport.requests import REQUESTS_TRANSPORT

from connectors.sandbox import SandboxOptions
from connectors.sandbox.description import Description
from connectors.sandbox.options import STYLES
from schemas.derived import jsv
from tests.examples import examples, in_long
from tests.sandbox.caller import basic
from tests.sandbox.conftest import Host

SEED = 20260102
Case: TypeAlias = AnyCase[Any]
APIOperation: TypeAlias = AnyOperation[Any, Any, Any, Any]
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
FEW = settings(
    max_examples=examples(100, 3),
    database=None,
    deadline=None,
    phases=(Phase.generate, Phase.shrink),
    suppress_health_check=list(HealthCheck),
)


def _calls(style: str) -> Iterator[tuple[str, tuple[str, APIOperation]]]:
    document = Description(SandboxOptions(style=style)).document()
    for result in schemathesis.openapi.from_dict(document).get_all_operations():
        assert isinstance(result, Ok), result
        yield f"{style} {result.ok().label}", (style, result.ok())


CALLS = dict(call for style in STYLES for call in _calls(style))
LABELS = sorted({described.label for _, described in CALLS.values()})
# A .NET offset is 14 hours at most, and its instant is within the years 1 to 9999.
NO_TIME = re.compile(r"'(?:0001-01-01|9999-12-31)|[+-](?:1[4-9]|2[0-9]):[0-9]{2}'")
CALLERS = st.sampled_from([basic("partner")] * 3 + [basic("nobody"), basic("client", "no"), None])
ACCEPTED = st.sampled_from(["application/json", "text/csv", "application/jsv", "text/html", "*/*"])


@REQUESTS_TRANSPORT.serializer("text/csv", "application/jsv")
def written(_: object, value: Any) -> dict[str, bytes]:
    """CSV of one row for a record, so that both readers of texts meet odd values, too."""
    record = value if isinstance(value, dict) else {"value": value}
    cells = {name: _cell(member) for name, member in record.items()}
    page = io.StringIO()
    csv.writer(page).writerows([list(cells), list(cells.values())])
    return {"data": page.getvalue().encode(errors="replace")}


def _cell(value: Any) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    try:
        return jsv.write(value)
    except ValueError:
        return str(value)


def _whole_numbers(part: Any) -> Any:
    """With 0 instead of 0.0: to JSON Schema they are one integer, a host reads only the first."""
    match part:
        case float() if part.is_integer():
            return int(part)
        case Mapping():
            return {name: _whole_numbers(member) for name, member in part.items()}
        case list():
            return [_whole_numbers(element) for element in part]
    return part


def _rounds_to_infinity(part: Any) -> bool:
    """Whether a double is so large that its first 15 digits are no double any more."""
    match part:
        case float():
            return isfinite(part) and isinf(float(f"{part:.15g}"))
        case Mapping():
            return any(map(_rounds_to_infinity, part.values()))
        case list() | tuple():
            return any(map(_rounds_to_infinity, part))
    return False


@pytest.fixture(scope="module")
def session() -> Iterator[requests.Session]:
    with requests.Session() as made:
        made.trust_env = False
        yield made


def _turn(call: str, *, right: bool) -> bool:
    """Of two styles and two ways to call an operation one, and for the next operation the next."""
    style, described = CALLS[call]
    return LABELS.index(described.label) % 4 == 2 * [*STYLES].index(style) + right


def _run(call: str, mode: GenerationMode) -> ParameterSet:
    right = mode is GenerationMode.POSITIVE
    return pytest.param(call, mode) if _turn(call, right=right) else in_long(call, mode)


RUNS = [
    _run(call, mode)
    for call, (_, described) in CALLS.items()
    for mode in GenerationMode
    # What takes nothing cannot be called wrongly.
    if mode is GenerationMode.POSITIVE or described.body or described.query
]


@pytest.mark.parametrize(("call", "mode"), RUNS, ids=str)
def test_answers_are_as_described(
    call: str, mode: GenerationMode, pascal: Host, camel: Host, session: requests.Session
) -> None:
    style, described = CALLS[call]
    host = {"pascal-5": pascal, "camel-core": camel}[style]

    @seed(SEED)
    @FEW
    @given(case=described.as_strategy(generation_mode=mode), caller=CALLERS, accept=ACCEPTED)
    def answered(case: Case, caller: str | None, accept: str) -> None:
        assume(not (style == "pascal-5" and _rounds_to_infinity((case.body, case.query))))
        headers = {"Accept": accept} | ({"Authorization": caller} if caller else {})
        response = case.call(host.caller.base_url, session, headers)
        case.validate_response(response, checks=CHECKS)

    answered()


RIGHT = [
    pytest.param(call) if _turn(call, right=False) else in_long(call)
    for call in CALLS
    if "/auth" not in call
]


@pytest.mark.parametrize("call", RIGHT)
def test_what_is_described_is_accepted(
    call: str, pascal: Host, camel: Host, session: requests.Session
) -> None:
    style, described = CALLS[call]
    host = {"pascal-5": pascal, "camel-core": camel}[style]

    @seed(SEED)
    @FEW
    @given(case=described.as_strategy())
    def accepted(case: Case) -> None:
        # A form or a CSV cell has no null of its own.
        assume(not described.body or case.media_type == "application/json")
        assume(not NO_TIME.search(repr((case.body, case.query))))
        case.body = _whole_numbers(case.body)
        headers = {"Accept": "application/json", "Authorization": basic("partner")}
        response = case.call(host.caller.base_url, session, headers)
        # An e-mail address can be registered once.
        assert response.status_code in (200, 409), f"{response.text} to {case.body!r}"

    accepted()
