"""When a file in an inbox counts as complete, and which files are one delivery."""

import hashlib
import json
import os
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from connectors.errors import DeliveryError, InboxHeldElsewhere
from connectors.files.incoming.arrivals import look_at
from connectors.files.incoming.inbox import Inbox

ABC = {"bytes": 3, "sha256": hashlib.sha256(b"abc").hexdigest()}
BYTES = {"files": {"a.csv": ABC, "b.csv": ABC}}
NAMED = {"files": {"a.csv": {"rows": 1}, "b.csv": {}}}


def nothing(_folder: Path) -> None: ...


def grow(name: str) -> Callable[[Path], None]:
    def write(folder: Path) -> None:
        with (folder / name).open("a") as file:
            file.write("more")

    return write


def touch(folder: Path) -> None:
    os.utime(folder / "a.csv", (1, 1))


def replace(folder: Path) -> None:
    """The same bytes and the same time, in another file."""
    before = (folder / "a.csv").stat()
    (folder / "new").write_text("abc")
    os.utime(folder / "new", ns=(before.st_atime_ns, before.st_mtime_ns))
    (folder / "new").replace(folder / "a.csv")


def finish(folder: Path) -> None:
    (folder / "a.csv.part").rename(folder / "a.csv")


def remove(folder: Path) -> None:
    (folder / "a.csv").unlink()


def appear(folder: Path) -> None:
    (folder / "late.csv").write_text("late")


