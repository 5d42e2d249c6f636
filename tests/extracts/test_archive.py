import bz2
import gzip
import hashlib
import io
import lzma
import random
import struct
import subprocess
import sys
import time
import zipfile
import zlib
from pathlib import Path

import fsspec
import pytest
import zstandard

from connectors.errors import DeliveryError, EvidenceBroken, ExtractRefused, ReconError
from connectors.files.archived import archive as archiving
from connectors.files.archived.archive import LOCK, Stored, store, store_all
from connectors.files.incoming.delivery import find_extracts, open_source
from connectors.files.incoming.source_text import DeliveredBytes, text_of
from connectors.files.text.evidence import PIECE_BYTES, Evidence, PieceHashes, ProvenFile
from connectors.settings import Limits

TORTURE = Path(__file__).parents[1] / "torture"
LIMITS = Limits(file_bytes=1 << 20, compression_ratio=100, block_bytes=1 << 16)
TEXT = b"TenantsId,AvatarsId,Name\r\n" + b"".join(b"7,%d,Friendly\r\n" % n for n in range(3000))
ZSTD = zstandard.ZstdCompressor(write_checksum=True)
SKIPPABLE = b"\x50\x2a\x4d\x18\x04\x00\x00\x00note"


def keep(path: Path, limits: Limits = LIMITS) -> Stored:
    (source,) = find_extracts([str(path)], limits).sources
    return store(source, path.parent / "archive", limits)


def left_in(archive: Path) -> list[str]:
    files = (path for path in archive.rglob("*") if path.is_file() and path.name != LOCK)
    return sorted(str(path.relative_to(archive)) for path in files)


def zipped(content: bytes, name: str = "m.csv", method: int = zipfile.ZIP_DEFLATED) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as archive:
        archive.writestr(zipfile.ZipInfo(name), content, compress_type=method)
    return file.getvalue()


@pytest.mark.parametrize("most", [1, 2, 4, 100])
def test_several_are_kept_in_their_order_and_one_refused_costs_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    monkeypatch.setattr(archiving, "MOST_TOGETHER", most)
    texts = {"a": TEXT, "b": b" \n", "c": TEXT + b"7,1,c\n", "d": TEXT, "e": TEXT + b"7,1,e\n"}
    for name, text in texts.items():
        (tmp_path / f"{name}.csv").write_bytes(text)
    sources = find_extracts([str(tmp_path)], LIMITS).sources
    archive = tmp_path / "archive"
    for known in (False, True):
        found = [(of.name, one) for of, one in store_all(sources, archive, LIMITS)]
        assert [name for name, _ in found] == [f"{name}.csv" for name in texts]
        refusals = [name for name, one in found if isinstance(one, ExtractRefused)]
        assert refusals == ["b.csv"]
        for name, one in found:
            if isinstance(one, Stored):
                assert one.path.read_bytes() == texts[name.removesuffix(".csv")]
                assert (one.known, one.replaced) == (known or name == "d.csv", None)
        assert len(left_in(archive)) == 3
    stored = [one for _, one in found if isinstance(one, Stored)]
    stored[1].path.write_bytes(b"altered")
    stored[3].path.unlink()
    again = [one for _, one in store_all(sources, archive, LIMITS) if isinstance(one, Stored)]
    assert [(one.known, bool(one.replaced)) for one in again] == [
        (True, False),
        (False, True),
        (True, False),
        (False, False),
    ]
    assert all(hashlib.sha256(one.path.read_bytes()).hexdigest() == one.sha256 for one in again)


