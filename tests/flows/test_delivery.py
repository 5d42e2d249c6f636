"""The form of the flow: what it shows, what it takes and what it refuses."""

from contextlib import nullcontext
from importlib import import_module
from typing import Any

import pytest
from pydantic import ValidationError

from schemas.tables import EXTRACTS

pytestmark = [pytest.mark.flows, pytest.mark.usefixtures("no_database")]


def delivery(*paths: str, **terms: Any) -> Any:
    from flows.tasks.delivery import Delivery

    return Delivery(paths=list(paths), **terms)


def test_the_form_shows_every_field_in_order() -> None:
    from flows.tasks.delivery import Delivery

    fields = Delivery.model_json_schema()["properties"]
    assert [field["position"] for field in fields.values()] == list(range(len(fields)))
    assert all(field["title"] and field["description"] for field in fields.values())
    assert fields["record"]["anyOf"][0]["enum"] == sorted(EXTRACTS)


@pytest.mark.parametrize(
    ("paths", "label"),
    [
        (["inbox"], "inbox"),
        (["/data/inbox/"], "inbox"),
        (["/data/a.csv", "b.csv", "c.csv"], "a.csv and 2 more"),
        (["s3://bucket/day/a.csv?versionId=1"], "a.csv"),
        (["data\\a.csv"], "a.csv"),
        (["/data/pay-?.csv"], "pay-?.csv"),
        (["/"], "/"),
    ],
)
def test_a_run_is_named_for_what_it_imports(paths: list[str], label: str) -> None:
    assert delivery(*paths).label == label


@pytest.mark.parametrize(
    "path",
    [
        "https://ann:canary@example.com/a.csv",
        "sftp://canary@example.com/a.csv",
        "https://example.com/a.csv?X-Amz-Signature=canary",
        "https://example.com/a.csv?day=1&sig=canary",
        "https://example.com/a.csv?access_token=canary",
    ],
)
def test_an_address_that_carries_a_secret_is_refused_without_showing_it(path: str) -> None:
    with pytest.raises(ValidationError, match="carries a login, a key or a signature") as refused:
        delivery("a.csv", path)
    assert "canary" not in str(refused.value)


@pytest.mark.parametrize("path", ["s3://bucket/ann@example.com.csv", "a@b.csv", "pay?day=1.csv"])
def test_an_address_without_a_secret_is_taken(path: str) -> None:
    assert delivery(path).paths == [path]


@pytest.mark.parametrize(
    "terms",
    [
        {"record": "invoice"},
        {"max_errors": -1},
        {"max_error_rate": 1.5},
        {"corrects": 0},
        {"limit": 3},
    ],
)
def test_terms_that_cannot_be_meant_are_refused(terms: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match=next(iter(terms))):
        delivery("a.csv", **terms)


def test_a_delivery_names_at_least_one_path() -> None:
    with pytest.raises(ValidationError, match="at least 1 item"):
        delivery()


ADDRESSES = {
    "https://ann:canary@example.com/a.csv": False,
    "https://example.com/a.csv?SIG=canary": False,
    "https://example.com/a.csv?a=1&Api_Key=canary": False,
    "https://example.com/a.csv#access_token=canary": False,
    "https://example.com/a.csv?pwd=canary": False,
    "s3://bucket/a.csv?versionId=1": True,
    "/data/a@b.csv": True,
    "": False,
}


