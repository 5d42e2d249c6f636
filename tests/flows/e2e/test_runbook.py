"""The runbook, clicked through in a real browser on a machine that is up: what each page says.

`make pictures` takes the pictures of the runbook again, except those of the page of a run and of a
crashed one. The story of bad rows is the first: to the text, its batch is batch 1.
"""

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import psycopg
import pytest

from connectors.sandbox import Fault, FaultKind, Faults, Sandbox, SandboxOptions, User
from tests.flows.e2e.browser import BROWSER, Browser, browsing
from tests.flows.e2e.machine import Machine
from tests.flows.e2e.test_story import over
from tests.ports import own_port
from tests.push.deliveries import tones
from tests.stages.payments import line, write

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.long,
    pytest.mark.skipif(BROWSER is None, reason="there is no chromium on this machine"),
]

SAMPLES = Path(__file__).parents[3] / "data_samples"
USER = User("ops", "not-a-secret", ("Client", "Admin", "Partner"))
Serving = Callable[..., AbstractContextManager[None]]


@pytest.fixture(scope="module")
def port() -> int:
    return own_port()


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where this machine and its deliveries live; pictures show it."""
    named = os.environ.get("RECON_PICTURES_PLACE")
    return Path(named) if named else tmp_path_factory.mktemp("runbook")


@pytest.fixture(scope="module")
def clicked(place: Path, port: int) -> Iterator[Machine]:
    """A machine of its own, whose runs push to a service that these stories start and stop."""
    one = Machine(
        place / "recon",
        RECON_SERVICE_URL=f"http://127.0.0.1:{port}",
        RECON_SERVICE_USER=USER.name,
        RECON_SERVICE_PASSWORD=USER.password,
        RECON_SERVICE_ATTEMPTS="2",
    )
    with one.up():
        with psycopg.connect(one.database("postgres"), autocommit=True) as connection:
            connection.execute("CREATE DATABASE elsewhere")
        # A push by schedule would come between these stories.
        push = one.deployment("push-batch/push")
        (schedule,) = push["schedules"]
        path = f"/deployments/{push['id']}/schedules/{schedule['id']}"
        one.api.patch(path, json={"active": False}).raise_for_status()
        yield one


@pytest.fixture(scope="module")
def page(clicked: Machine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    pictures = os.environ.get("RECON_PICTURES")
    profile = tmp_path_factory.mktemp("browser")
    with browsing(clicked, profile, Path(pictures) if pictures else None) as one:
        yield one
        assert one.asked == set(), "the pages called somebody outside"


@pytest.fixture
def serving(clicked: Machine, port: int) -> Serving:
    """The service is up while this is entered, with the faults that are asked for."""

    @contextmanager
    def serve(*faults: Fault) -> Iterator[None]:
        options = SandboxOptions(port=port, users=(USER,), faults=Faults(faults=faults))
        with Sandbox(options, clicked.database("elsewhere")).running():
            yield

    return serve


@pytest.fixture
def folder(place: Path) -> Path:
    (place / "deliveries").mkdir(exist_ok=True)
    return place / "deliveries"


def deliver(page: Browser, path: str, *, push: bool = False) -> str:
    """Fill in the form of an import and submit it; gives the run."""
    page.custom_run("import-batch/adhoc")
    page.click("Add item")
    page.type_first(path)
    if push:
        page.switch("Push to the service")
    return page.submit("import")


def batch_of(machine: Machine, name: str) -> int:
    ((number,),) = machine.rows("SELECT max(batch_id) FROM extract WHERE name = %s", [name])
    return int(number)


def test_bad_rows(clicked: Machine, page: Browser, folder: Path) -> None:
    delivery = folder / "2026-11-24"
    shutil.copytree(SAMPLES / "dirty", delivery)
    for path in delivery.glob("*.csv"):
        with path.open("a") as file:
            file.write("\n")  # Another story takes the same files in, and these are to be others.
    run = deliver(page, str(delivery))
    assert clicked.end(run)[1] == "CompletedWithErrors"
    batch = batch_of(clicked, "payments.csv")
    page.artifact("import-summary")
    page.see("money in the database")
    page.picture("import-summary")
    page.artifact("rejects")
    page.see("Value")
    within = "[...document.querySelectorAll('th')].filter(one => one.getBoundingClientRect().right"
    seen = page.value(f"{within} <= innerWidth).map(one => one.innerText.trim())")
    assert seen[:4] == ["Reason", "Rows", "File", "Line"]
    page.picture("rejects")

    def told() -> bool | None:
        wanted = {"artifacts": {"key": {"any_": ["batches"]}}, "sort": "CREATED_DESC", "limit": 1}
        tables = clicked.post("/artifacts/filter", wanted)
        return any(f"recon rejects {batch} " in one["data"] for one in tables) or None

    clicked.until(told, 120)
    page.artifact("batches")
    page.see("complete with errors")
    page.picture("batches", height=420)
    corrected = folder / "2026-11-24-corrected"
    assert clicked.recon("rejects", str(batch), "--out", str(corrected)).returncode == 0
    page.custom_run("rerun-batch/rerun")
    page.type("batch_id", str(batch))
    page.choose("only", "failed rows")
    page.choose_kind("corrected_file", "str")
    page.type("corrected_file", str(corrected))
    page.show("Run Name")
    page.picture("rerun-form")
    assert clicked.end(page.submit("rerun"))[1] == "CompletedWithErrors", "as it was delivered"
    page.artifact("rerun-diff")
    page.see("before this rerun and after it")


def test_service_down(clicked: Machine, page: Browser, serving: Serving, folder: Path) -> None:
    path = write(folder / "payments-2026-11-20.csv", *(line(number) for number in range(1, 41)))
    run = deliver(page, path, push=True)
    type_, _, message = clicked.end(run)
    assert type_ == "FAILED", message
    batch = batch_of(clicked, "payments-2026-11-20.csv")
    assert f"40 rows of batch {batch} are unsent and nothing is lost" in message
    page.run_page(run)
    page.show("Finished in state Failed")
    page.picture("service-down", height=460)
    with serving():
        page.click("Retry")
        page.see("This will retry flow run")
        page.click("Retry", ".p-modal button")
        type_, name, message = clicked.end(run, runs=2)
        assert (type_, name) == ("COMPLETED", "Completed"), message
    page.artifact("import-summary")
    page.see("Nothing is left to do")


def test_in_doubt(clicked: Machine, page: Browser, serving: Serving, folder: Path) -> None:
    path = tones(folder / "tones-2026-11-20.csv", 12)
    lost = Fault(FaultKind.RESET, every=5, applied=True)
    with serving(lost):
        run = deliver(page, path, push=True)
        type_, name, message = clicked.end(run)
    batch = batch_of(clicked, "tones-2026-11-20.csv")
    assert (type_, name) == ("COMPLETED", "CompletedWithErrors"), message
    assert f"Next: recon sends {batch} --state in_doubt, then recon resolve." in message
    page.artifact("import-summary")
    page.see("Look at the service for the rows in doubt, then settle them.")
    page.show("State at the service")
    page.picture("in-doubt")
    page.custom_run("resolve/resolve")
    page.type("batch_id", str(batch))
    page.choose("decision", "confirm")
    page.type("reason", "seen at the service, one by one")
    page.type("by", "A. Meyer")
    page.switch("all_rows")
    page.picture("resolve-form")
    settled = page.submit("resolve batch")
    assert clicked.end(settled)[:2] == ("COMPLETED", "Completed")
    page.artifact("resolution")
    page.see("in doubt")
    page.picture("resolution", height=360)
    status = clicked.recon("status").stdout
    assert next(one for one in status.splitlines() if one.split()[0] == str(batch)).endswith(
        "0 errors  "
    )


def test_duplicate_delivery(clicked: Machine, page: Browser, folder: Path) -> None:
    once = write(folder / "payments-once.csv", line(101), line(102))
    assert clicked.end(deliver(page, once))[1] == "Completed"
    shutil.copy(once, folder / "payments-again.csv")
    run = deliver(page, str(folder / "payments-again.csv"))
    type_, name, message = clicked.end(run)
    assert (type_, name) == ("COMPLETED", "Completed")
    assert "was taken in batch" in message
    page.run_page(run)
    page.show("Finished in state Completed('This delivery")
    page.picture("duplicate")


def test_wrong_file(clicked: Machine, page: Browser, folder: Path) -> None:
    delivery = folder / "2026-11-21"
    write(delivery / "payments.csv", line(201), line(202))
    (delivery / "rates.csv").write_text("<!DOCTYPE html><html><body>Sign in</body></html>\n")
    run = deliver(page, str(delivery))
    type_, name, message = clicked.end(run)
    assert (type_, name) == ("COMPLETED", "CompletedWithErrors"), message
    batch = batch_of(clicked, "payments.csv")
    assert f"Next: recon import FILE --corrects {batch}." in message
    page.artifact("import-summary")
    page.show("Refused files")
    page.picture("refused-file")
    undone = clicked.recon("undo", str(batch), "--reason", "wrong month")
    assert (undone.returncode, "2 deleted" in undone.stdout) == (0, True), undone.stdout


def test_over_budget(clicked: Machine, page: Browser, folder: Path) -> None:
    shutil.copytree(SAMPLES / "dirty", folder / "2026-11-23")
    page.custom_run("import-batch/adhoc")
    page.click("Add item")
    page.type_first(str(folder / "2026-11-23"))
    page.choose_kind("Hold above this many rows with errors", "int")
    page.type("Hold above this many rows with errors", "20")
    page.show("Record kind")
    page.picture("run-form")
    run = page.submit("import")
    assert clicked.end(run)[:2] == ("PAUSED", "Suspended")
    page.run_page(run)
    page.click("Resume")
    page.see("Rows by reason")
    page.choose("Decision", "release")
    page.type("Your name", "A. Meyer")
    page.type("Reason", "known faults, the bank sends them again tomorrow")
    page.value("document.activeElement.blur()")
    page.picture("approval", left=300, width=640)
    page.click("Submit", ".p-modal button")
    ended = clicked.until(lambda: over(clicked, run))
    assert ended == "CompletedWithErrors"
    ((by, reason),) = clicked.rows("SELECT by, reason FROM event WHERE what = 'released'")
    assert (by, reason) == ("A. Meyer", "known faults, the bank sends them again tomorrow")


def test_finance_found_a_break(clicked: Machine, page: Browser, folder: Path) -> None:
    path = write(folder / "payments-2026-11-22.csv", *(line(number) for number in range(301, 331)))
    assert clicked.end(deliver(page, path))[1] == "Completed"
    batch = batch_of(clicked, "payments-2026-11-22.csv")
    rules = folder / "own-records.toml"
    # The rates and debts of these few payments are not part of the story.
    rules.write_text('name = "own records"\nreferences = []\n')
    somebody(clicked, 'UPDATE recon.payment SET "PaidAmount" = "PaidAmount" + 100 WHERE "Id" = 310')
    assert reconcile(page, rules, batch)[1] == "Breaks"
    page.artifact("reconciliation-report")
    page.see("Not reconciled")
    page.picture("reconciliation")
    page.artifact("breaks")
    page.see("310")
    page.picture("breaks", height=420)
    told = clicked.recon("row", str(batch), "payments-2026-11-22.csv", "--line", "11")
    assert "10.50" in told.stdout
    somebody(clicked, 'UPDATE recon.payment SET "PaidAmount" = "PaidAmount" - 100 WHERE "Id" = 310')
    resolve = ("breaks", "resolve", "--code", "AMOUNT", "--at", "source", "--reason", "typed twice")
    resolved = clicked.recon(*resolve)
    assert resolved.returncode == 0, resolved.stderr
    assert reconcile(page, rules, batch)[1] == "Completed"
    page.artifact("reconciliation-report")
    page.see("Both sides agree")
    assert clicked.recon("sign", "prepare", "--by", "A. Meyer").returncode == 0
    assert clicked.recon("sign", "approve", "--by", "B. Osei").returncode == 0
    assert clicked.recon("audit", "verify").returncode == 0


def reconcile(page: Browser, rules: Path, batch: int) -> tuple[str, str, str]:
    page.custom_run("reconcile/any-day")
    page.choose_kind("rules", "str")
    page.type("rules", str(rules))
    page.click("Add item")
    page.type("batches", str(batch))
    return page.machine.end(page.submit("reconcile"))


def somebody(machine: Machine, statement: str) -> None:
    """Changes a record behind the product's back."""
    with psycopg.connect(machine.database("recon"), autocommit=True) as connection:
        assert connection.execute(statement).rowcount == 1
