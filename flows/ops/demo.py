"""The demonstration behind `recon demo`: faults are found, repaired, sent on, and all is proven.

It is imported without Prefect, so that the environment that Prefect reads can be set first.
"""

import os
import sysconfig
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg

from connectors.errors import DeliveryError
from connectors.files.disk.atomic import write_file
from connectors.postgres.batches.ledger import State
from connectors.postgres.database import database_url, open_database
from connectors.sandbox import Sandbox, SandboxOptions, User
from connectors.sandbox.shapes import SCHEMA as SANDBOX_SCHEMA
from connectors.settings import Settings, read_settings
from flows.report.reconciled.verdicts import word_of
from flows.stages.reconcile.report_files import PAGE
from schemas.counting import grouped, quantity
from schemas.derived.sql_names import SCHEMA
from schemas.derived.views import quoted
from schemas.field import Table
from schemas.operations import PUSHES
from schemas.tables import EXTRACTS

if TYPE_CHECKING:
    from flows.tasks.batch import BatchStatus

FEED = "demo"
"""A feed of its own, so that samples imported by hand before are taken again."""
UNCHANGED = {"unchanged", "superseded"}
"""Verdicts of a delivery that brings nothing new; superseded rows repeat another row."""

PROFILES = """active = "demo"

[profiles.demo]
PREFECT_SERVER_ANALYTICS_ENABLED = "false"
PREFECT_SERVER_UI_V2_ENABLED = "false"
PREFECT_SERVER_UI_SHOW_PROMOTIONAL_CONTENT = "false"
"""

SANDBOX_USER = User("demo", "demo", ("Client", "Admin", "Partner"))
"""The user of a sandbox that only listens on this machine."""
LISTED = {
    "avatar": "avatars.csv",
    "payment_plan_detail": "payment_plan_details.csv",
    "insert_batch_data": "insert_batch_data.csv",
}
"""What the service lists by itself: record -> sample file, one for every list operation."""

Show = Callable[[str], None]


def run_demo(show: Show) -> int:
    """Import the samples through the flow on the demo's own Prefect server; 0 if all is proven."""
    samples = find_samples()
    os.environ.setdefault("RECON_CURRENCIES", str(samples / "currencies.csv"))
    settings = read_settings()
    _isolate_prefect(settings.home / "prefect")
    from prefect.settings import (  # noqa: PLC0415 -- it reads the environment once.
        PREFECT_API_URL,
        temporary_settings,
    )

    show(f"Starting PostgreSQL and a Prefect server for the demo in {settings.home} ...")
    open_database(settings)  # An unusable database is reported at once, without retries.
    # A file in the current folder may name another server.
    with temporary_settings({PREFECT_API_URL: None}):
        proven = tell(settings, samples, show)
    return 0 if proven else 1


def find_samples() -> Path:
    """The folder of the sample deliveries; raises DeliveryError naming the places searched."""
    installed = Path(sysconfig.get_path("data")) / "share" / "recon"
    places = [
        folder / "data_samples" for folder in (Path.cwd(), Path(__file__).parents[2], installed)
    ]
    for place in places:
        if all((place / name).is_dir() for name in ("clean", "dirty", "correction")):
            return place
    raise DeliveryError(
        f"The sample deliveries are in none of {', '.join(map(str, places))}. "
        "Run `recon demo` in a checkout of the project."
    )


def tell(settings: Settings, samples: Path, show: Show) -> bool:
    """Tell the story; returns whether it went as it must, the first time and every later time."""
    profile = settings.home / "demo.toml"
    write_file(profile, f'feed = "{FEED}"\n'.encode())
    with serve(settings, samples) as url, environment(url):
        show(f"The documented service runs as a sandbox at {url}.")
        story = _Story(settings, samples, profile, show)
        return _tell(story, settings, show)


