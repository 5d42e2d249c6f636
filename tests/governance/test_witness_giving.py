"""Witnesses are given once and whole, whatever crashes, fills up or is counted wrong meanwhile."""

import json
import os
import resource
from collections.abc import Callable

import pytest

from connectors.errors import WitnessPlaceFailed
from connectors.witness import places
from connectors.witness.places import FilePlace
from flows.stages.workspace import Workspace
from schemas.guards.witness import read_witness
from tests.examples import in_long
from tests.governance.witnesses import Book, Recon, kept, verified, witnessed, write


def count(workspace: Workspace, number: int) -> None:
    """Count every place as given so many."""
    counts = workspace.settings.home / "witness" / "given.json"
    counts.write_text(json.dumps(dict.fromkeys(json.loads(counts.read_text()), number)))


@pytest.mark.long
@pytest.mark.parametrize("number", [9, 2, 1, 0, -1])
@pytest.mark.parametrize("folder", [False, True], ids=["file", "store"])
def test_a_wrong_count_of_what_was_given_neither_withholds_nor_repeats_a_witness(
    recon: Recon,
    workspace: Workspace,
    book: Book,
    monkeypatch: pytest.MonkeyPatch,
    number: int,
    folder: bool,
) -> None:
    if folder:
        monkeypatch.setenv("RECON_AUDIT_WITNESS", f"file://{book.path}")
    witnessed(recon, workspace, "first", "second", "third")
    count(workspace, number)
    witnessed(recon, workspace, "fourth")
    found = sorted(book.path.iterdir()) if folder else book.lines
    assert len(found) == 4
    assert verified(recon)["holds"]


def test_a_count_that_is_too_high_begins_no_place_anew(
    recon: Recon, workspace: Workspace, book: Book
) -> None:
    witnessed(recon, workspace, "first", "second")
    count(workspace, 9)
    book.path.rename(book.path.with_name("away"))
    write(workspace, "third")
    ran = recon("audit", "witness")
    assert (ran.returncode, f"Not given: {book.path} cannot be read" in ran.stdout) == (1, True)
    assert not book.path.exists()


@pytest.mark.parametrize(
    "text",
    ["[]", '{"x": null}', *map(in_long, ("null", "3", '{"x": "a"}', "{", "", "[" * 10**5))],
)
def test_counts_that_cannot_be_read_are_said_in_a_line(
    recon: Recon, workspace: Workspace, book: Book, text: str
) -> None:
    witnessed(recon, workspace, "first")
    counts = workspace.settings.home / "witness" / "given.json"
    counts.write_text(text)
    write(workspace, "second")
    ran = recon("audit", "witness")
    assert (ran.returncode, f"{counts} cannot be read. Remove it" in ran.stderr) == (2, True)
    counts.unlink()
    assert verified(recon)["holds"]
    assert book.numbers == [1, 2]


def test_what_was_not_written_whole_is_taken_back_and_not_counted(
    recon: Recon, workspace: Workspace, book: Book
) -> None:
    witnessed(recon, workspace, "first", "second")
    whole, last = book.path.read_bytes(), read_witness(book.lines[1])
    assert last is not None
    book.write(book.lines[:1])
    before = book.path.read_bytes()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) + 100, hard))
    try:
        with pytest.raises(WitnessPlaceFailed, match=r"cannot be written: File too large"):
            FilePlace(book.path).give(last, begun=True)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert book.path.read_bytes() == before
    FilePlace(book.path).give(last, begun=True)
    assert book.path.read_bytes() == whole


@pytest.mark.parametrize(
    "cut",
    [
        lambda whole: whole[:200],
        lambda whole: whole.removesuffix(b"\n"),
        in_long(lambda whole: b"\0" * 5000),
        in_long(lambda whole: whole[:-2]),
    ],
)
def test_a_home_whose_last_line_a_crash_cut_off_goes_on(
    recon: Recon, workspace: Workspace, book: Book, cut: Callable[[bytes], bytes]
) -> None:
    """The crash was in writing it, before any place was given it."""
    witnessed(recon, workspace, "first", "second", "third")
    for file in (kept(workspace).path, book.path):
        *before, last = file.read_bytes().splitlines(keepends=True)
        file.write_bytes(b"".join(before) + (cut(last) if file != book.path else b""))
    count(workspace, 2)
    witnessed(recon, workspace, "fourth")
    assert kept(workspace).numbers == book.numbers
    assert book.numbers[:3] == [1, 2, 3]
    assert verified(recon)["holds"]


def test_a_line_of_the_home_that_is_none_is_said_with_what_to_do(
    recon: Recon, workspace: Workspace, book: Book
) -> None:
    witnessed(recon, workspace, "first", "second")
    home = kept(workspace)
    home.write([home.lines[0], "{"])
    write(workspace, "third")
    ran = recon("audit", "witness")
    assert (ran.returncode, "line 2: is not witness 2. Keep " in ran.stderr) == (2, True)
    home.path.parent.rename(home.path.parent.with_name("kept"))
    assert recon("audit", "witness").returncode == 0
    assert book.numbers == [1, 2, 3]


@pytest.mark.parametrize("kind", ["pipe", in_long("folder")])
def test_a_place_that_is_no_file_is_said_at_once(
    recon: Recon, workspace: Workspace, book: Book, kind: str
) -> None:
    os.mkfifo(book.path) if kind == "pipe" else book.path.mkdir()
    write(workspace, "first")
    assert recon("audit", "witness").returncode == 1
    (told, *_) = verified(recon)["unchecked"]
    assert told == f"{book.path} is no regular file. Name a file; it is made where there is none"


@pytest.mark.long
def test_an_object_that_never_ends_is_not_waited_for(
    recon: Recon, workspace: Workspace, book: Book, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(places, "STORE_SECONDS", 0.3)
    monkeypatch.setenv("RECON_AUDIT_WITNESS", f"file://{book.path}")
    witnessed(recon, workspace, "first")
    os.mkfifo(book.path / "0000000002-pipe.json")
    (told,) = verified(recon)["unchecked"]
    assert told == f"file://{book.path} cannot be read: no answer within 0.3 s"
