"""What is registered on a server: deployments that an earlier version left there are told."""

from collections.abc import Iterator

import pytest

pytestmark = pytest.mark.flows


@pytest.fixture(autouse=True)
def nothing_stays() -> Iterator[None]:
    """Other tests count on a server without deployments."""
    from prefect.client.orchestration import get_client

    yield
    with get_client(sync_client=True) as client:
        for found in client.read_deployments():
            client.delete_deployment(found.id)


def test_what_an_earlier_version_left_is_told_and_stays() -> None:
    from prefect.client.orchestration import get_client

    from flows.deployments import DEPLOYMENTS, TAG, Deployment, create_pool, left_over
    from flows.deployments import _register as register
    from flows.import_batch import import_batch

    create_pool()
    earlier = Deployment("import_batch", "nightly", "As an earlier version had it.")
    with get_client(sync_client=True) as client:
        register(client, DEPLOYMENTS[0], "recon")
        register(client, earlier, "recon")
    import_batch.to_deployment("mine", tags=[TAG]).apply()
    import_batch.to_deployment("untagged").apply()
    assert left_over() == left_over() == ["import-batch/nightly"]
    with get_client(sync_client=True) as client:
        found = client.read_deployment_by_name(earlier.full_name)
        client.delete_deployment(found.id)
    assert left_over() == []
