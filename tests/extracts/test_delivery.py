import errno
import io
import os
import zipfile
from pathlib import Path
from typing import Any

import fsspec
import pytest

from connectors.errors import DeliveryError, MachineFailed, WitnessPlaceFailed
from connectors.files.incoming.delivery import OpenedDelivery, find_extracts, open_source
from connectors.files.incoming.source_text import DeliveredBytes, text_of
from connectors.files.incoming.stores import ObjectStore, place_of
from connectors.files.incoming.uploads import Upload, upload_paths
from connectors.settings import Limits, Settings
from connectors.witness.places import place_at

LIMITS = Limits(archive_members=20)
TEXT = b"TenantsId,AvatarsId,Name\n7,3,Friendly\n"


def write(folder: Path, *names: str) -> None:
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(TEXT)


def pack(path: Path, *names: str | zipfile.ZipInfo) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in names:
            archive.writestr(zipfile.ZipInfo(name) if isinstance(name, str) else name, TEXT)


def names(delivery: OpenedDelivery) -> list[str]:
    return [source.name for source in delivery.sources]


def faults(delivery: OpenedDelivery) -> dict[str, str]:
    return {source.name: source.fault.code for source in delivery.sources if source.fault}


def test_folder_gives_its_extracts_by_name_and_says_what_it_left(tmp_path: Path) -> None:
    write(
        tmp_path,
        *("b.csv", "a.CSV", "c.csv.gz", "d.csv.zst", "e.tsv.bz2", "f.csv.part", "deep/g.csv"),
        *(".hidden.csv", "README.md", "feed.toml", "x.json", "manifest.json", "notes.txt"),
        *("b.csv.manifest.json", "b.csv.sha256", "report.xlsx"),
    )
    delivery = find_extracts([str(tmp_path)], LIMITS)
    assert names(delivery) == ["a.CSV", "b.csv", "c.csv.gz", "d.csv.zst", "e.tsv.bz2", "f.csv.part"]
    assert faults(delivery) == {"f.csv.part": "unsupported_format"}
    assert delivery.left_alone == (
        *(".hidden.csv", "README.md", "b.csv.manifest.json", "b.csv.sha256", "deep/"),
        *("feed.toml", "manifest.json", "notes.txt", "report.xlsx", "x.json"),
    )
    assert [(c.source.name, c.of_file, c.whole) for c in delivery.controls] == [
        ("b.csv.manifest.json", "b.csv", True),
        ("manifest.json", None, True),
    ]


def test_a_text_is_an_extract_where_it_is_named_or_a_pattern_names_it(tmp_path: Path) -> None:
    write(tmp_path, "a.txt", "b.TXT.gz", "c.csv", "notes.md")
    for asked, found in (
        ("", ["c.csv"]),
        ("a.txt", ["a.txt"]),
        ("*.txt", ["a.txt"]),
        ("*.TXT*", ["b.TXT.gz"]),
        ("*", ["c.csv"]),
    ):
        delivery = find_extracts([str(tmp_path / asked)], LIMITS)
        assert (names(delivery), faults(delivery)) == (found, {}), asked


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("data.json", "the name ends in .json, which stands beside extracts"),
        (
            "x.csv.part",
            "the name ends in .part, as what is still being written does: "
            "rename it once it is complete",
        ),
    ],
)
def test_what_is_named_is_never_skipped(tmp_path: Path, name: str, why: str) -> None:
    write(tmp_path, name, "a.csv")
    delivery = find_extracts([str(tmp_path / name), str(tmp_path / "a.csv")], LIMITS)
    assert faults(delivery) == {name: "unsupported_format"}
    assert [one.fault.detail for one in delivery.sources if one.fault] == [why]
    assert sorted(names(delivery)) == sorted([name, "a.csv"])