@pytest.mark.parametrize(("address", "taken"), ADDRESSES.items())
def test_the_server_refuses_a_secret_and_no_path_before_it_keeps_them(
    address: str, taken: bool
) -> None:
    """What the server does with the parameters of a run that is asked for."""
    from prefect.exceptions import ParameterTypeError
    from prefect.utilities.callables import parameter_schema
    from prefect.utilities.schema_tools.validation import validate

    from flows.housekeeping import housekeeping
    from flows.import_batch import import_batch
    from flows.reconcile import reconcile
    from flows.rerun_batch import rerun_batch
    from flows.watch_inbox import watch_inbox

    asked = [
        (import_batch, {"delivery": {"paths": ["a.csv", address]}}),
        (rerun_batch, {"batch_id": 1, "only": "failed rows", "corrected_file": address}),
        (watch_inbox, {"inbox": address}),
    ]
    if address:  # What may be named there need not be.
        asked += [
            (import_batch, {"delivery": {"paths": ["a.csv"], "profile": address}}),
            (watch_inbox, {"profile": address}),
            (reconcile, {"rules": address}),
            (housekeeping, {"inbox": address}),
        ]
    for flow, parameters in asked:
        schema = parameter_schema(flow).model_dump()
        assert bool(validate(parameters, schema, preprocess=False)) != taken
        with (
            nullcontext() if taken or not address else pytest.raises(ParameterTypeError) as refused
        ):
            flow.validate_parameters(parameters)
        assert "canary" not in str(refused and refused.value)


@pytest.mark.parametrize(
    ("flow", "given"),
    [
        ("import_batch", {"delivery": {"paths": ["a.csv"], "record": "refund"}}),
        (
            "resolve",
            {
                "batch_id": 1,
                "decision": "resend",
                "reason": "why",
                "by": "Ann",
                "operation": "EditRefund",
            },
        ),
    ],
)
def test_a_kind_that_only_this_worker_lacks_is_told_with_where_it_is_defined(
    flow: str, given: dict[str, Any]
) -> None:
    """The form offers the kinds of the machine that registered the deployment."""
    from prefect.exceptions import ParameterTypeError

    with pytest.raises(ParameterTypeError, match="own has to be defined in RECON_RECORDS here"):
        getattr(import_module(f"flows.{flow}"), flow).validate_parameters(given)


NEEDED: dict[str, dict[str, Any]] = {
    "import_batch": {"delivery": {"paths": ["a.csv"]}},
    "rerun_batch": {"batch_id": 1},
    "resolve": {"batch_id": 1, "decision": "confirm", "reason": "seen", "by": "A. Meyer"},
    "do_job": {"job": 1},
}
"""Parameters without which a flow is not asked for."""
ODD = ("", " ", "\n\t", "x", [], [""], [" "], -1, 0, 1.5, None, {})


@pytest.mark.long
def test_the_server_refuses_whatever_a_flow_refuses() -> None:
    """What is refused by the flow alone makes a run, which fails."""
    from prefect.exceptions import ParameterTypeError
    from prefect.utilities.callables import parameter_schema
    from prefect.utilities.schema_tools.validation import validate

    from flows.ops.deployments import DEPLOYMENTS, load
    from flows.tasks.delivery import Delivery

    taken, own = [], NEEDED["import_batch"]["delivery"]
    for name, flow in {line.flow: load(line) for line in DEPLOYMENTS}.items():
        needed, schema = NEEDED.get(name, {}), parameter_schema(flow).model_dump()
        assert flow.validate_parameters({**needed}) is not None
        asked = [needed | {one: odd} for one in schema["properties"] for odd in ODD]
        if name == "import_batch":
            asked += [
                {"delivery": own | {one: odd}} for one in Delivery.model_fields for odd in ODD
            ]
        for parameters in asked:
            try:
                flow.validate_parameters({**parameters})
            except ParameterTypeError:
                if not validate(parameters, schema, preprocess=False):
                    taken.append((name, parameters))
    assert taken == []


@pytest.mark.long
def test_no_number_is_taken_that_the_server_could_not_list() -> None:
    """It would keep one beyond 64 bits, and then list no run of that deployment any more."""
    from prefect.utilities.callables import parameter_schema
    from prefect.utilities.schema_tools.validation import validate

    from flows.ops.deployments import DEPLOYMENTS, load
    from flows.tasks.delivery import Delivery

    taken, own = [], NEEDED["import_batch"]["delivery"]
    for name, flow in {line.flow: load(line) for line in DEPLOYMENTS}.items():
        schema = parameter_schema(flow).model_dump()
        for huge in (2**64, -(2**64), 1e25, [2**64], [-(2**64)]):
            asked = [NEEDED.get(name, {}) | {one: huge} for one in schema["properties"]]
            if name == "import_batch":
                asked += [{"delivery": own | {one: huge}} for one in Delivery.model_fields]
            taken += [one for one in asked if not validate(one, schema, preprocess=False)]
    assert taken == []


