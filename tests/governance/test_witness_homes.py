"""Homes and places that do not have the same witnesses: backups, copies, new homes, other ones."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from flows.stages.workspace import Workspace
from tests.examples import in_long
from tests.governance.witnesses import Book, Recon, changed, kept, verified, witnessed, write


@pytest.mark.long
@pytest.mark.parametrize("folder", [False, True], ids=["file", "store"])
def test_a_home_from_a_backup_goes_on_from_what_its_place_has(
    recon: Recon,
    workspace: Workspace,
    book: Book,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    folder: bool,
) -> None:
    if folder:
        monkeypatch.setenv("RECON_AUDIT_WITNESS", f"file://{book.path}")
    home = workspace.settings.home / "witness"
    witnessed(recon, workspace, "first", "second")
    shutil.copytree(home, tmp_path / "backup")
    witnessed(recon, workspace, "third", "fourth")
    shutil.rmtree(home)
    (tmp_path / "backup").rename(home)

    (fault,) = verified(recon)["faults"]
    assert fault.startswith("RECON_HOME: ends with witness 2, and a place has witness 4: ")
    assert "this RECON_HOME is an older one" in fault
    witnessed(recon, workspace, "fifth")
    assert kept(workspace).numbers == [1, 2, 3, 4, 5]
    proof = verified(recon)
    assert (proof["holds"], proof["witnesses"]) == (True, 5)


@pytest.mark.long
@pytest.mark.parametrize("folder", [False, True], ids=["file", "store"])
def test_two_homes_that_give_to_one_place_are_told_and_leave_it_whole(
    recon: Recon, workspace: Workspace, book: Book, monkeypatch: pytest.MonkeyPatch, folder: bool
) -> None:
    """The other one made its first witness while the place was away."""
    place = f"file://{book.path}" if folder else str(book.path)
    monkeypatch.setenv("RECON_AUDIT_WITNESS", place)
    witnessed(recon, workspace, "first", "second")
    home = workspace.settings.home
    monkeypatch.setenv("RECON_HOME", str(home.with_name("other")))
    monkeypatch.setenv("RECON_AUDIT_WITNESS", str(home / "elsewhere"))
    witnessed(recon, workspace, "third")
    monkeypatch.setenv("RECON_AUDIT_WITNESS", place)
    write(workspace, "fourth")
    ran = recon("audit", "witness")
    assert ran.returncode == 1
    assert f"Not given: {place} has another witness 1: another" in ran.stdout
    assert "2 wait for it" in ran.stdout
    told, *_ = verified(recon)["faults"]
    assert "witness 1 is another one than " in told
    assert "more than one home signed with this key, or one went on from a backup" in told

    monkeypatch.setenv("RECON_HOME", str(home))
    assert verified(recon)["holds"]
    witnessed(recon, workspace, "fifth")
    assert verified(recon)["holds"]


def test_a_second_witness_of_a_number_is_told_for_what_it_is(
    recon: Recon, workspace: Workspace, book: Book, tmp_path: Path
) -> None:
    """As a home from a backup signed it, which an earlier version let happen."""
    home = workspace.settings.home / "witness"
    witnessed(recon, workspace, "first")
    shutil.copytree(home, tmp_path / "backup")
    witnessed(recon, workspace, "second")
    other, away = book.lines[1], book.path.rename(book.path.with_name("away"))
    shutil.rmtree(home)
    (tmp_path / "backup").rename(home)
    write(workspace, "third")
    assert recon("audit", "witness").returncode == 1
    away.rename(book.path)
    book.write([book.lines[0], other, kept(workspace).lines[1]])
    faults = verified(recon)["faults"]
    assert f"{book.path}, line 3: is another witness 2 than line 2: more than one" in faults[0]


ADOPTED = [
    # which of four lines a place has; what is said as the home goes on with a fifth
    ([0, 1, 2, 3], ""),
    ([0, 1, 2, 3, 1, 2], "line 5: witness 2 is there already"),
    ([0, 1, "{", 2, 3], "has lines that are no witnesses of this key"),
]


@pytest.mark.long
@pytest.mark.parametrize(("there", "said"), ADOPTED)
def test_a_new_home_takes_over_what_follows_and_says_the_rest(
    recon: Recon,
    workspace: Workspace,
    book: Book,
    caplog: pytest.LogCaptureFixture,
    there: list[Any],
    said: str,
) -> None:
    witnessed(recon, workspace, "first", "second", "third", "fourth")
    lines = book.lines
    book.write([lines[one] if isinstance(one, int) else one for one in there])
    shutil.rmtree(workspace.settings.home / "witness")
    witnessed(recon, workspace, "fifth")
    assert kept(workspace).lines == [*lines, book.lines[-1]]
    assert said in caplog.text


GAPS = [
    # what is left of four witnesses; what is said
    ([0, 2, 3], "witness 3, and witness 2 belongs there. Nothing is signed"),
    ([1, 2], "witness 2, and witness 1 belongs there. Nothing is signed"),
    ([0, 3], "witness 4, and witness 2 belongs there. Nothing is signed"),
]


@pytest.mark.long
@pytest.mark.parametrize("folder", [False, True], ids=["file", "store"])
@pytest.mark.parametrize(("left", "said"), GAPS)
def test_a_new_home_signs_nothing_behind_a_gap(
    recon: Recon,
    workspace: Workspace,
    book: Book,
    monkeypatch: pytest.MonkeyPatch,
    folder: bool,
    left: list[int],
    said: str,
) -> None:
    if folder:
        monkeypatch.setenv("RECON_AUDIT_WITNESS", f"file://{book.path}")
    witnessed(recon, workspace, "first", "second", "third", "fourth")
    if folder:
        for number, one in enumerate(sorted(book.path.iterdir())):
            if number not in left:
                one.unlink()
    else:
        book.write([book.lines[number] for number in left])
    shutil.rmtree(workspace.settings.home / "witness")
    write(workspace, "fifth")
    for _ in range(2):
        ran = recon("audit", "witness")
        assert (ran.returncode, said in ran.stderr) == (2, True), ran.stderr


def test_the_longest_of_several_places_is_taken_over(
    recon: Recon, workspace: Workspace, book: Book, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    witnessed(recon, workspace, "first", "second", "third")
    short = Book(tmp_path / "short")
    short.write([book.lines[0], book.lines[2]])
    monkeypatch.setenv("RECON_AUDIT_WITNESS", f"{short.path},{book.path}")
    shutil.rmtree(workspace.settings.home / "witness")
    write(workspace, "fourth")
    recon("audit", "witness")
    assert kept(workspace).numbers == book.numbers == [1, 2, 3, 4]


@pytest.mark.long
def test_another_home_says_of_a_place_only_what_it_knows(
    recon: Recon, workspace: Workspace, book: Book, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    witnessed(recon, workspace, "first", "second", "third")
    monkeypatch.setenv("RECON_HOME", str(tmp_path / "terminal"))
    proof = verified(recon)
    assert (proof["holds"], proof["witnesses"]) == (True, 3)
    assert proof["notes"] == [
        "this RECON_HOME made no witness: the one that did knows what a place lacks"
    ]
    earlier = Book(tmp_path / "earlier")
    earlier.write(book.lines[:2])
    for options in (
        ("--witness", str(book.path), "--witness", str(earlier.path)),
        (),
    ):
        monkeypatch.setenv("RECON_AUDIT_WITNESS", f"{book.path},{earlier.path}")
        proof = verified(recon, *options)
        assert proof["faults"] == []
        (told,) = proof["unchecked"]
        assert told.startswith(f"{earlier.path}: ends with witness 2, and there is witness 3: ")


@pytest.mark.long
def test_a_home_that_lost_all_its_witnesses_says_so(
    recon: Recon, workspace: Workspace, book: Book
) -> None:
    witnessed(recon, workspace, "first", "second")
    kept(workspace).path.unlink()
    (told,) = verified(recon)["faults"]
    assert told == "RECON_HOME: has no witness, and gave 2 away: lines were removed"
    assert recon("audit", "witness").returncode == 0
    assert verified(recon)["holds"]


def test_a_last_line_that_does_not_hold_is_no_line_that_was_removed(
    recon: Recon, workspace: Workspace, book: Book
) -> None:
    witnessed(recon, workspace, "first", "second")
    book.write([book.lines[0], changed(book.lines[1], position=9)])
    (told,) = verified(recon)["faults"]
    assert "line 2: its signature is not for what it says" in told


READ_AS_IT_IS = [
    lambda text: text.replace("\n", "\r\n"),
    lambda text: "\ufeff" + text,
    in_long(lambda text: text.removesuffix("\n")),
]


@pytest.mark.parametrize("copy", READ_AS_IT_IS)
def test_a_copy_with_other_line_ends_is_read_as_what_it_is(
    recon: Recon, workspace: Workspace, book: Book, tmp_path: Path, copy: Callable[[str], str]
) -> None:
    witnessed(recon, workspace, "first", "second")
    (tmp_path / "copy").write_bytes(copy(book.path.read_text()).encode())
    proof = verified(recon, "--witness", str(tmp_path / "copy"))
    assert (proof["holds"], proof["witnesses"]) == (True, 2)


@pytest.mark.long(but=("hash-no key",))
@pytest.mark.parametrize("key", [True, False], ids=["key", "no key"])
@pytest.mark.parametrize(
    "field", ["hash", *map(in_long, ("time", "key", "previous", "trail", "signature"))]
)
def test_a_text_that_no_witness_has_is_none(
    recon: Recon,
    workspace: Workspace,
    book: Book,
    monkeypatch: pytest.MonkeyPatch,
    field: str,
    key: bool,
) -> None:
    """A lone surrogate, and hexadecimal digits in capitals, which say the same in another way."""
    witnessed(recon, workspace, "first", "second")
    lines = book.lines
    if not key:
        monkeypatch.setenv("RECON_AUDIT_PUBLIC_KEY", str(book.path.with_name("none.pem")))
    for value in ("\ud800", json.loads(lines[1])[field].upper() + "A"):
        book.write([lines[0], changed(lines[1], **{field: value})])
        proof = verified(recon)
        assert f"{book.path}, line 2: is no witness, or was changed" in proof["faults"][0]
        assert "Traceback" not in recon("audit", "verify").stderr