def test_what_is_named_may_be_called_anything_and_a_folder_takes_it_for_nothing(
    tmp_path: Path,
) -> None:
    odd = ["dot.", "export.copy", "export.dat", "export.dat.gz", "notes.text", "plain", "x.csv.1"]
    write(tmp_path, *odd, "a.csv", "notes.md")
    for name in odd:
        delivery = find_extracts([str(tmp_path / name)], LIMITS)
        assert (names(delivery), faults(delivery)) == ([name], {}), name
    for pattern, found in (
        ("*.dat", ["export.dat"]),
        ("export.*", []),
        ("*.m[d]", []),
        ("*.*", ["a.csv", "x.csv.1"]),
        ("", ["a.csv", "x.csv.1"]),
    ):
        if found:
            delivery = find_extracts([str(tmp_path / pattern)], LIMITS)
            assert names(delivery) == found, pattern
            assert set(faults(delivery)) == {*found} & {"x.csv.1"}
        else:
            with pytest.raises(DeliveryError, match="no extract found"):
                find_extracts([str(tmp_path / pattern)], LIMITS)


@pytest.mark.parametrize(
    ("members", "found"),
    [
        (("STATEMENT.DAT", "README.md", "__MACOSX/._STATEMENT.DAT"), ["x.zip/STATEMENT.DAT"]),
        (("statement.txt",), ["x.zip/statement.txt"]),
        (("a.txt", "b.csv"), ["x.zip/b.csv"]),
        (("a.txt", "b.txt"), []),
        (("notes.md",), []),
    ],
)
def test_the_one_file_of_a_zip_is_meant(
    tmp_path: Path, members: tuple[str, ...], found: list[str]
) -> None:
    pack(tmp_path / "x.zip", *members)
    delivery = find_extracts([str(tmp_path / "x.zip")], LIMITS)
    assert names(delivery) == (found or ["x.zip"])
    assert faults(delivery) == ({} if found else {"x.zip": "unsupported_format"})
    assert not {*found} & {*delivery.left_alone}


@pytest.mark.parametrize(
    ("paths", "expected"),
    [
        (["a.csv", "a.csv"], ["a.csv"]),
        (["b.csv", "a.csv"], ["a.csv", "b.csv"]),
        ([".", "a.csv"], ["a.csv", "b.csv", "other/a.csv"]),
        (["*.csv"], ["a.csv", "b.csv"]),
        (["./b.csv", "../{here}/b.csv"], ["b.csv"]),
        (["[1].csv"], ["[1].csv"]),
    ],
)
def test_places_named_twice_count_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, paths: list[str], expected: list[str]
) -> None:
    here = tmp_path / "delivery"
    write(here, "a.csv", "b.csv", "other/a.csv")
    if "[1].csv" in paths:
        write(here, "[1].csv")
    monkeypatch.chdir(here)
    given = [path.format(here=here.name) for path in paths]
    if "." in paths:
        given.append("other")
        expected = ["b.csv", "delivery/a.csv", "other/a.csv"]
    assert names(find_extracts(given, LIMITS)) == expected


def test_zip_gives_its_members_whatever_they_are_called(tmp_path: Path) -> None:
    path = tmp_path / "all.zip"
    link = zipfile.ZipInfo("link.csv")
    link.external_attr = 0o120777 << 16
    members: list[str | zipfile.ZipInfo] = [
        *("b.csv", "deep/a.csv.gz", "../../etc/evil.csv", "/root.csv", "b.csv", "line\nfeed.csv"),
        *("README.md", "__MACOSX/._b.csv", "inner.zip", "folder/", "picture.png", link),
    ]
    with pytest.warns(UserWarning, match="Duplicate name"):
        pack(path, *members)
    delivery = find_extracts([str(path)], LIMITS)
    assert names(delivery) == [
        *("all.zip/../../etc/evil.csv", "all.zip//root.csv", "all.zip/b.csv#1", "all.zip/b.csv#2"),
        *("all.zip/deep/a.csv.gz", "all.zip/inner.zip", "all.zip/line\\nfeed.csv"),
        "all.zip/link.csv",
    ]
    assert faults(delivery) == {
        "all.zip/inner.zip": "unsupported_format",
        "all.zip/link.csv": "unsupported_format",
    }
    assert delivery.left_alone == (
        *("all.zip/README.md", "all.zip/__MACOSX/._b.csv", "all.zip/picture.png"),
    )
    for source in delivery.sources:
        if source.name.startswith("all.zip/b.csv"):
            with open_source(source) as file:
                assert file.read() == TEXT