@pytest.mark.parametrize(
    ("name", "given", "taken"),
    [
        ("watch_inbox", {"deployment": "import-batch/mine"}, True),
        ("watch_inbox", {"deployment": "adhoc"}, False),
        ("watch_inbox", {"deployment": ""}, False),
        ("watch_inbox", {"deployment": "import-batch/a/b"}, False),
        ("watch_inbox", {"deployment": "rerun-batch/rerun"}, False),
        ("push_batch", {"rate": 0.5}, True),
        ("push_batch", {"rate": 1e-9}, False),
    ],
)
def test_the_server_refuses_parameters_that_no_run_can_go_by(
    name: str, given: dict[str, Any], taken: bool
) -> None:
    from prefect.utilities.callables import parameter_schema
    from prefect.utilities.schema_tools.validation import validate

    flow = getattr(import_module(f"flows.{name}"), name)
    schema = parameter_schema(flow).model_dump()
    assert bool(validate(given, schema, preprocess=False)) != taken


OF_0_1: dict[str, dict[str, Any]] = {
    # All that a run of version 0.1 may have been given, and may wait with while recon is upgraded.
    "batch_board": {"days": 30},
    "housekeeping": {
        "archive_days": 90,
        "report_days": 90,
        "result_days": 90,
        "inbox": None,
        "dry_run": True,
        "verify": True,
    },
    "import_batch": {
        "delivery": {
            "paths": ["/in/a.csv"],
            "profile": None,
            "record": "payment",
            "tenant": 7,
            "max_errors": 3,
            "max_error_rate": 0.5,
            "corrects": 1,
            "over_budget": "load",
            "push": True,
            "content_id": "5f0e",
        }
    },
    "pull_listings": {"listings": ["avatars", "payment_plan_details", "insert_batch_data"]},
    "push_batch": {"batch_id": 0, "max_rows": None, "rate": 2.5},
    "reconcile": {
        "as_of": "2026-01-31",
        "rules": None,
        "batches": [1],
        "feeds": ["bank"],
        "tenants": [7],
        "restate": "why",
        "pull": False,
    },
    "rerun_batch": {
        "batch_id": 1,
        "from_stage": "stage",
        "only": "all rows",
        "corrected_file": None,
        "over_budget": "reject",
    },
    "resolve": {
        "batch_id": 1,
        "decision": "resend",
        "reason": "why",
        "by": "Ann",
        "rows": [],
        "all_rows": True,
        "operation": "EditPayment",
        "state": "unsent",
    },
    "watch_inbox": {
        "inbox": "/in",
        "settle_seconds": 5,
        "profile": None,
        "over_budget": "ask",
        "deployment": "import-batch/adhoc",
    },
}


@pytest.mark.parametrize("name", OF_0_1)
def test_a_run_that_version_0_1_scheduled_can_begin(name: str) -> None:
    flow = getattr(import_module(f"flows.{name}"), name)
    assert flow.validate_parameters(OF_0_1[name]).keys() == OF_0_1[name].keys()


def test_an_address_by_itself_is_refused_without_its_value() -> None:
    from prefect.exceptions import ParameterTypeError

    from flows.rerun_batch import rerun_batch

    with pytest.raises(ParameterTypeError, match="carries a login") as refused:
        rerun_batch.validate_parameters(
            {"batch_id": 1, "only": "failed rows", "corrected_file": "https://a:canary@h/x"}
        )
    assert "canary" not in str(refused.value)
