"""Small files are staged and applied together, and leave what they leave one by one."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest

from connectors.files.chunks.reader import first_place, read_chunks
from connectors.files.layout.header import read_header
from connectors.files.profiles.profile import DEFAULT, Profile
from connectors.files.text.content import open_content
from connectors.postgres.batches.ledger import Batch
from connectors.postgres.database import open_database
from connectors.settings import MIB, Limits, Settings
from flows.stages.chunks import prepared, stage_together
from flows.stages.sequence import import_delivery
from flows.stages.workspace import Workspace
from tests.conftest import Databases
from tests.faults.cases import differences, truth
from tests.recon import run
from tests.stages.payments import HEADER, line, write

TOGETHER, ALONE = Limits(), Limits(strict_bytes=0)
"""A file above what is read by nothing compiled is no small one."""
RATES = (
    "Id,TenantsId,FromCurrenciesId,ToCurrenciesId,ExchangeRate,EffectiveDate\n"
    "9,7,1,2,1.5,2026-01-01T00:00:00\n"
)
KILLED = -9


def monday(folder: Path) -> Path:
    """What the target knows before."""
    write(folder / "payments.csv", *(line(number, day=5) for number in range(1, 21)))
    (folder / "rates.csv").write_text(RATES)
    return folder


def tuesday(folder: Path) -> Path:
    """Small files of all kinds, most of them clean, in the order of their names."""
    for number in range(30, 60, 2):
        write(folder / f"b{number}.csv", line(number), line(number + 1))
    write(folder / "a-known.csv", line(1, day=5), line(2, day=6, amount="3"), line(3, day=2))
    write(folder / "b31-changed.csv", line(4, day=6, amount="1.00"), line(5, day=6), line(70))
    write(folder / "b33-no-row.csv")
    write(folder / "b35-bad-row.csv", line(71), line(72, amount="ten"), line(73))
    (folder / "b36-no-header.csv").write_text("What,Is,This\n1,2,3\n")
    write(folder / "b37-all-bad.csv", line(74, amount="x"), line(75, amount="NaN"))
    write(folder / "b39-quoted.csv", line(76).replace("10.50", '"10.50"'), line(77))
    write(folder / "b41-ragged.csv", line(78), "79,7,1")
    write(folder / "b43-again.csv", line(30), line(31, amount="11.00"), line(80))
    (folder / "b45-order.csv").write_text(
        "TenantsId,Id,ActionsId,DebtsId,PaymentDate,PaidAmount,DiscountAmount,CurrenciesId,"
        "CurrencyRatesId\r\n7,81,1,2,2026-01-01T10:00:00Z,123456789012.123456,0.5,2,9\r\n"
    )
    write(folder / "b47-other.csv", line(82).replace(",9", ",555"), line(83))
    (folder / "b49-utf16.csv").write_text(f"{HEADER}\n{line(84)}\n", encoding="utf-16")
    write(folder / "b51-stated.csv", line(85), line(86))
    write(folder / "b53-not-stated.csv", line(87), line(88))
    for name, rows in (("b51-stated", 2), ("b53-not-stated", 3)):
        stated = {"files": {f"{name}.csv": {"rows": rows}}}
        (folder / f"{name}.csv.manifest.json").write_text(json.dumps(stated))
    write(folder / "b55-empty-copy.csv", line(30), line(31))
    (folder / "c-debt.csv").write_text(RATES.replace("9,7", "10,7").replace("1.5", "0"))
    (folder / "c-rates.csv").write_text(RATES.replace("9,7", "11,7") + "12,7,1,2,x,2026-01-02\n")
    write(folder / "d-last.csv", line(90, tenant=8), line(5, day=6))
    return folder


def imported(
    url: str, home: Path, limits: Limits, delivery: Path, profile: Profile = DEFAULT
) -> Batch:
    settings = Settings(home, url, limits)
    place = Workspace(settings, open_database(settings))
    return import_delivery(place, [str(delivery)], profile).batch


@pytest.fixture(scope="module")
def deliveries(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("deliveries")
    for name in ("monday", "tuesday"):
        (folder / name).mkdir()
    return monday(folder / "monday"), tuesday(folder / "tuesday")


PROFILES = {
    "as it is": DEFAULT,
    "last wins": replace(DEFAULT, duplicate="last_wins"),
    "references": replace(DEFAULT, reference="reject"),
    "one tenant": replace(DEFAULT, tenant=7),
    "held": replace(DEFAULT, budget_errors=1),
    "compared only": replace(DEFAULT, compare_only=True),
}


@pytest.mark.long
@pytest.mark.parametrize("title", PROFILES)
def test_files_together_leave_what_they_leave_one_by_one(
    databases: Databases, deliveries: tuple[Path, Path], tmp_path: Path, title: str
) -> None:
    found = []
    for name, limits in (("together", TOGETHER), ("alone", ALONE)):
        with databases.new() as url:
            for delivery in deliveries:
                batch = imported(url, tmp_path / name, limits, delivery, PROFILES[title])
            assert (batch.state == "held") == (title == "held")
            found.append(truth(url, tmp_path / name))
    assert not differences(*found), differences(*found)


@pytest.mark.long
def test_few_at_once_leave_the_same(
    databases: Databases,
    deliveries: tuple[Path, Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = []
    for most in (1_000, 3):
        monkeypatch.setattr(stage_together, "MOST_FILES", most)
        with databases.new() as url:
            for delivery in deliveries:
                imported(url, tmp_path / str(most), TOGETHER, delivery)
            found.append(truth(url, tmp_path / str(most)))
    assert not differences(*found), differences(*found)


class Ended(Exception):
    """A run that ends in the middle."""


@pytest.mark.long
@pytest.mark.parametrize("groups", [1, 2, 4])
def test_a_run_goes_on_behind_the_groups_that_are_there(
    databases: Databases,
    deliveries: tuple[Path, Path],
    undisturbed: dict[str, object],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    groups: int,
) -> None:
    reached: list[str] = []

    def ends(point: str) -> None:
        reached.append(point)
        if reached.count("chunk") == groups:
            raise Ended

    with databases.new() as url:
        imported(url, tmp_path, TOGETHER, deliveries[0])
        with monkeypatch.context() as patch:
            patch.setattr(stage_together, "MOST_FILES", 5)
            patch.setattr(prepared, "reach", ends)
            with pytest.raises(Ended):
                imported(url, tmp_path, TOGETHER, deliveries[1])
        imported(url, tmp_path, TOGETHER, deliveries[1])
        found = truth(url, tmp_path)
    assert not differences(undisturbed, found), differences(undisturbed, found)


@pytest.fixture(scope="module")
def undisturbed(
    databases: Databases, deliveries: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, object]]:
    home = tmp_path_factory.mktemp("undisturbed")
    with databases.new() as url:
        for delivery in deliveries:
            run(url, home, "import", str(delivery))
        yield truth(url, home)


POINTS = ["archived:9", "open:20", "copy", "receipt", "chunk", "stage", "check", "apply", "apply:2"]
POINTS += ["apply-chunk", "apply-chunk:2", "applied"]


@pytest.mark.long(but=("receipt",))
@pytest.mark.parametrize("point", POINTS)
def test_killed_between_the_steps_and_run_again(
    databases: Databases,
    deliveries: tuple[Path, Path],
    undisturbed: dict[str, object],
    tmp_path: Path,
    point: str,
) -> None:
    first, second = map(str, deliveries)
    with databases.new() as url:
        run(url, tmp_path, "import", first)
        assert run(url, tmp_path, "import", second, CRASH_AT=point).returncode == KILLED
        again = run(url, tmp_path, "import", second)
        assert again.returncode == 1, again.stderr
        found = truth(url, tmp_path)
    assert not differences(undisturbed, found), differences(undisturbed, found)


@pytest.mark.long
def test_a_text_in_another_encoding_is_gone_on_with_where_it_was_left(
    databases: Databases, tmp_path: Path
) -> None:
    """Its receipts count other bytes than were delivered, and as many by chance."""
    delivery = tmp_path / "in"
    delivery.mkdir()
    write(delivery / "b.csv", line(900))
    write(delivery / "c.csv", line(901))
    head, rest = f"{HEADER}\n", "".join(f"{line(number)}\n" for number in range(500, 540))
    row = line(1, amount="{}") + "\n"
    # One of two bytes as delivered, and of three in UTF-8.
    signs = len(head) + len(row.format("")) + 2 * len(rest) + 2
    begin = head + row.format("\N{EURO SIGN}" * signs)
    path = delivery / "a.csv"
    path.write_text(begin + rest, encoding="utf-16", newline="")
    assert path.stat().st_size == len(begin.encode())
    content = open_content(path)
    header = read_header(content, None, DEFAULT, Limits())
    first, place = len(begin.encode()), first_place(header)
    block_bytes = next(
        size
        for size in range(first - 4096, first + 1)
        if next(read_chunks(content, header, place, size, MIB)).end.byte == first
    )
    with databases.new() as url:
        killed = {"CRASH_AT": "chunk", "RECON_LIMIT_BLOCK_BYTES": str(block_bytes)}
        assert run(url, tmp_path / "home", "import", str(delivery), **killed).returncode == KILLED
        again = run(url, tmp_path / "home", "import", str(delivery))
        with psycopg.connect(url) as connection:
            found = connection.execute("SELECT count(*) FROM recon.payment").fetchone()
    assert found == (42,), again.stdout