@pytest.mark.parametrize(
    ("make", "code"),
    [
        (lambda path: path.write_bytes(b"not a zip at all"), "corrupt_archive"),
        (lambda path: path.write_bytes(b""), "corrupt_archive"),
        (lambda path: pack(path, "a.txt", "b.png"), "unsupported_format"),
        (lambda path: pack(path, *(f"{n}.csv" for n in range(21))), "too_large"),
    ],
)
def test_unusable_zip_is_one_refused_source(tmp_path: Path, make, code: str) -> None:
    make(tmp_path / "x.zip")
    write(tmp_path, "good.csv")
    delivery = find_extracts([str(tmp_path)], LIMITS)
    assert names(delivery) == ["good.csv", "x.zip"]
    assert faults(delivery) == {"x.zip": code}


def test_every_cut_of_a_zip_is_found_or_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.zip"
    pack(path, "a.csv", "b.csv.gz")
    whole = path.read_bytes()
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        assert faults(find_extracts([str(path)], LIMITS)) == {"x.zip": "corrupt_archive"}, length


def test_what_is_no_regular_file_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.csv")
    (tmp_path / "broken.csv").symlink_to(tmp_path / "gone.csv")
    (tmp_path / "circle.csv").symlink_to(tmp_path / "circle.csv")
    write(tmp_path, "real.csv")
    (tmp_path / "linked.csv").symlink_to(tmp_path / "real.csv")
    delivery = find_extracts([str(tmp_path)], LIMITS)
    assert names(delivery) == ["broken.csv", "circle.csv", "linked.csv", "pipe.csv", "real.csv"]
    assert set(faults(delivery)) == {"broken.csv", "circle.csv", "pipe.csv"}


def test_a_link_that_may_not_be_looked_at_costs_no_other_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, "good.csv")
    (tmp_path / "link.csv").symlink_to("/nowhere/secret.csv")
    status = Path.stat

    def refuse(path: Path, **terms: bool) -> os.stat_result:
        if path.name == "link.csv" and terms.get("follow_symlinks", True):
            raise PermissionError(13, "Permission denied", str(path))
        return status(path, **terms)

    monkeypatch.setattr(Path, "stat", refuse)
    delivery = find_extracts([str(tmp_path)], LIMITS)
    assert (names(delivery), faults(delivery)) == (
        ["good.csv", "link.csv"],
        {"link.csv": "unsupported_format"},
    )


@pytest.mark.parametrize(
    "name", ["a" * 251 + ".csv", "あ" * 251 + ".csv", "0" * 32, "names.json", "a.csv"]
)
def test_an_upload_is_found_whatever_its_name(tmp_path: Path, name: str) -> None:
    upload = Upload.begin(Settings(tmp_path))
    upload.open(name)
    upload.write(TEXT)
    upload.keep()
    (path,) = upload_paths(Settings(tmp_path), upload.token)
    assert place_of(path).sort(path) == "file"
    with place_of(path).open(path) as kept:
        assert kept.read() == TEXT
    if name.endswith(".csv"):
        assert len(names(find_extracts([path], LIMITS))) == 1


@pytest.mark.parametrize(
    ("paths", "said"),
    [
        (["gone.csv"], r"gone\.csv: no such file or folder"),
        (["*.nothing"], r"\*\.nothing: no such file or folder"),
        (["a.csv", "gone"], r"gone: no such file or folder"),
        ([], "No path: no extract found"),
        ([""], r"'' is no path\. Name files or folders"),
        (["a.csv", " "], "' ' is no path"),
        (["file://"], "'' is no path"),
        (["a\0.csv"], "is no path"),
        (["empty"], "empty: no extract found"),
        (["texts"], r"no extract found\. Left alone: notes\.txt\. Name \.csv"),
        (["ftp://host/a.csv"], "ftp:// is no place .* s3://"),
        (["s3://key:secret@bucket/a.csv"], r"s3://\.\.\.: the address holds a password"),
        (["memory://nowhere/a.csv"], r"memory://nowhere/a\.csv: no such file"),
    ],
)
def test_no_delivery(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, paths: list[str], said: str
) -> None:
    write(tmp_path, "a.csv", "texts/notes.txt")
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DeliveryError, match=said) as caught:
        find_extracts(paths, LIMITS)
    assert "secret" not in str(caught.value)


