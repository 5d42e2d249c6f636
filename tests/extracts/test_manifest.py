import gzip
import hashlib
import json
import zipfile
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from connectors.errors import DeliveryError, ExtractRefused
from connectors.files.archived.archive import store
from connectors.files.incoming.delivery import find_extracts
from connectors.files.incoming.manifest import (
    Difference,
    Statement,
    check_bytes,
    differences,
    incomplete,
    read_manifests,
)
from connectors.files.incoming.manifest_entries import ManifestEntry
from connectors.settings import Limits

LIMITS = Limits()
TEXT = b"TenantsId,AvatarsId,Name\n7,3,Friendly\n"


def write(path: Path, files: dict[str, Any]) -> None:
    path.write_text(json.dumps({"files": files}), encoding="utf-8")


def read(*paths: Path) -> Statement:
    return read_manifests(find_extracts([str(path) for path in paths], LIMITS))


def gaps(statement: Statement) -> list[tuple[str, str]]:
    assert {gap.refusal.code for gap in statement.gaps} <= {"incomplete_file"}
    return [(gap.name, str(gap.refusal)) for gap in statement.gaps]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("a.csv", "b.csv"):
        (tmp_path / name).write_bytes(TEXT)
    return tmp_path


def test_no_manifest_says_nothing(folder: Path) -> None:
    assert read(folder) == Statement({}, ())


def test_entries_of_a_folder(folder: Path) -> None:
    sums = {"PaidAmount": {"1": "123.45", "2": "-0.10"}, "DiscountAmount": "7"}
    write(
        folder / "manifest.json",
        {
            "a.csv": {"rows": 100, "sha256": "A" * 64, "bytes": 5, "sums": sums, "hash_total": 12},
            "b.csv": {},
        },
    )
    assert read(folder).entries == {
        "a.csv": ManifestEntry(
            manifest="manifest.json",
            rows=100,
            sha256="a" * 64,
            bytes=5,
            sums={
                "PaidAmount": {"1": Decimal("123.45"), "2": Decimal("-0.10")},
                "DiscountAmount": {"": Decimal(7)},
            },
            hash_total="12",
        ),
        "b.csv": ManifestEntry(manifest="manifest.json"),
    }


def test_numbers_without_quotes_stay_exact(folder: Path) -> None:
    text = '{"files": {"a.csv": {"sums": {"PaidAmount": 9000000000000000.01}}, "b.csv": {}}}'
    (folder / "manifest.json").write_text(text, encoding="utf-8-sig")
    sums = read(folder).entries["a.csv"].sums
    assert sums == {"PaidAmount": {"": Decimal("9000000000000000.01")}}


def test_absent_and_unlisted_files_are_told(folder: Path) -> None:
    (folder / "notes.txt").write_text("left alone")
    write(folder / "manifest.json", {"a.csv": {}, "../c.csv": {"rows": 3}, "notes.txt": {}})
    statement = read(folder)
    assert list(statement.entries) == ["a.csv"]
    assert gaps(statement) == [
        (
            "../c.csv",
            "../c.csv: not what is stated about it: listed in manifest.json, but not delivered. "
            "Deliver the whole file, or correct what is stated about it.",
        ),
        (
            "b.csv",
            "b.csv: not what is stated about it: delivered, but not listed in manifest.json. "
            "Deliver the whole file, or correct what is stated about it.",
        ),
    ]


def test_a_named_file_is_checked_by_the_manifest_beside_it(folder: Path) -> None:
    write(folder / "manifest.json", {"a.csv": {"rows": 1}, "b.csv": {"rows": 2}})
    for path in (folder / "a.csv", folder / "a*.csv"):
        statement = read(path)
        assert {name: entry.rows for name, entry in statement.entries.items()} == {"a.csv": 1}
        assert gaps(statement) == []


def test_a_pattern_names_all_that_fits_it(folder: Path) -> None:
    names = ("a.csv", "c.csv", "d.tsv", "e.zip/f.csv", ".g.csv")
    write(folder / "manifest.json", {name: {} for name in names})
    for patterns, missed in (
        (("*.csv",), ["b.csv", "c.csv"]),
        (("*",), ["b.csv", "c.csv", "d.tsv", "e.zip/f.csv", ".g.csv"]),
        (("a.csv", "[b-d].*"), ["b.csv", "c.csv", "d.tsv"]),
        (("[!b]*.csv", "a.csv"), ["c.csv"]),
        (("**",), ["b.csv", "c.csv", "d.tsv", "e.zip/f.csv", ".g.csv"]),
    ):
        found = [name for name, _ in gaps(read(*(folder / one for one in patterns)))]
        assert sorted(found) == sorted(missed), patterns


def test_sidecar_speaks_for_its_file_only(folder: Path) -> None:
    write(folder / "a.csv.manifest.json", {"a.csv": {"rows": 1}})
    statement = read(folder)
    assert list(statement.entries) == ["a.csv"]
    assert gaps(statement) == []
    write(folder / "a.csv.manifest.json", {"b.csv": {"rows": 1}})
    assert [name for name, _ in gaps(read(folder))] == ["a.csv"]


