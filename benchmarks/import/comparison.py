"""What is compared: each case as the commands that prepare it and the one that is measured."""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from extracts import Extracts

CASES = Path(__file__).resolve().parent / "cases"
Command = list[str]

COLUMNS = """"Id" bigint NOT NULL, "TenantsId" integer NOT NULL, "ActionsId" bigint NOT NULL,
    "DebtsId" bigint NOT NULL, "PaymentDate" timestamptz NOT NULL, "PaidAmount" numeric NOT NULL,
    "DiscountAmount" numeric NOT NULL, "CurrenciesId" integer NOT NULL,
    "CurrencyRatesId" bigint NOT NULL"""
TABLES = f"""
    CREATE TABLE plain ({COLUMNS});
    CREATE TABLE keyed ({COLUMNS}, PRIMARY KEY ("Id"));
    CREATE UNLOGGED TABLE staging ({COLUMNS});"""
VALUES = ("TenantsId", "ActionsId", "DebtsId", "PaymentDate", "PaidAmount", "DiscountAmount",
          "CurrenciesId", "CurrencyRatesId")  # fmt: skip
UPSERT = 'INSERT INTO keyed SELECT * FROM staging ON CONFLICT ("Id") DO UPDATE SET ' + ", ".join(
    f'"{name}" = excluded."{name}"' for name in VALUES
)


@dataclass(frozen=True, slots=True)
class Place:
    """Where one run of one case works: a database and a folder of its own."""

    url: str
    home: Path
    postmaster: int
    psql: Path
    extracts: Extracts
    peers: dict[str, Path]
    """Interpreters by peer."""

    def ours(self, file: Path, *options: str) -> Command:
        """Our import of a file."""
        return [sys.executable, str(CASES / "ours.py"), *self._database(), *options, str(file)]

    def dlt(self, way: str) -> Command:
        """Import by dlt of the clean file."""
        program = [str(self.peers["dlt"]), str(CASES / "dlt_merge.py")]
        return [*program, *self._database(), way, str(self.extracts.clean)]

    def copy(self, table: str, *after: str) -> Command:
        """The clean file through psql, and statements behind it."""
        file = str(self.extracts.clean).replace("'", "''")
        return self.statements(rf"\copy {table} FROM '{file}' (FORMAT csv, HEADER)", *after)

    def statements(self, *statements: str) -> Command:
        """One psql that runs the statements."""
        asked = [part for statement in statements for part in ("-c", statement)]
        return [str(self.psql), "-X", "-q", "-v", "ON_ERROR_STOP=1", self.url, *asked]

    def reading(self, python: str | Path, name: str, file: Path) -> Command:
        """A program that only reads."""
        return [str(python), str(CASES / f"{name}_reading.py"), str(file)]

    def _database(self) -> Command:
        home = ["--home", str(self.home), "--server", str(self.postmaster)]
        return ["--url", self.url, *home]


def nothing(place: Place) -> list[Command]:  # noqa: ARG001
    """No preparation."""
    return []


@dataclass(frozen=True, slots=True)
class Case:
    """One line of the table."""

    name: str
    title: str
    command: Callable[[Place], Command]
    prepare: Callable[[Place], list[Command]] = nothing
    """Run before, not measured."""
    target: str | None = None
    """Table that must hold the rows afterwards."""
    applied: str = ""
    """Ours: the verdict that every applied row must have got."""
    dirty: bool = False
    upsert: str = "copy_upsert"
    """The upsert by psql that did the same."""
    once: bool = False
    """Too slow for every round; a single run shows its place."""


def tables(place: Place) -> list[Command]:
    """The tables psql copies into."""
    return [place.statements(TABLES)]


def upsert(place: Place) -> Command:
    """Copy to staging, then insert or update the keyed table."""
    return place.copy("staging", UPSERT)


def upserted(place: Place) -> list[Command]:
    """The keyed table with all rows in it already."""
    return [*tables(place), upsert(place), place.statements("TRUNCATE staging")]


def rates(place: Place) -> list[Command]:
    """Our database with the rates that payments refer to."""
    return [place.ours(place.extracts.rates)]


def imported(place: Place) -> list[Command]:
    """Our database with all rows in it already."""
    return [*rates(place), place.ours(place.extracts.clean)]


OURS, LOADED = "recon.payment", "loaded.payment"
LOADING = (
    Case("copy_plain", r"psql `\copy`, logged table without index",
         lambda p: p.copy("plain"), tables, "plain"),
    Case("copy_keyed", r"psql `\copy`, keyed table",
         lambda p: p.copy("keyed"), tables, "keyed"),
    Case("copy_upsert", r"psql `\copy` to unlogged staging + ON CONFLICT DO UPDATE",
         upsert, tables, "keyed"),
    Case("copy_upsert_again", r"the same again over the same rows",
         upsert, upserted, "keyed", upsert="copy_upsert_again"),
    Case("dlt_adbc", "dlt, Parquet through ADBC, merge by upsert",
         lambda p: p.dlt("adbc"), target=LOADED),
    Case("dlt_default", "dlt, CSV, its default merge",
         lambda p: p.dlt("default"), target=LOADED, once=True),
    Case("ours_clean", "ours: clean file staged, checked, applied",
         lambda p: p.ours(p.extracts.clean), rates, OURS, "inserted"),
    Case("ours_reference", "ours: clean file, text of clean rows by reference",
         lambda p: p.ours(p.extracts.clean, "--keep", "reference"), rates, OURS, "inserted"),
    Case("ours_dirty", "ours: 1 % bad rows, the same",
         lambda p: p.ours(p.extracts.dirty), rates, OURS, "inserted", dirty=True),
    Case("ours_unchanged", "ours: the same rows delivered again",
         lambda p: p.ours(p.extracts.again), imported, OURS, "unchanged",
         upsert="copy_upsert_again"),
)  # fmt: skip
READING = (
    Case("read_polars", "polars typed scan + dates, clean file",
         lambda p: p.reading(sys.executable, "polars", p.extracts.clean)),
    Case("read_duckdb", "DuckDB `read_csv`, store_rejects, dirty file",
         lambda p: p.reading(p.peers["duckdb"], "duckdb", p.extracts.dirty)),
    Case("read_ours", "ours: text, types, verdicts, totals, bytes to send, clean file",
         lambda p: p.reading(sys.executable, "ours", p.extracts.clean)),
    Case("read_ours_dirty", "ours, dirty file",
         lambda p: p.reading(sys.executable, "ours", p.extracts.dirty)),
)  # fmt: skip