def test_a_store_without_its_package_says_what_to_install() -> None:
    told = r"needs the package s3fs in .* pipx inject recon s3fs"
    with pytest.raises(DeliveryError, match=told):
        find_extracts(["s3://bucket/a.csv"], LIMITS)
    with pytest.raises(WitnessPlaceFailed, match=told):
        place_at("s3://bucket/witnesses").read()


PATTERNS = ["in/*", "in/**", "in/d*/**", "**/*.csv", "*/*", "in/[a-d]*", "in/[!a]?*.*", "in/*.*v*"]


def test_object_store(tmp_path: Path) -> None:
    files = fsspec.filesystem("memory")
    pack(tmp_path / "z.zip", "m.csv", "manifest.json")
    files.pipe(
        {
            "/in/a.csv": TEXT,
            "/in/notes.md": b"#",
            "/in/deep/b.csv": TEXT,
            "/in/z.zip": (tmp_path / "z.zip").read_bytes(),
        }
    )
    try:
        delivery = find_extracts(["memory://in/"], LIMITS)
        assert names(delivery) == ["a.csv", "z.zip/m.csv"]
        assert delivery.left_alone == ("deep/", "notes.md", "z.zip/manifest.json")
        assert [control.prefix for control in delivery.controls] == ["z.zip/"]
        for source in delivery.sources:
            with open_source(source) as file:
                assert file.read() == TEXT
        assert names(find_extracts(["memory://in/*/*.csv"], LIMITS)) == ["b.csv"]
        for pattern in PATTERNS:
            found = ObjectStore("memory").matching(f"memory://{pattern}")
            assert [one.removeprefix("memory://") for one in found] == files.glob(f"/{pattern}")
        files.pipe(f"/in/{'a' * 500}", TEXT)
        with pytest.raises(DeliveryError, match="a pattern must match at least one file"):
            find_extracts([f"memory://in/{'*a' * 30}*b"], LIMITS)
        files.pipe("/in/late.csv", TEXT)
        assert "late.csv" in names(find_extracts(["memory://in"], LIMITS))
    finally:
        files.rm("/in", recursive=True)


def test_named_file_brings_the_manifests_beside_it(tmp_path: Path) -> None:
    write(tmp_path, "a.csv", "a.csv.manifest.json", "manifest.json", "b.csv")
    for path in ("a.csv", "a*.csv"):
        controls = find_extracts([str(tmp_path / path)], LIMITS).controls
        assert [(c.source.name, c.of_file, c.whole) for c in controls] == [
            ("a.csv.manifest.json", "a.csv", True),
            ("manifest.json", None, False),
        ]
    every = [str(path) for path in tmp_path.iterdir()]
    assert [c.whole for c in find_extracts(every, LIMITS).controls] == [True, True]


class BadSector(io.FileIO):
    """A file of which the disk does not give one byte."""

    at: int

    def read(self, size: int | None = -1, /) -> bytes:
        begin = self.tell()
        if begin <= self.at and (size is None or size < 0 or self.at < begin + size):
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return super().read(size)  # type: ignore[return-value]


def test_a_zip_that_the_disk_does_not_give_is_no_broken_zip(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whichever byte of it: of a member, what stands before one, the directory or its end."""
    path, opened = tmp_path / "x.zip", Path.open
    pack(path, "a.csv", "b.csv")

    def bad_at(byte: int) -> str:
        def of_bad_sector(file: Path, *terms: Any, **named: Any) -> Any:
            if file != path:
                return opened(file, *terms, **named)
            found = BadSector(file)
            found.at = byte
            return found

        with monkeypatch.context() as patched:
            patched.setattr(Path, "open", of_bad_sector)
            try:
                for source in find_extracts([str(path)], LIMITS).sources:
                    assert source.fault is None, source.fault
                    assert b"".join(text_of(source, DeliveredBytes(), LIMITS)) == TEXT
            except MachineFailed as error:
                return str(error)
        return "read"

    todo = "This need not be the fault of the file. Run again."
    told = f"{path}: cannot be read: Input/output error. {todo}"
    assert {bad_at(byte) for byte in range(path.stat().st_size)} == {told}
    assert bad_at(-1) == "read"