@pytest.mark.parametrize(
    ("name", "delivered"),
    [
        ("a.csv", TEXT),
        ("a.csv.gz", gzip.compress(TEXT, mtime=0)),
        (
            "a.csv.gz",
            gzip.compress(TEXT[:99], mtime=0)
            + gzip.compress(b"", mtime=0)
            + gzip.compress(TEXT[99:], mtime=0),
        ),
        ("a.csv", gzip.compress(TEXT, mtime=0)),
        ("a.csv", ZSTD.compress(TEXT)),
        ("a.csv.zst", ZSTD.compress(TEXT)),
        ("a.csv.zst", ZSTD.compress(TEXT[:99]) + SKIPPABLE + ZSTD.compress(TEXT[99:])),
        ("a.csv.zst", SKIPPABLE + ZSTD.compress(TEXT)),
        ("a.csv.xz", lzma.compress(TEXT)),
        ("a.csv.xz", lzma.compress(TEXT[:99]) + lzma.compress(TEXT[99:])),
        ("a.csv.bz2", bz2.compress(TEXT)),
        ("a.csv.bz2", bz2.compress(TEXT[:99]) + bz2.compress(b"") + bz2.compress(TEXT[99:])),
        ("a.tsv", TEXT),
        ("a.txt", bz2.compress(TEXT)),
        ("a.zip", zipped(TEXT)),
        ("a.zip", zipped(TEXT, method=zipfile.ZIP_BZIP2)),
        ("a.zip", zipped(TEXT, method=zipfile.ZIP_LZMA)),
        ("a.zip", zipped(gzip.compress(TEXT, mtime=0), "m.csv.gz")),
    ],
)
def test_content_is_the_same_however_it_is_packed(
    tmp_path: Path, name: str, delivered: bytes
) -> None:
    (tmp_path / name).write_bytes(delivered)
    stored = keep(tmp_path / name)
    sha256 = hashlib.sha256(TEXT).hexdigest()
    assert (stored.sha256, stored.bytes, stored.known) == (sha256, len(TEXT), False)
    assert stored.path == tmp_path / "archive" / sha256[:2] / f"{sha256}.csv"
    assert stored.path.read_bytes() == TEXT
    if not name.endswith(".zip"):
        assert stored.delivered_bytes == len(delivered)
        assert stored.delivered_sha256 == hashlib.sha256(delivered).hexdigest()
    assert left_in(tmp_path / "archive") == [f"{sha256[:2]}/{sha256}.csv"]
    again = keep(tmp_path / name)
    assert again.known
    assert again.path == stored.path


def test_zip_member_is_delivered_as_it_would_be_unzipped(tmp_path: Path) -> None:
    (tmp_path / "a.zip").write_bytes(zipped(gzip.compress(TEXT, mtime=0), "m.csv.gz"))
    stored = keep(tmp_path / "a.zip")
    assert stored.name == "a.zip/m.csv.gz"
    assert stored.delivered_sha256 == hashlib.sha256(gzip.compress(TEXT, mtime=0)).hexdigest()


