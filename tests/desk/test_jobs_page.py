"""Work that is started at the desk: uploads, reruns, pushes, reconciliations and undoing."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from connectors.files.incoming.uploads import uploads_folder
from connectors.postgres.accounts import Account
from flows.desk.jobs import start_here
from flows.stages.workspace import Workspace
from schemas.accounts import AccountRole
from tests.accounts.people import ADA, ANNA, CLEO, OTTO, add
from tests.desk.browser import Browser, desk_of, done_at_once, forms
from tests.desk.test_batches import TIGHT, bring
from tests.ports import own_port
from tests.push.conftest import towards
from tests.stages.payments import HEADER, line

New = Callable[[], Browser]
Rows = Callable[..., list[tuple[Any, ...]]]
TOM = Account("tom", "Tom Reyes", (AccountRole.OPERATOR,), tenants=(7,))


def csv(*lines: str) -> bytes:
    return "\n".join((HEADER, *lines, "")).encode()


def upload(
    page: Browser, *files: tuple[str, bytes], at: str = "/batches/upload", **typed: str
) -> Browser:
    """Fill in the form with files, the mark first, and send it."""
    (form,) = (
        one
        for one in forms(page.open(at).answer.text)
        if "csrf" in one["fields"] and one["action"] is None
    )
    parts = [
        (name, (None, value)) for name, value in (form["fields"] | typed).items() if name != "files"
    ]
    page.answer = page.client.post(at, files=[*parts, *(("files", one) for one in files)])
    return page


def left(workspace: Workspace) -> list[Path]:
    folder = uploads_folder(workspace.settings)
    return [*folder.iterdir()] if folder.is_dir() else []


@pytest.mark.long
def test_an_upload_is_imported_in_the_name_of_who_sent_it(
    workspace: Workspace, browser: New, rows: Rows
) -> None:
    add(workspace, ADA, OTTO)
    otto = browser().log_in("otto")
    assert upload(otto, ("a.csv", csv(line(1))), ("b.csv", csv(line(2)))).status == 200
    assert otto.answer.url.path == "/jobs/1"
    assert "Ended." in otto.text
    assert "Ordered by otto" in otto.text
    assert rows("SELECT name FROM extract ORDER BY 1") == [("a.csv",), ("b.csv",)]
    assert 'href="/batches/1"' in otto.answer.text
    assert left(workspace) == []
    assert "otto" in otto.open("/batches/1").text
    again = upload(otto, ("a.csv", csv(line(1))), ("b.csv", csv(line(2))))
    assert "This delivery was taken in batch 1" in again.text
    assert "\\n" not in again.text
    assert 'href="/batches/1"' in again.answer.text
    assert rows("SELECT count(*) FROM batch") == [(1,)]


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "kept"),
    [
        ("../../etc/x.csv", "x.csv"),
        ("..\\..\\x.csv", "x.csv"),
        ("/absolute.csv", "absolute.csv"),
        ("=cmd|'x'!A1.csv", "=cmd|'x'!A1.csv"),
        ("%2e%2e%2fx.csv", "%2e%2e%2fx.csv"),
        ("<b>bold</b>.csv", "b>.csv"),
        ("schön \u202efdc.csv", None),
        ("a" * 150 + ".csv", "a" * 150 + ".csv"),
    ],
)
def test_a_name_is_data_and_never_a_path(
    workspace: Workspace, browser: New, rows: Rows, name: str, kept: str | None
) -> None:
    page = upload(browser(), (name, csv(line(1))), by="Otto")
    assert "Ended." in page.text, page.text
    ((told,),) = rows("SELECT name FROM extract")
    assert kept is None or told == kept
    assert "\u202e" not in told
    home = workspace.settings.home
    assert not [*home.parent.glob("**/x.csv")]
    assert left(workspace) == []


REFUSED: list[tuple[list[tuple[str, bytes]], dict[str, str], str]] = [
    # the files, what is typed beside them, what is said
    ([("", b"")], {}, "No file was chosen"),
    ([("..", b"x")], {}, "A file has no name"),
    ([("a.csv", b"x"), ("x/a.csv", b"y")], {}, "Two files are called a.csv"),
    ([("a" * 300 + ".csv", b"x")], {}, "longer than 255"),
    ([("a.csv", b"x")], {"tenant": "seven"}, "tenant: has to be a whole number. Nothing"),
    ([("a.csv", b"x")], {"tenant": "9" * 12}, "tenant: has to be less than 2147483648. Nothing"),
    ([("a.csv", b"x")], {"profile": "../../x"}, "profile: cannot be written so. Nothing"),
    ([("a.csv", b"x")], {"record": "nothing"}, "has to be one of"),
    ([("a.csv", b"x")], {"by": ""}, "Fill in Your name"),
]


def test_what_is_refused_leaves_nothing_behind_and_keeps_what_was_typed(
    workspace: Workspace, browser: New, rows: Rows
) -> None:
    page = browser()
    for files, typed, said in REFUSED:
        upload(page, *files, **{"by": "Otto", "tenant": "8"} | typed)
        assert (page.status, said in page.text) == (400, True), page.text
        assert left(workspace) == [], said
        assert rows("SELECT count(*) FROM job") == [(0,)], said
        assert typed.get("by") == "" or 'value="Otto"' in page.answer.text, said


@pytest.mark.long
def test_files_and_rows_of_an_upload_are_judged_as_of_any_delivery(
    workspace: Workspace, browser: New, rows: Rows
) -> None:
    page = upload(browser(), ("a.csv", csv(line(1), line(2, amount="x"))), ("b.part", b"x"), by="O")
    assert "Ended, and something is left to do." in page.text
    assert "b.part: refused (unsupported_format)" in page.text
    assert upload(page, ("b.csv", csv(line(3, tenant=8))), tenant="7", by="O").status == 200
    assert rows("SELECT count(*) FROM payment") == [(1,)]
    assert "profile" not in page.open("/batches/upload").answer.text
    folder = workspace.settings.home / "profiles"
    folder.mkdir()
    (folder / "bank.toml").write_text('feed = "bank"\n')
    assert upload(page, ("c.csv", csv(line(4))), profile="bank", by="O").status == 200
    assert rows("SELECT feed FROM batch WHERE id = 3") == [("bank",)]


@pytest.mark.long
def test_corrected_rows_come_again_as_a_batch_of_their_own(
    workspace: Workspace, browser: New, rows: Rows, tmp_path: Path
) -> None:
    batch = bring(workspace, tmp_path / "a.csv", line(1), line(2, amount="x"))
    page = browser().open(f"/batches/{batch}")
    assert "Upload corrected rows" in page.text
    upload(page, ("a.csv", csv(line(2))), at=f"/batches/{batch}/correct", by="Otto")
    assert "Import corrected rows Ended." in page.text
    assert rows("SELECT corrects FROM batch ORDER BY id") == [(None,), (batch,)]
    assert rows("SELECT count(*) FROM payment") == [(2,)]
    assert "Upload corrected rows" not in page.open(f"/batches/{batch}").text


def test_a_refused_file_comes_again_as_a_correction_by_its_name(
    workspace: Workspace, browser: New
) -> None:
    page = upload(browser(), ("a.csv", csv(line(1)).replace(b"PaidAmount", b"Paid")), by="Otto")
    page.open("/batches/1")
    assert "Next: Upload 1 refused file, put right, under its name" in page.text
    assert ("Upload corrected files" in page.text, "as they are" in page.text) == (True, False)
    upload(page, ("a.csv", csv(line(1))), at="/batches/1/correct", by="Otto")
    assert "Ended." in page.text
    page.open("/batches/1")
    assert "Next:" not in page.text
    assert "Upload corrected" not in page.text


@pytest.mark.long
def test_a_correction_says_whether_it_may_change_records_of_others(
    workspace: Workspace, browser: New, rows: Rows, tmp_path: Path
) -> None:
    first = bring(workspace, tmp_path / "a.csv", line(1, amount="x"))
    bring(workspace, tmp_path / "b.csv", line(9))
    wrong = f"ReconRow,{HEADER}\n1:1,{line(9, amount='77')}\n".encode()
    page, at = browser(), f"/batches/{first}/correct"
    assert "Change records of other deliveries" in page.open(at).text
    upload(page, ("a.csv", wrong), at=at, by="Otto")
    assert "Ended, and something is left to do." in page.text
    assert rows('SELECT "PaidAmount"::text FROM payment') == [("10.50",)]
    again = wrong.replace(b"1:1", b"3:1")
    upload(page, ("a.csv", again), at="/batches/3/correct", by="Otto", change_records="1")
    assert rows('SELECT "PaidAmount"::text FROM payment') == [("77",)]


@pytest.mark.long
def test_buttons_ask_for_what_makes_sense_as_a_batch_is(
    workspace: Workspace, browser: New, tmp_path: Path
) -> None:
    complete = bring(workspace, tmp_path / "a.csv", line(1))
    wrong = bring(workspace, tmp_path / "b.csv", line(2), line(3, amount="x"))
    held = bring(workspace, tmp_path / "c.csv", line(4), line(5, amount="x"), terms=TIGHT)
    page = browser()

    def work(batch: int) -> list[str]:
        text = page.open(f"/batches/{batch}").answer.text
        return [one["fields"]["kind"] for one in forms(text) if one["action"] == "/jobs"] + [
            "undo" for _ in [1] if f"/batches/{batch}/undo" in text
        ]

    assert work(complete) == ["undo"]
    assert work(wrong) == ["correct", "undo"]
    assert work(held) == []
    page.send(f"/batches/{held}/decide", what="release", by="Otto", reason="agreed")
    assert work(held) == ["correct", "undo"]


@pytest.mark.long
def test_a_reconciliation_is_made_again_of_the_same_scope_by_the_same_rules(
    workspace: Workspace, browser: New, rows: Rows, tmp_path: Path
) -> None:
    bring(workspace, tmp_path / "a.csv", line(1))
    page = browser().open("/")
    page.send("/jobs", by="Otto")
    assert "Run 1" in page.text
    page.open("/runs/1").send("/jobs", by="Otto")
    assert 'href="/runs/2"' in page.answer.text
    found = rows("SELECT scope_hash, rules_hash FROM reconciliation")
    assert (len(found), len({*found})) == (2, 1)
    assert rows("SELECT by FROM event WHERE what = 'reconciled'") == [("Otto",)] * 2


def test_an_undo_shows_what_it_changes_and_takes_a_reason(
    workspace: Workspace, browser: New, rows: Rows, tmp_path: Path
) -> None:
    bring(workspace, tmp_path / "a.csv", line(1), line(2))
    bring(workspace, tmp_path / "b.csv", line(1, amount="11.00"))
    page = browser().open("/batches/1/undo", look=1)
    assert "Payment 2 0" in page.text
    assert "batch 2 has since written 1 of its" in page.text
    page.open("/batches/2/undo", look=1)
    assert "Payment 0 1" in page.text
    assert "Nothing prevents it as of now." in page.text
    assert page.send("/batches/2/undo", by="Otto", reason=" ").status == 400
    assert "Fill in Reason" in page.text
    page.send("/batches/2/undo", by="Otto", reason="wrong month")
    assert "Batch 2 is undone: 1 restored." in page.text
    assert rows("SELECT by, reason FROM event WHERE what = 'undo'") == [("Otto", "wrong month")]
    assert "undone already" in page.open("/batches/2/undo").text


@pytest.mark.long
def test_who_is_no_operator_sees_jobs_and_asks_for_none(
    workspace: Workspace, browser: New, rows: Rows, tmp_path: Path
) -> None:
    bring(workspace, tmp_path / "a.csv", line(1), line(2, amount="x"))
    add(workspace, ADA, ANNA, CLEO, OTTO, TOM)
    otto = browser().log_in("otto")
    upload(otto, ("b.csv", csv(line(3))))
    for name in ("anna", "cleo", "ada"):
        page = browser().log_in(name)
        for path in ("/", "/batches", "/batches/1", "/jobs", "/jobs/1"):
            told = page.open(path)
            assert told.status == 200
            assert not [one for one in forms(told.answer.text) if one["action"] == "/jobs"], path
        assert "takes the role operator" in page.open("/batches/upload").text
        mark = forms(page.answer.text)[0]["fields"]["csrf"]
        for path, typed in (
            ("/jobs", {"kind": "push"}),
            ("/jobs/1", {}),
            ("/batches/1/undo", {"reason": "x", "seen": "1"}),
        ):
            told = page.client.post(path, data={"csrf": mark} | typed)
            assert told.status_code in (403, 409), (path, told.text)
        sent = page.client.post(
            "/batches/upload",
            files=[("csrf", (None, mark)), ("files", ("a.csv", csv(line(9))))],
        )
        assert (sent.status_code, "takes the role operator" in sent.text) == (403, True)
    assert rows("SELECT count(*) FROM job") == [(1,)]
    tom = browser().log_in("tom")
    assert "No job that you may see was ordered yet." in tom.open("/jobs").text
    assert tom.open("/jobs/1").status == 404
    assert upload(tom, ("c.csv", csv(line(4))), tenant="8").status == 403
    assert "tenants 7 alone" in tom.text
    assert upload(tom, ("c.csv", csv(line(4)))).status == 200, "the only tenant is chosen"
    assert "Ended" in tom.text
    assert left(workspace) == []


def test_a_job_that_could_not_run_is_started_again(
    workspace: Workspace, browser: New, rows: Rows
) -> None:
    page = browser().open("/jobs")
    page.send("/jobs", kind="reconcile", run="9", by="Otto")
    assert "It could not run." in page.text
    page.send("/jobs/1", by="Otto")
    assert "There is no reconciliation 9" in page.text
    assert [what for (what,) in rows("SELECT what FROM event ORDER BY id")] == [
        "job ordered", "job ended", "job ordered again", "job ended",
    ]  # fmt: skip


def test_a_job_whose_batch_is_applied_does_not_say_that_it_could_not_run(
    workspace: Workspace, rows: Rows
) -> None:
    """The service is not there: what was delivered is in the database, and waits to be sent."""
    with desk_of(towards(workspace, f"http://127.0.0.1:{own_port()}")) as url:
        page = Browser(url)
        upload(page, ("a.csv", csv(line(1))), by="Otto", push="1")
        assert "It could not go on. No connection to 127.0.0.1" in page.text
        assert 'href="/batches/1"' in page.answer.text
        assert "Could not go on" in page.open("/jobs").text
        page.client.close()
    assert rows("SELECT count(*) FROM payment") == [(1,)]


@pytest.mark.long
def test_a_job_that_no_process_took_is_started_from_its_page(
    workspace: Workspace, rows: Rows
) -> None:
    begun: list[int] = []

    def start(place: Workspace, number: int) -> None:
        begun.append(number)
        if len(begun) == 1:
            raise OSError("no process can be started")
        done_at_once(place, number)

    with desk_of(workspace, start=start) as url:
        page = Browser(url)
        upload(page, ("a.csv", csv(line(1))), by="Otto")
        assert "It waits for a process whose database account may run" in page.text
        assert "Start it now" in page.text
        page.send("/jobs/1")
        assert "Ended." in page.text
        assert "Start it" not in page.text
        page.client.close()
    ordered = rows("SELECT by FROM event WHERE what LIKE 'job ordered%'")
    assert ordered == [("Otto",)], "it is not ordered again"
    assert rows("SELECT count(*) FROM payment") == [(1,)]


def test_a_desk_that_loads_nothing_orders_and_somebody_else_does_it(
    workspace: Workspace, desk_as: Callable[[str], str], controller: str
) -> None:
    page = Browser(desk_as(controller))
    upload(page, ("a.csv", csv(line(1))), by="Otto")
    assert "It waits for a process whose database account may run" in page.text
    assert "whose database account may run <code>recon import</code>" in page.answer.text
    assert 'hx-trigger="every 1s"' in page.answer.text
    assert "Start it" not in page.text, "it would not"
    page.client.close()


@pytest.mark.long
def test_a_job_goes_on_in_a_process_of_its_own(
    workspace: Workspace, rows: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed in the middle it has stopped; started again it comes to its end."""

    def settled(page: Browser, *words: str) -> bool:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            if any(word in page.open("/jobs/1").text for word in words):
                return True
            time.sleep(0.2)
        return False

    with desk_of(workspace, start=start_here) as url:
        page = Browser(url)
        monkeypatch.setenv("CRASH_AT", "apply-chunk")
        upload(page, ("a.csv", csv(line(1))), by="Otto")
        assert settled(page, "Stopped.")
        monkeypatch.delenv("CRASH_AT")
        page.send("/jobs/1", by="Otto")
        assert settled(page, "Ended.")
        page.client.close()
    assert rows("SELECT count(*) FROM payment") == [(1,)]


@pytest.mark.long
def test_headers_of_a_part_are_bounded_before_anything_is_kept(
    workspace: Workspace, browser: New
) -> None:
    page = browser().open("/batches/upload")
    for part in (b"X-Long: " + b"x" * 200_000, b"\r\n".join(b"X-%d: 1" % n for n in range(200))):
        body = b'--b\r\nContent-Disposition: form-data; name="csrf"\r\n' + part + b"\r\n\r\nx\r\n"
        kind = {"Content-Type": "multipart/form-data; boundary=b"}
        told = page.client.post("/batches/upload", content=body + b"--b--\r\n", headers=kind)
        assert told.status_code == 400, told.text
    assert left(workspace) == []


def test_an_origin_that_is_none_is_not_ours(browser: New) -> None:
    page = browser().open("/batches")
    for origin in ("http://[", "null", "http://elsewhere", "x"):
        told = page.client.post("/jobs", data={"kind": "push"}, headers={"Origin": origin})
        assert told.status_code == 403, origin
