"""The demonstration behind `recon demo`: faults are found, repaired, and the repair is proven.

It is imported without Prefect, so that the environment Prefect reads can be set first.
"""

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from connectors.database import open_database
from connectors.errors import DeliveryError
from connectors.files import write_file
from connectors.ledger import State
from connectors.settings import Settings, read_settings

if TYPE_CHECKING:
    from flows.tasks import Manifest

FEED = "demo"
"""A feed of its own: a sample that was imported by hand before is taken again."""
UNCHANGED = {"unchanged", "superseded"}
"""Verdicts of a delivery that brings nothing new; superseded are rows that repeat another."""

PROFILES = """active = "demo"

[profiles.demo]
PREFECT_SERVER_ANALYTICS_ENABLED = "false"
PREFECT_SERVER_UI_V2_ENABLED = "false"
PREFECT_SERVER_UI_SHOW_PROMOTIONAL_CONTENT = "false"
"""

Show = Callable[[str], None]


def run_demo() -> int:
    """Import the samples through the flow on a Prefect server of the demo's own; 0: proven."""
    from flows.commands.console import out  # noqa: PLC0415 -- it is slow to import.

    samples = find_samples()
    os.environ.setdefault("RECON_CURRENCIES", str(samples / "currencies.csv"))
    settings = read_settings()
    _isolate_prefect(settings.home / "prefect")
    from prefect.settings import (  # noqa: PLC0415 -- it reads the environment once.
        PREFECT_API_URL,
        temporary_settings,
    )

    def show(line: str) -> None:
        out().print(line)

    show(f"Starting PostgreSQL and a Prefect server of the demo's own in {settings.home} ...")
    open_database(settings)  # A database that cannot be used is told at once, without retries.
    # A file in the folder one stands in may name another server.
    with temporary_settings({PREFECT_API_URL: None}):
        proven = tell(settings, samples, show)
    return 0 if proven else 1


def find_samples() -> Path:
    """The folder of the sample deliveries; raises DeliveryError naming where it was looked for."""
    places = [Path.cwd() / "data_samples", Path(__file__).parents[1] / "data_samples"]
    for place in places:
        if all((place / name).is_dir() for name in ("clean", "dirty", "correction")):
            return place
    raise DeliveryError(
        f"The sample deliveries are neither in {places[0]} nor in {places[1]}. "
        "Run `recon demo` in a checkout of the project."
    )


def tell(settings: Settings, samples: Path, show: Show) -> bool:
    """The story; whether it went as it must, the first time and every time after."""
    profile = settings.home / "demo.toml"
    write_file(profile, f'feed = "{FEED}"\n'.encode())
    story = _Story(samples, profile, show)

    dirty = story.deliver(
        "dirty", "A delivery with planted faults: its good rows are applied, no bad one is."
    )
    correction = story.deliver(
        "correction", "The repaired rows, delivered again.", corrects=dirty.batch_id
    )
    clean = story.deliver(
        "clean", "The same delivery as it should have been: nothing is left to change."
    )
    again = story.deliver("dirty", "The first delivery once more: the same bytes are taken once.")

    proven = (
        dirty.state is State.COMPLETE_WITH_ERRORS
        and correction.state is State.COMPLETE
        and clean.state is State.COMPLETE
        and set(clean.rows) <= UNCHANGED
        and again.batch_id == dirty.batch_id
        and again.known is not None
    )
    show("")
    if proven:
        show("Proven: the repaired database equals the clean delivery, row by row; residual zero.")
        show("(Superseded in clean: insert-batch rows that say they were merged before.)")
        _what_next(settings, dirty.batch_id, show)
    else:
        show("The demonstration did not end as it must. The reports show where it differs:")
        show(f"  {settings.reports}")
    return proven


class _Story:
    """Deliveries through the flow, one after the other, each told in a few lines."""

    def __init__(self, samples: Path, profile: Path, show: Show) -> None:
        self.samples = samples
        self.profile = profile
        self.show = show
        self.chapter = 0

    def deliver(self, name: str, about: str, corrects: int | None = None) -> "Manifest":
        """Import one sample; raises the ReconError of a run that failed."""
        from flows.import_batch import Delivery, run_import  # noqa: PLC0415 -- imports Prefect.
        from flows.tasks import Manifest  # noqa: PLC0415 -- the same.

        self.chapter += 1
        self.show(f"\n{self.chapter}. {name}: {about}")
        started = time.monotonic()
        delivery = Delivery(
            paths=[str(self.samples / name)], profile=str(self.profile), corrects=corrects
        )
        state = run_import(delivery)
        seconds = time.monotonic() - started
        manifest = Manifest.model_validate(state.result())
        if manifest.known:
            self.show(f"   {manifest.known}")
        counted = ", ".join(f"{count:,} {verdict}" for verdict, count in manifest.rows.items())
        self.show(f"   batch {manifest.batch_id}: {state.name} in {seconds:.1f} s")
        self.show(f"   {sum(manifest.rows.values()):,} rows: {counted}")
        self.show(f"   report: {manifest.folder}/report.html")
        return manifest


def _what_next(settings: Settings, dirty: int, show: Show) -> None:
    show("\nTry next:")
    show("  recon status")
    show(f"  recon row {dirty} payments.csv 257           why a row was rejected, and its text")
    show(f"  recon rejects {dirty} --out rejects          rejected rows as CSV files to correct")
    show("  DO_NOT_TRACK=1 PREFECT_HOME=... prefect server start        the runs in the browser,")
    show(f"      where PREFECT_HOME is {settings.home / 'prefect'}")


def _isolate_prefect(home: Path) -> None:
    """Let Prefect know nothing of the user's settings, call nobody, and keep to one folder."""
    for name in [name for name in os.environ if name.startswith("PREFECT_")]:
        del os.environ[name]
    # A server that is started on this folder later calls nobody either, nor do its pages.
    write_file(home / "profiles.toml", PROFILES.encode())
    os.environ |= {
        "PREFECT_HOME": str(home),
        "PREFECT_SERVER_ALLOW_EPHEMERAL_MODE": "true",
        "PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS": "120",
        "PREFECT_SERVER_DATABASE_CONNECTION_URL": f"sqlite+aiosqlite:///{home / 'prefect.db'}",
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "DO_NOT_TRACK": "1",
        # The run pages get every line; the terminal belongs to the story.
        "PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL": "CRITICAL",
    }