def test_a_damaged_archive_is_healed_by_delivering_again(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(TEXT)
    path = keep(tmp_path / "a.csv").path
    path.chmod(0o600)
    path.write_bytes(TEXT[:50])
    assert not keep(tmp_path / "a.csv").known
    assert path.read_bytes() == TEXT


def greedy() -> bytes:
    """What asks for half a gigabyte to be unpacked, without having taken gigabytes to be packed."""
    whole = bytearray(lzma.compress(TEXT))
    end = 12 + 4 * whole[12]  # Of the block's header, where its checksum begins.
    assert whole[14:16] == b"\x21\x01", "one filter, LZMA2, whose only property comes next"
    whole[16] = 34  # 2 ** 29 bytes.
    whole[end : end + 4] = zlib.crc32(whole[12:end]).to_bytes(4, "little")
    return bytes(whole)


PACKED = {
    "csv.gz": gzip.compress(TEXT[:400], mtime=0),
    "csv.zst": ZSTD.compress(TEXT[:400]),
    "csv.xz": lzma.compress(TEXT[:400]),
    "csv.bz2": bz2.compress(TEXT[:400]),
    "zip": zipped(TEXT[:400]),
}


@pytest.mark.long(but=("csv.gz", "csv.zst"))
@pytest.mark.parametrize("suffix", PACKED)
def test_every_cut_is_refused_and_leaves_nothing(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"a.{suffix}"
    for length in range(1, len(PACKED[suffix])):
        path.write_bytes(PACKED[suffix][:length])
        with pytest.raises(ExtractRefused) as caught:
            keep(path)
        assert caught.value.code == "corrupt_archive", (length, str(caught.value))
    archive = tmp_path / "archive"
    assert not archive.exists() or left_in(archive) == []


@pytest.mark.long
@pytest.mark.parametrize("suffix", PACKED)
def test_no_flipped_bit_changes_the_content_unseen(tmp_path: Path, suffix: str) -> None:
    seed = 20261121
    chance = random.Random(seed)
    path = tmp_path / f"a.{suffix}"
    refusals = 0
    for _ in range(300):
        damaged = bytearray(PACKED[suffix])
        place, bit = chance.randrange(len(damaged)), chance.randrange(8)
        damaged[place] ^= 1 << bit
        path.write_bytes(damaged)
        try:
            stored = keep(path)
        except ExtractRefused:
            refusals += 1
        else:
            # Names, times and flags of a container may change; what is inside may not.
            assert stored.path.read_bytes() == TEXT[:400], (seed, place, bit)
    assert refusals > 100


def greedy_member() -> bytes:
    """A zip member whose unpacker would be given 4 GiB at once."""
    packed = bytearray(zipped(TEXT, method=zipfile.ZIP_LZMA))
    dictionary = 30 + len("m.csv") + 5
    packed[dictionary : dictionary + 4] = b"\xff" * 4
    return bytes(packed)


def overlapping() -> bytes:
    """Two members of one body."""
    packed = zipped(TEXT)
    begin, end = packed.index(b"PK\1\2"), packed.index(b"PK\5\6")
    entries = packed[begin:end] * 2
    counts = struct.pack("<HHLL", 2, 2, len(entries), begin)
    return packed[:begin] + entries + b"PK\5\6\0\0\0\0" + counts + b"\0\0"


@pytest.mark.parametrize(
    ("name", "delivered", "code"),
    [
        ("a.csv.gz", gzip.compress(TEXT, mtime=0) + b"garbage", "corrupt_archive"),
        ("a.csv.gz", gzip.compress(TEXT, mtime=0) + b"\0" * 512, "corrupt_archive"),
        ("a.csv.gz", TEXT, "corrupt_archive"),
        ("a.csv.zst", ZSTD.compress(TEXT) + b"garbage", "corrupt_archive"),
        ("a.csv.zst", TEXT, "corrupt_archive"),
        ("a.csv.xz", TEXT, "corrupt_archive"),
        ("a.csv.xz", lzma.compress(TEXT) + b"garbage", "corrupt_archive"),
        ("a.csv.bz2", bz2.compress(TEXT) + b"garbage", "corrupt_archive"),
        ("a.csv.bz2", b"BZh9garbage", "corrupt_archive"),
        ("a.csv.xz", lzma.compress(b"x" * (1 << 19)), "too_large"),
        ("a.csv.xz", greedy(), "too_large"),
        ("a.csv.bz2", bz2.compress(b"x" * (1 << 19)), "too_large"),
        ("a.csv", b"", "empty_file"),
        ("a.csv", b"\xef\xbb\xbf", "empty_file"),
        ("a.csv", b"\xef\xbb\xbf \r\n\t\n", "empty_file"),
        ("a.csv", b"\xff\xfe\r\0\n\0", "empty_file"),
        ("a.csv", b"\n" * 100_000, "empty_file"),
        ("a.csv.gz", gzip.compress(b"", mtime=0), "empty_file"),
        ("a.csv.gz", b"", "empty_file"),
        ("a.zip", zipped(b"\r\n"), "empty_file"),
        ("a.csv", b"x" * (LIMITS.file_bytes + 1), "too_large"),
        ("a.csv.gz", gzip.compress(b"x" * (LIMITS.file_bytes + 1), mtime=0), "too_large"),
        ("a.csv.gz", gzip.compress(b"x" * (1 << 19), mtime=0), "too_large"),
        ("a.csv.zst", ZSTD.compress(b"x" * (1 << 19)), "too_large"),
        ("a.zip", zipped(b"x" * (1 << 19)), "too_large"),
        ("a.zip", greedy_member(), "too_large"),
        ("a.zip", overlapping(), "corrupt_archive"),
        ("a.csv", zipped(TEXT), "unsupported_format"),
        ("a.csv.gz", gzip.compress(gzip.compress(TEXT, mtime=0), mtime=0), "unsupported_format"),
        ("a.csv", b"%PDF-1.7\n1 0 obj", "unsupported_format"),
        ("a.csv", b"\x89PNG\r\n\x1a\n\0\0", "unsupported_format"),
        ("a.csv", b"\xff\xd8\xff\xe0JFIF", "unsupported_format"),
        ("a.csv", b"PAR1\x15\x04", "unsupported_format"),
        ("a.csv", b'\n [{"Id": 1}]', "unsupported_format"),
        ("a.csv", b'\xef\xbb\xbf{"Id": 1}', "unsupported_format"),
        ("a.csv", '\ufeff{"Id": 1}'.encode("utf-16-le"), "unsupported_format"),
        ("a.csv", b"<!doctype html><html>", "unsupported_format"),
        ("a.csv", b"<?xml version='1.0'?>", "unsupported_format"),
        ("a.csv", bytes(range(32)) * 9, "unsupported_format"),
    ],
)
def test_refusals(tmp_path: Path, name: str, delivered: bytes, code: str) -> None:
    (tmp_path / name).write_bytes(delivered)
    with pytest.raises(ExtractRefused) as caught:
        keep(tmp_path / name)
    assert caught.value.code == code
    assert str(caught.value).startswith(name)
    archive = tmp_path / "archive"
    assert not archive.exists() or left_in(archive) == []


@pytest.mark.parametrize(
    "delivered",
    [
        pytest.param("Id,Name\r\n1,ü\r\n".encode("utf-16"), id="utf-16 with mark"),
        pytest.param("Id,Name\r\n1,ü\r\n".encode("utf-16-le"), id="utf-16 without mark"),
        pytest.param("Id,Näme\n1,\x80\n".encode("latin-1"), id="latin-1"),
        pytest.param(b"Id,Name\n1,a\0b\n", id="a NUL in one cell"),
        pytest.param(b"\x1f,Id\n", id="an odd sign"),
    ],
)
def test_unusual_text_is_kept_as_it_is(tmp_path: Path, delivered: bytes) -> None:
    (tmp_path / "a.csv").write_bytes(delivered)
    assert keep(tmp_path / "a.csv").path.read_bytes() == delivered


def test_encrypted_member_is_refused(tmp_path: Path) -> None:
    # The first flag of a member, in its local header and in the directory, says encrypted.
    data = bytearray(zipped(TEXT))
    data[6] |= 1
    data[data.index(b"PK\x01\x02") + 8] |= 1
    (tmp_path / "a.zip").write_bytes(data)
    with pytest.raises(ExtractRefused, match=r"a\.zip/m\.csv: not CSV text: encrypted"):
        keep(tmp_path / "a.zip")


@pytest.mark.parametrize(
    ("case", "code"),
    [
        ("cases/gz_truncated.csv.gz", "corrupt_archive"),
        ("cases/empty_0_bytes.csv", "empty_file"),
        ("cases/empty_only_newlines.csv", "empty_file"),
        ("ambiguous/gz_valid.csv.gz", None),
        ("ambiguous/gz_named_csv.csv", None),
        ("ambiguous/utf16le_bom.csv", None),
    ],
)
def test_torture(tmp_path: Path, case: str, code: str | None) -> None:
    path = tmp_path / Path(case).name
    path.write_bytes((TORTURE / case).read_bytes())
    if code is None:
        assert keep(path).bytes > 300
    else:
        with pytest.raises(ExtractRefused) as caught:
            keep(path)
        assert caught.value.code == code


@pytest.mark.long
def test_drafts_of_killed_runs_are_swept_and_live_ones_are_not(tmp_path: Path) -> None:
    incoming = tmp_path / "archive" / "incoming"
    incoming.mkdir(parents=True)
    (incoming / "of_killed_run").write_bytes(b"half")
    live = incoming / "of_live_run"
    holding = "import fcntl, sys; f = open(sys.argv[1], 'wb'); fcntl.flock(f, fcntl.LOCK_EX)"
    code = f"{holding}; print(flush=True); sys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-c", code, str(live)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout
        holder.stdout.readline()
        (tmp_path / "a.csv").write_bytes(TEXT)
        keep(tmp_path / "a.csv")
        assert sorted(path.name for path in incoming.iterdir()) == ["of_live_run"]


FULL_DISK = """
import resource, sys
from pathlib import Path
from connectors.errors import ReconError
from connectors.files.archived.archive import store
from connectors.files.incoming.delivery import find_extracts
from connectors.settings import Limits
folder = Path(sys.argv[1])
(source,) = find_extracts([str(folder / "a.csv")], Limits()).sources
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
try:
    store(source, folder / "archive", Limits())
except ReconError as error:
    print(error)
"""


@pytest.mark.long
def test_no_room_leaves_no_file_under_any_name(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(TEXT)
    root = Path(__file__).parents[2]
    result = subprocess.run(
        [sys.executable, "-c", FULL_DISK, str(tmp_path)],
        cwd=root,
        capture_output=True,
        text=True,
        check=True,
    )
    assert "a.csv cannot be archived: File too large. Nothing of it was kept" in result.stdout
    assert left_in(tmp_path / "archive") == []


def test_archive_that_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(TEXT)
    (tmp_path / "archive").write_bytes(b"")
    with pytest.raises(ReconError, match=r"a\.csv cannot be archived.*RECON_HOME"):
        keep(tmp_path / "a.csv")


def test_file_gone_between_finding_and_reading(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(TEXT)
    (source,) = find_extracts([str(tmp_path)], LIMITS).sources
    (tmp_path / "a.csv").unlink()
    with pytest.raises(DeliveryError, match=r"a\.csv: cannot be read: No such file"):
        store(source, tmp_path / "archive", LIMITS)
    assert left_in(tmp_path / "archive") == []


@pytest.mark.long
def test_file_that_is_still_being_written_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(TEXT * 20)
    (source,) = find_extracts([str(path)], Limits()).sources
    code = (
        "import sys\nf = open(sys.argv[1], 'ab', buffering=0)\nwhile True: f.write(b'7,1,More\\n')"
    )
    archives = [tmp_path / f"archive-{number}" for number in range(1_000)]

    def store_again_and_again() -> None:
        # Now and then the writer has no turn while the file is read: then it was not changed.
        while archives:
            store(source, archives.pop(), Limits())

    with subprocess.Popen([sys.executable, "-c", code, str(path)]) as writer:
        try:
            with pytest.raises(ExtractRefused, match="changed while it was read") as caught:
                store_again_and_again()
        finally:
            writer.kill()
    assert caught.value.code == "incomplete_file"
    assert left_in(tmp_path / f"archive-{len(archives)}") == []


@pytest.mark.parametrize("how", ["replaced", "written to"])
def test_a_zip_that_changes_between_its_members_is_refused(tmp_path: Path, how: str) -> None:
    path, other = tmp_path / "a.zip", tmp_path / "other.zip"
    texts = {"jan.csv": TEXT, "feb.csv": TEXT + b"7,9,February\r\n"}

    def pack(path: Path, *names: str) -> None:
        with zipfile.ZipFile(path, "w") as archive:
            for name in names:
                archive.writestr(zipfile.ZipInfo(name), texts[name])

    pack(path, "jan.csv", "feb.csv")
    first, second = find_extracts([str(path)], LIMITS).sources
    assert store(first, tmp_path / "archive", LIMITS).path.read_bytes() == texts["feb.csv"]
    pack(other, "feb.csv", "jan.csv")
    if how == "replaced":
        other.replace(path)
    else:
        path.write_bytes(other.read_bytes())
    with pytest.raises(ExtractRefused, match="it was replaced or written to"):
        store(second, tmp_path / "archive", LIMITS)


@pytest.mark.long
def test_each_member_of_a_large_zip_is_opened_without_its_directory(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        for number in range(2_000):
            archive.writestr(f"{number:04}.csv", TEXT[:40])
    sources = find_extracts([str(tmp_path / "a.zip")], Limits()).sources
    began = time.process_time()
    for source in sources:
        with open_source(source) as file:
            assert file.read() == TEXT[:40]
    # To read the directory each time takes twenty.
    assert time.process_time() - began < 5


def test_an_object_that_is_replaced_while_it_is_read_is_refused() -> None:
    files = fsspec.filesystem("memory")
    files.pipe("/changing/a.csv", TEXT * 100)
    try:
        (source,) = find_extracts(["memory://changing/a.csv"], Limits()).sources
        blocks = text_of(source, DeliveredBytes(), Limits())
        next(blocks)
        files.pipe("/changing/a.csv", TEXT * 100)
        with pytest.raises(ExtractRefused, match="changed while it was read") as caught:
            list(blocks)
        assert caught.value.code == "incomplete_file"
    finally:
        files.rm("/changing", recursive=True)


@pytest.mark.long
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs Linux to tell the peak")
def test_memory_does_not_grow_with_the_file(tmp_path: Path) -> None:
    # The peak of getrusage is inherited from the process that starts this one; VmHWM is its own.
    code = """
import re, sys
from pathlib import Path
from connectors.files.archived.archive import store
from connectors.files.incoming.delivery import find_extracts
from connectors.settings import Limits
def peak():
    return int(re.search(r"VmHWM:\\s*(\\d+)", Path("/proc/self/status").read_text())[1])
(source,) = find_extracts([sys.argv[1]], Limits()).sources
before = peak()
print(store(source, Path(sys.argv[2]), Limits(compression_ratio=10**6)).bytes)
print((peak() - before) // 1024)
"""
    bombs = {
        "a.csv.gz": gzip.compress(b"7,3,Friendly\n" * 8_000_000, 1, mtime=0),
        "a.csv.zst": ZSTD.compress(b"7,3,Friendly\n" * 8_000_000),
    }
    for name, delivered in bombs.items():
        (tmp_path / name).write_bytes(delivered)
        result = subprocess.run(
            [sys.executable, "-c", code, str(tmp_path / name), str(tmp_path / "archive")],
            cwd=Path(__file__).parents[2],
            capture_output=True,
            text=True,
            check=True,
        )
        size, grown = map(int, result.stdout.split())
        assert size == 104_000_000
        assert grown < 80, name


def test_nothing_of_the_archive_is_readable_by_others(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(TEXT)
    assert keep(tmp_path / "a.csv").path.stat().st_mode & 0o077 == 0


def test_a_content_of_several_pieces_is_proven_piece_by_piece(tmp_path: Path) -> None:
    content = random.Random(7).randbytes(PIECE_BYTES * 2 + 700)
    path = tmp_path / "a.bin"
    path.write_bytes(content)
    hashes = PieceHashes()
    hashes.update(content)
    evidence = Evidence(
        path, hashlib.sha256(content).hexdigest(), len(content), hashes.hexdigests(), "a.bin", ""
    )
    with ProvenFile(evidence) as file:
        read = [file.read(size) for size in (1, PIECE_BYTES, 5, PIECE_BYTES, 10_000)]
    assert b"".join(read) == content
    path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    with ProvenFile(evidence) as file:
        assert file.read(PIECE_BYTES * 2) == content[: PIECE_BYTES * 2]
        with pytest.raises(
            EvidenceBroken, match=rf"bytes {PIECE_BYTES * 2} to {len(content) - 1} "
        ):
            file.read(1)
