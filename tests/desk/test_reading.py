"""Pages for whoever has them read out, goes through them by keys, holds a telephone, or paper."""

import re
from collections.abc import Callable, Iterator
from decimal import Decimal
from importlib.resources import files
from pathlib import Path

import pytest

from connectors.postgres.runs.breaks import Decision
from flows.desk.app import ADDRESSES
from flows.stages.reconcile.breaks import Chosen, decide_breaks
from flows.stages.workspace import Workspace
from schemas.life import Choice
from tests.accounts.people import ADA, ANNA, BO, OTTO, add
from tests.chromium import Tab, needed, opened
from tests.chromium import browser as chromium  # noqa: F401 -- the fixture.
from tests.desk.browser import Browser
from tests.desk.reading import wrongs
from tests.desk.test_batches import bring
from tests.desk.test_clicked import log_in
from tests.governance.runs import found, ids, reconcile
from tests.stages.payments import line

New = Callable[[], Browser]
PAGES = [one for one in ADDRESSES if "GET" in one.methods]
DECIDE = "/runs/1/decide?break={id}&what="
MORE = [DECIDE + what for what in ("accept", "assign", "comment", "resolve")]
LONG = pytest.mark.long
ADDRESS = f"https://files.example.com/{'0123456789abcdef' * 12}"
"""Of nearly 200 signs, and nowhere a blank."""
WIDE = [
    "/",
    "/runs/1",
    "/runs/1/breaks",
    "/runs/1/sign",
    "/acceptance",
    "/batches/1",
    "/people",
    "/trail",
]


@pytest.fixture
def place(workspace: Workspace, tmp_path: Path) -> Workspace:
    """A batch with a row in error, runs with a break, people."""
    bring(workspace, tmp_path / "a.csv", line(1), line(2, amount="x"))
    reconcile(workspace, found("4711"))
    reconcile(workspace, found("4711"), scope="everything")
    reconcile(workspace, found("4711"), scope="everything")
    add(workspace, ADA, ANNA, BO, OTTO)
    return workspace


def path_of(path: str) -> str:
    (there,) = ids(found("4711"))
    for name, value in {"{number:int}": "1", "{id}": there, "{name:path}": "report.html"}.items():
        path = path.replace(name, value)
    return path


def html_of(page: Browser, path: str) -> str | None:
    told = page.open(path_of(path)).answer
    assert told is not None
    is_page = told.headers.get("content-type", "").startswith("text/html")
    return told.text if is_page and "/files/" not in path else None


@pytest.mark.long
@pytest.mark.parametrize(
    "who", ["anna", *(pytest.param(who, marks=LONG) for who in ("nobody", "ada", "bo", "otto"))]
)
def test_a_page_can_be_read_out_and_gone_through_by_keys(
    place: Workspace, browser: New, who: str
) -> None:
    """One heading above all, a name for every field, table and link, and headers for columns."""
    page = browser() if who == "nobody" else browser().log_in(who)
    found_wrong = {}
    for path in [*(one.path for one in PAGES), *MORE, "/runs/99", "/trail?since=x"]:
        html = html_of(page, path)
        if html and (wrong := wrongs(html)):
            found_wrong[path] = wrong
    assert found_wrong == {}


@pytest.mark.long
def test_what_is_refused_is_read_out(place: Workspace, browser: New) -> None:
    page = browser().log_in("anna")
    for address in PAGES:
        html = html_of(page, address.path.replace("{number:int}", "999"))
        if html and page.status >= 400:
            assert 'role="alert"' in html, address.path


def test_the_law_finds_what_is_wrong() -> None:
    html = (
        '<html lang="en"><title>x</title><a href="#main">Skip</a><main id="main"><h1>A</h1><h3>B'
        '</h3><input name="c"><label for="d">D</label><table><tr><td>1</td>'
        '<td data-of="T"> </td></tr></table>'
        '<a href="/"></a><p id="e" tabindex="3"></p><p id="e"></p><a href="/f" download>F</a>'
        '<svg role="img" aria-label="S"><a href="/">1</a></svg><form><label><input name="g" '
        'type="checkbox">1</label><label><input name="g" type="checkbox">2</label></form>'
        "</main></html>"
    )
    told = " | ".join(wrongs(html))
    for what in (
        "leave one out", "input c has no name", "for=d is nothing", "without headers",
        "a table without a name", "a {'href': '/'} has no name", "id e stands twice",
        "order of keys", "saves the page that refuses it", "links that nobody is told of",
        "the boxes g have no name together", "a telephone shows: T",
    ):  # fmt: skip
        assert what in told


def test_what_is_replaced_each_second_keeps_the_focus() -> None:
    """By its id; whoever goes by keys would be back at the top of the page."""
    _, _, again = (
        (files("flows.desk") / "templates/job.html.jinja").read_text().partition('id="job"')
    )
    focused = re.findall(r"<(?:a|button)\b[^>]*>", again)
    assert len(focused) > 3
    assert [one for one in focused if " id=" not in one] == []


def contrast(*colours: str) -> float:
    """Of two colours of a browser, as WCAG 2.2 has it."""
    light = []
    for colour in colours:
        parts = [int(one) / 255 for one in re.findall(r"\d+", colour)[:3]]
        even = [one / 12.92 if one <= 0.04045 else ((one + 0.055) / 1.055) ** 2.4 for one in parts]
        light.append(0.05 + 0.2126 * even[0] + 0.7152 * even[1] + 0.0722 * even[2])
    return max(light) / min(light)