def _tell(story: "_Story", settings: Settings, show: Show) -> bool:
    dirty = story.deliver(
        "dirty",
        "A delivery with planted faults: its good rows are applied and sent, its bad rows are not.",
    )
    correction = story.deliver(
        "correction", "The repaired rows, delivered again.", corrects=dirty.batch_id
    )
    clean = story.deliver(
        "clean", "The same delivery as it should have been: nothing is left to change."
    )
    again = story.deliver("dirty", "The first delivery once more: the same bytes are taken once.")
    listed = story.pull(
        "What the service lists is read back and kept for comparison; it is not applied."
    )
    story.reconcile(
        "The faulty delivery and its correction against database, answers and listings.",
        [dirty.batch_id, correction.batch_id, listed],
    )

    proven = (
        dirty.state is State.COMPLETE_WITH_ERRORS
        and correction.state is State.COMPLETE
        and clean.state is State.COMPLETE
        and set(clean.rows) <= UNCHANGED
        and again.batch_id == dirty.batch_id
        and again.known is not None
    )
    proven = story.compare("The service's own tables against the database.") and proven
    show("")
    if proven:
        show("Proven: the repaired database equals the clean delivery, row by row; residual zero;")
        show("and the service has exactly what the database has, sent once.")
        show("(Superseded in clean: insert-batch rows that say they were merged before.)")
        _what_next(settings, dirty.batch_id, show)
    else:
        show("The demonstration did not end as it should. The reports show where it differs:")
        show(f"  {settings.reports}")
    return proven


@contextmanager
def serve(settings: Settings, samples: Path) -> Iterator[str]:
    """Run the documented service on this machine, with its own listings; gives its base URL."""
    # Batches of an earlier demonstration in this folder go to the same address.
    note = settings.home / "demo-service.port"
    port = int(note.read_text()) if note.is_file() else 0
    options = SandboxOptions(port=port, users=(SANDBOX_USER,), password_cost=2**4)
    sandbox = Sandbox(options, database_url(settings))
    with sandbox.running() as url:
        write_file(note, url.rpartition(":")[2].encode())
        with open_database(settings).connect() as connection:
            load_listings(sandbox, connection, samples)
        yield url


def load_listings(
    sandbox: Sandbox, connection: psycopg.Connection, samples: Path | None = None
) -> None:
    """Give every listing of the sandbox rows to show, unless it has some.

    Raises DeliveryError if there are no samples.
    """
    for record, name in LISTED.items():
        known = f"SELECT 1 FROM {SANDBOX_SCHEMA}.{record} LIMIT 1"
        if not connection.execute(known).fetchone():
            sandbox.load(record, (samples or find_samples()) / "clean" / name)


@contextmanager
def environment(url: str) -> Iterator[None]:
    """Change the environment so that runs know only this service, until the block ends."""
    before = {name: text for name, text in os.environ.items() if name.startswith("RECON_SERVICE_")}
    for name in before:
        del os.environ[name]
    mine = {"URL": url, "USER": SANDBOX_USER.name, "PASSWORD": SANDBOX_USER.password}
    os.environ |= {f"RECON_SERVICE_{name}": text for name, text in mine.items()}
    try:
        yield
    finally:
        for name in mine:
            del os.environ[f"RECON_SERVICE_{name}"]
        os.environ |= before