def test_two_manifests_must_agree(folder: Path) -> None:
    write(folder / "a.csv.manifest.json", {"a.csv": {"rows": 1}})
    write(folder / "manifest.json", {"a.csv": {"rows": 1}, "b.csv": {}})
    assert read(folder).entries["a.csv"].rows == 1
    write(folder / "manifest.json", {"a.csv": {"rows": 2}, "b.csv": {}})
    with pytest.raises(DeliveryError, match=r"a\.csv: a\.csv\.manifest\.json and manifest\.json"):
        read(folder)


def zip_folder(folder: Path, inner: dict[str, Any] | None = None) -> Path:
    path = folder / "z.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("m.csv", TEXT)
        archive.writestr("n.csv", TEXT)
        if inner is not None:
            archive.writestr("manifest.json", json.dumps({"files": inner}))
    return path


def test_manifest_inside_a_zip(folder: Path) -> None:
    zip_folder(folder, {"m.csv": {"rows": 1}, "o.csv": {}})
    statement = read(folder)
    assert list(statement.entries) == ["z.zip/m.csv"]
    assert [name for name, _ in gaps(statement)] == ["z.zip/n.csv", "z.zip/o.csv"]


@pytest.mark.parametrize("within", ["", "march/"])
def test_manifests_within_a_zip_speak_as_they_do_in_a_folder(folder: Path, within: str) -> None:
    """Of the one file whose name they have, or of those beside them."""
    sidecars = {f"{name}.csv.manifest.json": {f"{name}.csv": {"rows": 1}} for name in "ab"}
    common = {"manifest.json": {"a.csv": {"rows": 1}, "b.csv": {"rows": 1}}}
    for manifests in (sidecars, common, sidecars | common):
        with zipfile.ZipFile(folder / "z.zip", "w") as archive:
            for name in ("a.csv", "b.csv"):
                archive.writestr(f"{within}{name}", TEXT)
            for name, files in manifests.items():
                archive.writestr(f"{within}{name}", json.dumps({"files": files}))
            if within:
                archive.writestr("c.csv", TEXT)
        statement = read(folder / "z.zip")
        assert sorted(statement.entries) == [f"z.zip/{within}a.csv", f"z.zip/{within}b.csv"]
        assert gaps(statement) == []


def test_a_named_zip_is_whole_where_the_manifest_beside_it_lists_its_members(
    folder: Path,
) -> None:
    path = zip_folder(folder)
    write(folder / "manifest.json", {"a.csv": {}, "z.zip/m.csv": {}, "z.zip/o.csv": {}})
    assert [name for name, _ in gaps(read(path))] == ["z.zip/n.csv", "z.zip/o.csv"]
    write(folder / "manifest.json", {"a.csv": {}})
    assert gaps(read(path)) == []


def test_members_and_bytes_of_a_zip_in_a_folder_manifest(folder: Path) -> None:
    path = zip_folder(folder)
    sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
    listed: dict[str, Any] = {"a.csv": {}, "b.csv": {}, "z.zip": {"sha256": sha256}}
    write(folder / "manifest.json", {**listed, "z.zip/m.csv": {"rows": 1}})
    statement = read(folder)
    assert gaps(statement) == []
    assert statement.entries["z.zip/m.csv"].rows == 1
    write(folder / "manifest.json", {**listed, "z.zip": {"sha256": sha256, "bytes": 3}})
    statement = read(folder)
    assert [name for name, _ in gaps(statement)] == ["z.zip/m.csv", "z.zip/n.csv"]
    said = f"bytes of z.zip: stated 3, the file has {path.stat().st_size}"
    assert said in gaps(statement)[0][1]
    write(folder / "manifest.json", {**listed, "z.zip": {"rows": 3}})
    with pytest.raises(DeliveryError, match=r"State them under z\.zip/m\.csv"):
        read(folder)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"files": []}',
        '{"files": {"a.csv": 7}}',
        '{"files": {"a.csv": {"row": 7}}}',
        '{"files": {"a.csv": {"rows": -7}}}',
        '{"files": {"a.csv": {"rows": 7.5}}}',
        '{"files": {"a.csv": {"rows": true}}}',
        '{"files": {"a.csv": {"rows": 1E9999999999999999999}}}',
        '{"files": {"a.csv": {"rows": ' + "9" * 5000 + "}}}",
        '{"files": {"a.csv": {"bytes": "many"}}}',
        '{"files": {"a.csv": {"sha256": "abc"}}}',
        '{"files": {"a.csv": {"sums": 7}}}',
        '{"files": {"a.csv": {"sums": {"PaidAmount": NaN}}}}',
        '{"files": {"a.csv": {"sums": {"PaidAmount": "1e5"}}}}',
        '{"files": {"a.csv": {"sums": {"PaidAmount": "1_000"}}}}',
        '{"files": {"a.csv": {"sums": {"PaidAmount": true}}}}',
        '{"files": {"a.csv": {"sums": {"PaidAmount": {"": "4.00", "1": "999.00"}}}}}',
        '{"files": {"a.csv": {}, "a.csv": {"rows": 3}}}',
        '{"files": ' * 100_000,
    ],
)
def test_what_is_no_manifest_stops_the_delivery(folder: Path, text: str) -> None:
    (folder / "manifest.json").write_text(text, encoding="utf-8")
    with pytest.raises(DeliveryError, match=r"^manifest\.json: is no control manifest: "):
        read(folder)