@pytest.fixture
def tab(chromium: str) -> Iterator[Tab]:  # noqa: F811
    with opened(chromium) as tab:
        yield tab


@pytest.mark.long
@pytest.mark.parametrize("paths", [["/runs/1/breaks"], pytest.param(WIDE, marks=LONG)])
@needed
def test_pages_fit_a_telephone_show_the_focus_and_have_no_buttons_on_paper(
    place: Workspace, desk: str, tab: Tab, paths: list[str]
) -> None:
    log_in(tab, desk, "anna")

    def seen(selector: str) -> int:
        every = f"[...document.querySelectorAll({selector!r})]"
        return int(tab.value(f"{every}.filter(one => one.checkVisibility()).length"))

    for path in paths:
        tab.ask("Emulation.setEmulatedMedia", media="screen")
        tab.size(320)  # Of a small telephone, or of a screen on which all is four times as large.
        tab.open(desk + path)
        assert tab.value("document.documentElement.scrollWidth") <= 320, path
        rows = seen("tbody tr")
        tab.ask("Emulation.setEmulatedMedia", media="print")
        tab.size(700)
        assert tab.value("document.documentElement.scrollWidth") <= 700, path
        assert seen("tbody tr") == rows, path
        assert seen("nav, button, .button, input, select, textarea, form label") == 0, path
        assert "Shown to Anna Meyer on" in tab.text
    tab.ask("Emulation.setEmulatedMedia", media="screen")
    for _ in ("skip", "brand"):
        for kind in ("keyDown", "keyUp"):
            tab.ask("Input.dispatchKeyEvent", type=kind, key="Tab", windowsVirtualKeyCode=9)
    ring = tab.value("getComputedStyle(document.activeElement).outlineColor")
    ground = tab.value("getComputedStyle(document.querySelector('.bar')).backgroundColor")
    assert contrast(ring, ground) >= 3, "where the focus is can be seen"
    tab.ask("Emulation.setEmulatedMedia", media="print")
    tab.open(f"{desk}/runs/1/breaks")
    assert "Breaks 1 to 1 of 1" in tab.text, "whoever reads it knows whether it is all"


@pytest.mark.long
@pytest.mark.parametrize(
    "paths",
    [
        ["/batches/1", "/runs/1/breaks"],
        pytest.param(
            ["/", "/batches/1/rejects", "/trail", "/runs/1/breaks/{id}", "/runs/1/sign", *MORE],
            marks=LONG,
        ),
    ],
)
@needed
def test_what_has_no_blank_pushes_nothing_out_of_the_window(
    workspace: Workspace, desk: str, tab: Tab, tmp_path: Path, paths: list[str]
) -> None:
    """An address in a cell, a file of a long name, a link to a ticket as the reason."""
    name = ADDRESS.replace("/", "-")
    bring(workspace, tmp_path / f"{name}.csv", line(1), line(2, amount=ADDRESS))
    breaks = found(ADDRESS, expected=ADDRESS, found=ADDRESS, note=ADDRESS, file=f"{name}.csv")
    reconcile(workspace, breaks, scope=f'{{"feeds":["{ADDRESS}"]}}')
    (there,) = ids(breaks)
    for what, owner in ((Choice.COMMENT, None), (Choice.ASSIGN, ADDRESS)):
        told = Decision(what, ADDRESS, "Anna Meyer", owner=owner)
        decide_breaks(workspace, 1, Chosen((there,)), told)
    for path in paths:
        for width in (1280, 840, 680, 390):
            tab.size(width)
            tab.open(desk + path.replace("{id}", there))
            assert ADDRESS[-8:] in tab.text or "characters)" in tab.text, path
            assert tab.value("document.documentElement.scrollWidth") <= width, (path, width)


LONGEST = Decimal("-12345678901234567890.123456789012345678")
"""As many digits as a column holds."""


@pytest.mark.long(but=("paths0",))
@pytest.mark.parametrize(
    "paths", [["/runs/1/breaks"], pytest.param(["/", "/runs/1", "/runs/1/breaks/{id}", *MORE])]
)
@needed
def test_an_amount_of_many_digits_is_whole_and_pushes_nothing_out_of_the_window(
    workspace: Workspace, desk: str, tab: Tab, paths: list[str]
) -> None:
    amounts = {"amount": LONGEST.copy_abs(), "delta": LONGEST, "counted": LONGEST.copy_abs()}
    breaks = found("4711", expected="0.00", found=str(LONGEST), **amounts)
    reconcile(workspace, breaks, scope="tenants 7")
    (there,) = ids(breaks)
    for path in paths:
        for width in (1280, 840, 680, 390):
            tab.size(width)
            tab.open(desk + path.replace("{id}", there))
            assert "12345678901234567890.123456789012345678" in "".join(tab.text.split()), path
            assert tab.value("document.documentElement.scrollWidth") <= width, (path, width)


@needed
def test_what_stands_in_front_of_a_value_on_a_telephone_is_apart_from_it(
    place: Workspace, desk: str, tab: Tab
) -> None:
    log_in(tab, desk, "anna")
    tab.size(390)
    tab.open(f"{desk}/batches/1/rejects")
    name = "getComputedStyle(document.querySelector('td.wide'), '::before').display"
    assert tab.value(name) == "block"