CASES: dict[str, tuple[dict[str, Any], Callable[[Path], None], list[list[str]], list[str]]] = {
    # Files, what happens while we wait, complete deliveries, files that are not.
    "an empty inbox": ({}, nothing, [], []),
    "a file that stays as it is": ({"a.csv": "abc"}, nothing, [["a.csv"]], []),
    "each file is a delivery": ({"b.csv": "", "a.csv": "abc"}, nothing, [["a.csv"], ["b.csv"]], []),
    "a file that grows": ({"a.csv": "abc", "b.csv": "x"}, grow("a.csv"), [["b.csv"]], ["a.csv"]),
    "a file whose time changes": ({"a.csv": "abc"}, touch, [], ["a.csv"]),
    "a file that is replaced": ({"a.csv": "abc"}, replace, [], ["a.csv"]),
    "a file that goes away": ({"a.csv": "abc"}, remove, [], ["a.csv"]),
    "a file that comes while we wait": ({"a.csv": "abc"}, appear, [["a.csv"]], ["late.csv"]),
    "an unfinished name": (
        {"a.csv.part": "abc", "b.TMP": "abc"},
        nothing,
        [],
        ["a.csv.part", "b.TMP"],
    ),
    "a rename while we wait": ({"a.csv.part": "abc", "b.csv": ""}, finish, [["b.csv"]], ["a.csv"]),
    "marks go with their file": (
        {"a.csv": "abc", "a.csv.done": "", "a.csv.sha256": "x", "b.csv": "b"},
        nothing,
        [["a.csv", "a.csv.done", "a.csv.sha256"], ["b.csv"]],
        [],
    ),
    "what cannot be an extract": ({"a.pdf": "abc"}, nothing, [["a.pdf"]], []),
    "a sidecar that proves its file": (
        {"a.csv": "abc", "a.csv.manifest.json": {"files": {"a.csv": ABC}}},
        grow("nothing-else.csv"),
        [["a.csv", "a.csv.manifest.json"]],
        [],
    ),
    "a manifest with all its files": (
        {"a.csv": "abc", "b.csv": "abc", "c.csv": "c", "manifest.json": NAMED},
        nothing,
        [["manifest.json", "a.csv", "b.csv"], ["c.csv"]],
        [],
    ),
    "a manifest without one of its files": (
        {"a.csv": "abc", "c.csv": "c", "manifest.json": BYTES},
        nothing,
        [["c.csv"]],
        ["manifest.json"],
    ),
    "a file of a manifest that is still written": (
        {"a.csv": "abc", "b.csv.part": "abc", "manifest.json": BYTES},
        nothing,
        [],
        ["b.csv.part", "manifest.json"],
    ),
    "a manifest whose file grows": (
        {"a.csv": "abc", "b.csv": "ab", "manifest.json": BYTES},
        grow("b.csv"),
        [],
        ["manifest.json"],
    ),
    "a manifest that comes while we wait holds the others back": (
        {"a.csv": "abc", "z.csv": "z"},
        lambda folder: (folder / "manifest.json").write_text(json.dumps(NAMED)),
        [],
        ["a.csv", "manifest.json", "z.csv"],
    ),
    "a sidecar that comes while we wait holds its file back": (
        {"a.csv": "abc", "z.csv": "z"},
        grow("a.csv.done"),
        [["z.csv"]],
        ["a.csv", "a.csv.done"],
    ),
    "half a manifest holds the others back": (
        {"a.csv": "abc", "manifest.json": '{"files": {"a.c'},
        grow("manifest.json"),
        [],
        ["a.csv", "manifest.json"],
    ),
    "a manifest that stays unreadable holds back what it may name": (
        {"a.csv": "abc", "a.csv.done": "", "manifest.json": "{"},
        nothing,
        [],
        ["a.csv"],
    ),
    "a manifest with a wrong key goes with the files it names": (
        {"a.csv": "abc", "c.csv": "c", "manifest.json": {"files": {"a.csv": {"row": 1}}}},
        nothing,
        [["manifest.json", "a.csv"], ["c.csv"]],
        [],
    ),
    "a manifest with a wrong key waits for the files it names": (
        {"a.csv": "abc", "manifest.json": {"files": {"a.csv": {"row": 1}, "b.csv": None}}},
        nothing,
        [],
        ["manifest.json"],
    ),
    "a manifest that names members of a zip": (
        {
            "z.zip": "PK",
            "z.zip.done": "",
            "manifest.json": {"files": {"z.zip/a.csv": {"rows": 1}, "z.zip/b.csv": {"rows": 1}}},
        },
        nothing,
        [["manifest.json", "z.zip", "z.zip.done"]],
        [],
    ),
    "a manifest that names members of a zip that is not there": (
        {"manifest.json": {"files": {"z.zip/a.csv": {}}}},
        nothing,
        [],
        ["manifest.json"],
    ),
    "a manifest that is being written holds the others back": (
        {"a.csv": "abc", "manifest.json.part": "{"},
        nothing,
        [],
        ["a.csv", "manifest.json.part"],
    ),
    "a sidecar that is being written holds its file back": (
        {"a.csv": "abc", "a.csv.manifest.json.tmp": "{", "b.csv": "b"},
        nothing,
        [["b.csv"]],
        ["a.csv", "a.csv.manifest.json.tmp"],
    ),
    "a manifest with a name that nobody reads holds the others back": (
        {"a.csv": "abc", "MANIFEST.JSON": NAMED},
        nothing,
        [],
        ["a.csv"],
    ),
    "so does a sidecar": (
        {"a.csv": "abc", "a.csv.Manifest.json": {"files": {"a.csv": {"rows": 1}}}},
        nothing,
        [],
        ["a.csv"],
    ),
    "a sidecar goes with the file whose name it carries whole": (
        {
            "a.csv": "abc",
            "a.csv.gz": "abc",
            "a.csv.gz.done": "",
            "a.csv.gz.manifest.json": {"files": {"a.csv.gz": {"rows": 1}}},
        },
        nothing,
        [["a.csv"], ["a.csv.gz", "a.csv.gz.done", "a.csv.gz.manifest.json"]],
        [],
    ),
    "a mark belongs to a file that is still written": (
        {"a.csv": "abc", "a.csv.gz.part": "abc", "a.csv.gz.done.tmp": ""},
        nothing,
        [["a.csv"]],
        ["a.csv.gz.done.tmp", "a.csv.gz.part"],
    ),
    "a manifest that is replaced while we wait holds back what the new one may name": (
        {"a.csv": "abc", "b.csv": "b", "c.csv": "c", "manifest.json": NAMED},
        lambda folder: (folder / "manifest.json").write_text('{"files": {"c.csv": {"rows": 9}}}'),
        [],
        ["c.csv", "manifest.json"],
    ),
    "a file that may be meant by a name in other letters waits": (
        {"b.csv": "abc", "c.csv": "c", "manifest.json": {"files": {"B.CSV": {"rows": 1}}}},
        nothing,
        [["c.csv"]],
        ["b.csv", "manifest.json"],
    ),
    "so does one that is packed, or is not": (
        {
            "a.csv.zip": "PK",
            "b.csv.gz": "abc",
            "c.csv": "c",
            "manifest.json": {"files": {"a.csv": {}, "b.csv": {}, "c.csv.zst": {}}},
        },
        nothing,
        [],
        ["a.csv.zip", "b.csv.gz", "c.csv", "manifest.json"],
    ),
    "so does one whose letters are written otherwise": (
        {"\u00fc.csv": "abc", "manifest.json": {"files": {"u\u0308.csv": {"rows": 1}}}},
        nothing,
        [],
        ["manifest.json", "\u00fc.csv"],
    ),
    "a file whose name is stated is no other's": (
        {
            "a.csv": "abc",
            "b.csv": "abc",
            "b.csv.gz": "b",
            "manifest.json": {"files": {"a.csv": {}, "b.csv": {}}},
        },
        nothing,
        [["manifest.json", "a.csv", "b.csv"], ["b.csv.gz"]],
        [],
    ),
    "a sidecar that is none goes with its file": (
        {"a.csv": "abc", "a.csv.manifest.json": "{", "b.csv": "b"},
        nothing,
        [["a.csv", "a.csv.manifest.json"], ["b.csv"]],
        [],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_what_is_complete(tmp_path: Path, name: str) -> None:
    files, meanwhile, complete, unfinished = CASES[name]
    for file, content in files.items():
        text = content if isinstance(content, str) else json.dumps(content)
        (tmp_path / file).write_text(text)
    inbox = Inbox(tmp_path)
    with inbox.alone():
        found = inbox.look(5, lambda _seconds: meanwhile(tmp_path))
    assert [list(arrival.names) for arrival in found.complete] == complete
    assert sorted(found.unfinished) == unfinished
    assert found.left_alone == ()


def test_what_a_manifest_proves_is_not_waited_for(tmp_path: Path) -> None:
    for name in ("a.csv", "b.csv"):
        (tmp_path / name).write_text("abc")
    (tmp_path / "manifest.json").write_text(json.dumps(BYTES))

    def wait(_seconds: float) -> None:
        raise AssertionError("nothing has to be waited for")

    inbox = Inbox(tmp_path)
    with inbox.alone():
        (arrival,) = inbox.look(5, wait).complete
    assert arrival.names == ("manifest.json", "a.csv", "b.csv")


def test_a_file_that_has_its_size_before_its_bytes_is_waited_for(tmp_path: Path) -> None:
    """Programs that reserve its room first leave it so; some copy over a network like this."""
    path = tmp_path / "a.csv"
    path.write_bytes(bytes(3))
    (tmp_path / "manifest.json").write_text('{"files": {"a.csv": {"bytes": 3}}}')
    inbox = Inbox(tmp_path)

    def write_on(_seconds: float) -> None:
        path.write_text("abc")
        os.utime(path, ns=(1, 1))

    with inbox.alone():
        found = inbox.look(5, write_on)
        assert (found.complete, [*found.unfinished]) == ((), ["manifest.json"])
        (arrival,) = inbox.look(5, lambda _seconds: None).complete
    assert arrival.names == ("manifest.json", "a.csv")


def test_folders_links_and_lonely_marks_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "link.csv").symlink_to("/etc/hostname")
    (tmp_path / "x.csv.done").touch()
    (tmp_path / ".hidden.csv").touch()
    inbox = Inbox(tmp_path)
    with inbox.alone():
        found = inbox.look(5, lambda _seconds: None)
    assert found.complete == ()
    assert found.left_alone == ("folder/", "x.csv.done")
    assert found.unusable.keys() == {"link.csv"}
    assert found.unfinished == {".hidden.csv": "is hidden: rename it"}


def test_a_file_waits_whose_manifest_is_called_by_another_spelling(tmp_path: Path) -> None:
    for name in ("b.csv", "c.csv", "B.csv.manifest.json"):
        (tmp_path / name).write_text('{"files": {}}')
    inbox = Inbox(tmp_path)
    with inbox.alone():
        found = inbox.look(5, lambda _seconds: None)
    assert [one.names for one in found.complete] == [("c.csv",)]
    assert found.unfinished == {
        "b.csv": "may be B.csv, which B.csv.manifest.json names",
        "B.csv.manifest.json": "B.csv, which it is about, is not there",
    }


def link(path: Path) -> None:
    path.symlink_to("/etc/hostname")


@pytest.mark.parametrize("name", ["manifest.json", "a.csv.manifest.json"])
@pytest.mark.parametrize("make", [link, Path.mkdir, os.mkfifo])
def test_a_manifest_that_is_no_file_holds_the_others_back(
    tmp_path: Path, make: Callable[[Path], None], name: str
) -> None:
    (tmp_path / "a.csv").write_text("abc")
    make(tmp_path / name)
    inbox = Inbox(tmp_path)
    with inbox.alone():
        found = inbox.look(5, lambda _seconds: None)
    assert (found.complete, list(found.unfinished)) == ((), ["a.csv"])
    assert found.unreadable.keys() == {name}
    assert found.left_alone == ()


def test_a_file_that_a_manifest_names_waits_for_its_own_that_is_no_file_too(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("abc")
    (tmp_path / "manifest.json").write_text('{"files": {"a.csv": {"bytes": 3}}}')
    link(tmp_path / "a.csv.manifest.json")
    inbox = Inbox(tmp_path)
    with inbox.alone():
        found = inbox.look(5, lambda _seconds: None)
    assert (found.complete, list(found.unfinished)) == ((), ["manifest.json"])
    assert found.unreadable.keys() == {"a.csv.manifest.json"}


@pytest.mark.parametrize(
    "key", ["./a.csv", "sub/a.csv", "/in/a.csv", "..", "", "in\\a.csv", "z.zip/", "./z.zip/a.csv"]
)
def test_a_manifest_that_names_what_is_no_name_holds_the_others_back(
    tmp_path: Path, key: str
) -> None:
    (tmp_path / "a.csv").write_text("abc")
    (tmp_path / "z.zip").write_text("PK")
    (tmp_path / "manifest.json").write_text(json.dumps({"files": {key: {"rows": 99}}}))
    inbox = Inbox(tmp_path)
    with inbox.alone():
        found = inbox.look(5, lambda _seconds: None)
    assert (found.complete, sorted(found.unfinished)) == ((), ["a.csv", "z.zip"])
    assert "and no file of an inbox is called so" in found.unreadable["manifest.json"]


def test_one_watcher_at_a_time(tmp_path: Path) -> None:
    with (
        Inbox(tmp_path).alone(),
        pytest.raises(InboxHeldElsewhere, match=rf"locked by \S+ pid {os.getpid()} since "),
        Inbox(tmp_path).alone(),
    ):
        pass
    with Inbox(tmp_path).alone():
        pass
    with pytest.raises(DeliveryError, match="no such inbox"), Inbox(tmp_path / "no").alone():
        pass


@pytest.mark.parametrize("change", [grow("a.csv"), remove, replace])
def test_a_file_that_changes_before_it_is_taken_is_put_back(tmp_path: Path, change: Any) -> None:
    (tmp_path / "a.csv").write_text("abc")
    (tmp_path / "a.csv.done").touch()
    inbox = Inbox(tmp_path)
    with inbox.alone():
        (arrival,) = inbox.look(5, lambda _seconds: None).complete
        change(tmp_path)
        left = {path.name for path in tmp_path.glob("a.csv*")}
        assert inbox.take(arrival) is None
    assert {path.name for path in tmp_path.glob("a.csv*")} == left
    assert not list(inbox.taking.iterdir())


LATE = {
    "a sidecar": ("b.csv.manifest.json", None),
    "a mark": ("b.csv.done", None),
    "a sidecar that is being written": ("b.csv.manifest.json.part", None),
    "a manifest": ("manifest.json", None),
    "a manifest that is being written": ("manifest.json.tmp", None),
    "a manifest that names others, replaced": ("manifest.json", '{"files": {"x.csv": {}}}'),
}


@pytest.mark.parametrize(("name", "before"), LATE.values(), ids=LATE)
def test_what_may_speak_of_a_file_and_comes_while_others_are_imported_is_waited_for(
    tmp_path: Path, name: str, before: str | None
) -> None:
    (tmp_path / "a.csv").write_text("a")
    (tmp_path / "b.csv").write_text("b")
    (tmp_path / "c.csv.done").write_text("of another file, and there from the first")
    if before:
        (tmp_path / name).write_text(before)
    inbox = Inbox(tmp_path)
    with inbox.alone():
        first, second = inbox.look(5, lambda _seconds: None).complete
        assert inbox.take(first) is not None
        (tmp_path / name).write_text('{"files": {"b.csv": {"rows": 1}}}')
        assert inbox.take(second) is None
    assert (tmp_path / "b.csv").read_text() == "b"
    assert [path.name for path in inbox.taking.glob("*/*")] == ["a.csv"]


def test_the_next_delivery_of_the_same_names_does_not_stop_this_one(tmp_path: Path) -> None:
    for name in ("a.csv", "a.csv.done"):
        (tmp_path / name).write_text("a")
    (tmp_path / "b.csv").write_text("abc")
    (tmp_path / "manifest.json").write_text('{"files": {"b.csv": {"bytes": 3}}}')
    inbox = Inbox(tmp_path)
    with inbox.alone():
        whole, single = inbox.look(5, lambda _seconds: None).complete
        (tmp_path / "manifest.json.part").write_text("of the next day")
        assert inbox.take(whole) is not None
        (tmp_path / "manifest.json.part").unlink()
        (tmp_path / "a.csv.done.part").write_text("of the next day")
        assert inbox.take(single) is not None


def test_a_delivery_half_taken_is_put_aside_whole_where_a_name_is_in_use_again(
    tmp_path: Path,
) -> None:
    """Put back in part, a file would be taken in without the manifest it came with."""
    inbox = Inbox(tmp_path)
    with inbox.alone():
        half = inbox.taking / "token"
        half.mkdir()
        (half / "a.csv").write_text("a")
        (half / "manifest.json").write_text("older")
        whole = inbox.taking / "other"
        whole.mkdir()
        (whole / "b.csv").write_text("b")
        (tmp_path / "manifest.json").write_text("newer")
        assert inbox.recover() == []
    assert not (tmp_path / "a.csv").exists()
    assert (tmp_path / "b.csv").read_text() == "b"
    assert (tmp_path / "manifest.json").read_text() == "newer"
    aside = inbox.quarantine / "a.csv"
    assert (aside / "a.csv").read_text() == "a"
    assert (aside / "manifest.json").read_text() == "older"
    assert "Another file of this name" in (aside / "a.csv.why.txt").read_text()
    assert not list(inbox.taking.iterdir())


@pytest.mark.parametrize("name", ["payments.zip", "march.zip"])
@pytest.mark.parametrize("member", ["payments.csv", "in/Payments.CSV.gz"])
def test_a_zip_that_brings_what_a_manifest_names_waits_for_it(
    tmp_path: Path, name: str, member: str
) -> None:
    (tmp_path / "manifest.json").write_text('{"files": {"payments.csv": {"rows": 3}}}')
    for zipped, one in ((name, member), ("other.zip", "refunds.csv")):
        with zipfile.ZipFile(tmp_path / zipped, "w") as archive:
            archive.writestr(one, "Id\n1\n")
    (tmp_path / "broken.zip").write_text("no zip")
    found = look_at(tmp_path, 0, lambda _seconds: None)
    assert [one.names for one in found.complete] == [("broken.zip",), ("other.zip",)]
    assert found.unfinished[name] == "may be payments.csv, which manifest.json names"


@pytest.fixture(params=["links", "no links"])
def half(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A delivery of two files that a look had moved when it was killed."""
    if request.param == "no links":

        def refuse(source: Path, *_: Any, **__: Any) -> None:
            raise PermissionError(1, "Operation not permitted", str(source))

        monkeypatch.setattr(os, "link", refuse)
    with Inbox(tmp_path).alone():
        half = tmp_path / ".recon" / "taking" / "token"
        half.mkdir()
    (half / "a.csv").write_text("a")
    (half / "a.csv.done").write_text("done")
    return half


def names_in(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()} - {".recon", "archive", "quarantine"}


def test_a_delivery_is_put_back_with_links_and_without(half: Path, tmp_path: Path) -> None:
    inbox = Inbox(tmp_path)
    with inbox.alone():
        inbox.recover()
    assert names_in(tmp_path) == {"a.csv", "a.csv.done"}
    assert not list(inbox.taking.iterdir())
    assert (tmp_path / "a.csv").stat().st_nlink == 1


def test_what_is_put_aside_is_not_in_the_inbox_too(half: Path, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("newer")
    inbox = Inbox(tmp_path)
    with inbox.alone():
        inbox.recover()
    assert (tmp_path / "a.csv").read_text() == "newer"
    assert names_in(tmp_path) == {"a.csv"}
    aside = {path.name for path in (inbox.quarantine / "a.csv").iterdir()}
    assert aside == {"a.csv", "a.csv.done", "a.csv.why.txt"}
    assert not list(inbox.taking.iterdir())


@pytest.mark.parametrize("name", ["a.csv", "a.csv.done"])
def test_a_delivery_that_arrives_while_one_is_put_back_is_not_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Whatever a move is made of, the other file is there just before it."""
    inbox = Inbox(tmp_path)
    with inbox.alone():
        half = inbox.taking / "token"
        half.mkdir()
        for one in ("a.csv", "a.csv.done"):
            (half / one).write_text("older")
        link, rename = os.link, Path.rename

        def arrive(target: Any) -> None:
            if Path(target) == tmp_path / name and not (tmp_path / name).exists():
                (tmp_path / name).write_text("newer")

        def linked(source: Any, target: Any, **terms: Any) -> None:
            arrive(target)
            link(source, target, **terms)

        def renamed(path: Path, target: Any) -> Path:
            arrive(target)
            return rename(path, target)

        monkeypatch.setattr(os, "link", linked)
        monkeypatch.setattr(Path, "rename", renamed)
        inbox.recover()
    assert (tmp_path / name).read_text() == "newer"
    assert names_in(tmp_path) == {name}
    aside = inbox.quarantine / "a.csv"
    assert {path.read_text() for path in aside.glob("*[!t]")} == {"older"}
    assert names_in(aside) == {"a.csv", "a.csv.done", "a.csv.why.txt"}


def test_a_run_killed_while_it_puts_back_leaves_nothing_twice(tmp_path: Path) -> None:
    inbox = Inbox(tmp_path)
    with inbox.alone():
        half = inbox.taking / "token"
        half.mkdir()
        for name in ("a.csv.done", "a.csv"):
            (half / name).write_text("a")
        (tmp_path / "a.csv.done").hardlink_to(half / "a.csv.done")
        inbox.recover()
    assert names_in(tmp_path) == {"a.csv", "a.csv.done"}
    assert not [*inbox.quarantine.iterdir(), *inbox.taking.iterdir()]