@pytest.mark.parametrize("text", ["\x00", "1\x00", "\ud800", "\u202e1", "a\nb", "9" * 1001])
@pytest.mark.parametrize("where", ["hash_total", "field", "currency"])
def test_what_no_database_can_keep_is_told_before_anything_is_kept(
    folder: Path, text: str, where: str
) -> None:
    """A batch that was begun could never go on."""
    stated = {
        "hash_total": {"hash_total": text},
        "field": {"sums": {text: 1}},
        "currency": {"sums": {"PaidAmount": {text: 1}}},
    }
    write(folder / "manifest.json", {"avatars.csv": stated[where]})
    with pytest.raises(DeliveryError, match=r"is no control manifest: files\.avatars") as failure:
        read(folder)
    assert str(failure.value).isprintable()
    assert len(str(failure.value)) < 400


def test_a_misspelt_key_is_guessed(folder: Path) -> None:
    write(folder / "manifest.json", {"a.csv": {"row": 7}})
    with pytest.raises(DeliveryError, match=r"files\.a\.csv\.row is none of .*did you mean rows"):
        read(folder)


def test_bytes_and_hash_are_of_the_file_or_of_its_content(folder: Path) -> None:
    packed = gzip.compress(TEXT)
    (folder / "c.csv.gz").write_bytes(packed)
    (source,) = find_extracts([str(folder / "c.csv.gz")], LIMITS).sources
    stored = store(source, folder / "archive", LIMITS)
    for right in (
        ManifestEntry("m"),
        ManifestEntry("m", bytes=len(TEXT), sha256=hashlib.sha256(TEXT).hexdigest()),
        ManifestEntry("m", bytes=len(packed), sha256=hashlib.sha256(packed).hexdigest()),
    ):
        check_bytes(right, stored)
    wrong = ManifestEntry("manifest.json", bytes=99, sha256="0" * 64)
    with pytest.raises(ExtractRefused) as caught:
        check_bytes(wrong, stored)
    assert caught.value.code == "incomplete_file"
    numbers = (99, len(packed), len(TEXT), "0" * 64, stored.sha256, stored.delivered_sha256)
    assert all(str(number) in str(caught.value) for number in numbers)


PAID = {"PaidAmount": {"1": Decimal("100.00"), "2": Decimal("5.25")}}


@pytest.mark.parametrize(
    ("stated", "said"),
    [
        ({}, []),
        ({"rows": 99}, []),
        ({"rows": 100}, ["rows: stated 100, the file has 99"]),
        ({"hash_total": "0012"}, []),
        ({"hash_total": "13"}, ["hash total: stated 13, the file has 12"]),
        ({"sums": {"PaidAmount": {"1": Decimal(100), "2": Decimal("5.250")}}}, []),
        ({"sums": {"PaidAmount": {"": Decimal("105.25")}}}, []),
        (
            {"sums": {"PaidAmount": {"": Decimal("105.26")}}},
            ["sum of PaidAmount: stated 105.26, the file has 105.25"],
        ),
        (
            {"sums": {"PaidAmount": {"1": Decimal(100)}}},
            ["sum of PaidAmount in currency 2: stated 0, the file has 5.25"],
        ),
        (
            {"sums": {"PaidAmount": {"1": Decimal("1E+2"), "2": Decimal("5.25"), "3": Decimal(1)}}},
            ["sum of PaidAmount in currency 3: stated 1, the file has 0"],
        ),
        (
            {"sums": {"PaidAmout": {"1": Decimal(100)}}},
            ["a sum of PaidAmout is stated, which is no amount of this record"],
        ),
    ],
)
def test_differences(stated: dict[str, Any], said: list[str]) -> None:
    found = differences(ManifestEntry("manifest.json", **stated), 99, PAID, 12)
    assert [one.text for one in found] == said


@pytest.mark.parametrize("whole", ["9" * 29, "9" * 300])
def test_sums_of_any_length_are_exact(whole: str) -> None:
    read_sums = {"PaidAmount": {"1": Decimal(whole), "2": Decimal("0.01")}}

    def against(stated: str) -> list[Difference]:
        sums = {"PaidAmount": {"": Decimal(stated)}}
        return differences(ManifestEntry("m", sums=sums), 0, read_sums, 0)

    assert against(f"{whole}.01") == []
    assert len(against(whole)) == 1


def test_the_refusal_has_every_difference() -> None:
    entry = ManifestEntry("manifest.json", rows=100, hash_total="13")
    details = [one.text for one in differences(entry, 99, {}, 12)]
    error = incomplete(entry, "a.csv", details)
    assert str(error) == (
        "a.csv: not what is stated about it: rows: stated 100, the file has 99; "
        "hash total: stated 13, the file has 12 (manifest.json). "
        "Deliver the whole file, or correct what is stated about it."
    )