class _Story:
    """Deliveries through the flow, one after another, each told in a few lines."""

    def __init__(self, settings: Settings, samples: Path, profile: Path, show: Show) -> None:
        self.database = open_database(settings)
        self.samples = samples
        self.profile = profile
        self.show = show
        self.chapter = 0

    def deliver(self, name: str, about: str, corrects: int | None = None) -> "BatchStatus":
        """Import one sample; raises the ReconError of a run that failed."""
        from flows.import_batch import run_import  # noqa: PLC0415 -- the same.
        from flows.tasks.batch import BatchStatus  # noqa: PLC0415 -- the same.
        from flows.tasks.delivery import Delivery  # noqa: PLC0415 -- imports Prefect.

        self._begin(f"{name}: {about}")
        started = time.monotonic()
        delivery = Delivery(
            paths=[str(self.samples / name)],
            profile=str(self.profile),
            corrects=corrects,
            push=True,
        )
        state = run_import(delivery)
        seconds = time.monotonic() - started
        status = BatchStatus.model_validate(state.result())
        if status.known:
            self.show(f"   {status.known}")
        counted = ", ".join(f"{count:,} {verdict}" for verdict, count in status.rows.items())
        self.show(f"   batch {status.batch_id}: {state.name} in {seconds:.1f} s")
        self.show(f"   {quantity(sum(status.rows.values()), 'row', grouped)}: {counted}")
        self.show(f"   at the service: {self._at_service(status.batch_id)}")
        self.show(f"   report: {status.folder}/report.html")
        return status

    def pull(self, about: str) -> int:
        """Read every listing as one batch, and return its number; raises like `deliver`."""
        from flows.pull_listings import pull_listings  # noqa: PLC0415 -- imports Prefect.

        self._begin(f"listings: {about}")
        found: Any = pull_listings(return_state=True).result()
        for one in found["listings"]:
            self.show(
                f"   {one['name']}: {quantity(one['rows'], 'row', grouped)}, whole: {one['proof']}"
            )
        self.show(f"   batch {found['batch_id']}")
        return int(found["batch_id"])

    def reconcile(self, about: str, batches: list[int]) -> None:
        """Reconcile batches; raises the ReconError of a run that failed."""
        from flows.reconcile import reconcile  # noqa: PLC0415 -- imports Prefect.

        self._begin(f"reconciliation: {about}")
        state = reconcile(batches=batches, pull=False, return_state=True)
        found: Any = state.result(raise_on_failure=False)
        if isinstance(found, BaseException):
            raise found
        breaks = quantity(found["open_breaks"], "open break", grouped)
        self.show(f"   {word_of(found['verdict'])}: {breaks}")
        self.show(f"   report: {found['folder']}/{PAGE}")

    def compare(self, about: str) -> bool:
        """Count and add up both sides; returns whether they agree."""
        self._begin(f"proof: {about}")
        agreed = True
        with self.database.connect() as connection:
            for record, operation in PUSHES.items():
                kept = _REGISTERED if record == "client_registration" else record
                ours, theirs = (
                    connection.execute(_counted(EXTRACTS[record], place)).fetchone()
                    for place in (f"{SCHEMA}.{record}", f"{SANDBOX_SCHEMA}.{kept}")
                )
                verdict = "equal" if ours == theirs else "NOT EQUAL"
                self.show(f"   {operation.name}: {_amounts(record, ours)}: {verdict}")
                agreed = agreed and ours == theirs
        return agreed

    def _begin(self, heading: str) -> None:
        self.chapter += 1
        self.show(f"\n{self.chapter}. {heading}")

    def _at_service(self, batch_id: int) -> str:
        with self.database.connect() as connection:
            counts = connection.execute(
                "SELECT state, attempts > 0, count(*) FROM send WHERE batch_id = %s "
                "GROUP BY 1, 2 ORDER BY 2 DESC, 1",
                [batch_id],
            ).fetchall()
        states = [
            f"{rows:,} {state.replace('_', ' ')}" + ("" if sent else " before, not sent again")
            for state, sent, rows in counts
        ]
        return ", ".join(states) or "nothing to send"


_REGISTERED = f"""user_account a JOIN {SCHEMA}.client_registration r ON r."EMail" = a."Email" """
"""A registration is kept as an account; the demonstration's own user is one as well."""


def _counted(table: Table, place: str) -> str:
    sums = "".join(f", trim_scale(sum({quoted(name)}::numeric))::text" for name in table.amounts)
    return f"SELECT count(*){sums} FROM {place}"


def _amounts(record: str, found: tuple[Any, ...] | None) -> str:
    rows, *sums = found or (0,)
    named = zip(EXTRACTS[record].amounts, sums, strict=False)
    return ", ".join(
        [quantity(rows, "row", grouped), *(f"{name} {value}" for name, value in named)]
    )


def _what_next(settings: Settings, dirty: int, show: Show) -> None:
    show("\nTry next:")
    show("  recon status                              batches and the next step of each")
    show(f"  recon row {dirty} payments.csv --line 259       why a row was rejected, and its text")
    show(f"  recon rejects {dirty} --out corrections         rejected rows as CSV files to correct")
    show("To see the runs in the browser:")
    show(f"  DO_NOT_TRACK=1 PREFECT_HOME={settings.home / 'prefect'} prefect server start")


def _isolate_prefect(home: Path) -> None:
    """Isolate Prefect: it ignores the user's settings, calls nobody, and keeps to one folder."""
    for name in [name for name in os.environ if name.startswith("PREFECT_")]:
        del os.environ[name]
    # A server started on this folder later calls nobody either, nor do its pages.
    write_file(home / "profiles.toml", PROFILES.encode())
    os.environ |= {
        "PREFECT_HOME": str(home),
        "PREFECT_SERVER_ALLOW_EPHEMERAL_MODE": "true",
        "PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS": "120",
        "PREFECT_SERVER_DATABASE_CONNECTION_URL": f"sqlite+aiosqlite:///{home / 'prefect.db'}",
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "DO_NOT_TRACK": "1",
        # Run pages get every line; the terminal belongs to the story.
        "PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL": "CRITICAL",
    }
