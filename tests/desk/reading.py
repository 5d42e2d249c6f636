"""What whoever cannot see a page, or has it on paper, needs of it: read from its HTML."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from itertools import pairwise

VOID = {"input", "img", "br", "hr", "meta", "link", "source", "wbr", "col"}
TYPED = {"input", "select", "textarea"}


@dataclass
class Element:
    """An element of a page, with what is inside it."""

    tag: str
    given: dict[str, str] = field(default_factory=dict)
    inside: list["Element"] = field(default_factory=list)
    around: "Element | None" = None
    own: str = ""

    @property
    def text(self) -> str:
        """All that is read of it."""
        return " ".join(f"{self.own} {' '.join(one.text for one in self.inside)}".split())

    def every(self, *tags: str) -> Iterator["Element"]:
        """Those inside it, in the order of the page."""
        for one in self.inside:
            if one.tag in tags:
                yield one
            yield from one.every(*tags)

    def within(self, tag: str) -> bool:
        """Whether it is inside such an element."""
        return self.around is not None and (self.around.tag == tag or self.around.within(tag))

    @property
    def grouped(self) -> bool:
        """Whether it is inside a group that has a name."""
        return self.around is not None and (
            {"role", "aria-labelledby"} <= self.around.given.keys() or self.around.grouped
        )


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.at = self.page = Element("page")

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        new = Element(tag, {name: value or "" for name, value in attrs}, around=self.at)
        self.at.inside.append(new)
        if tag not in VOID:
            self.at = new

    def handle_endtag(self, tag: str) -> None:
        if self.at.tag == tag or self.at.within(tag):
            while self.at.tag != tag and self.at.around:
                self.at = self.at.around
            self.at = self.at.around or self.page

    def handle_data(self, data: str) -> None:
        self.at.own += data


def page_of(html: str) -> Element:
    """A page as its elements."""
    reader = _Reader()
    reader.feed(html)
    return reader.page


def wrongs(html: str) -> list[str]:
    """What a page lacks for whoever has it read out to them, or goes through it by keys."""
    page = page_of(html)
    return [
        *_frame(page),
        *_headings(page),
        *_named(page),
        *_pictures_and_links(page),
        *_groups(page),
        *_tables(page),
    ]


def _frame(page: Element) -> Iterator[str]:
    (html,) = page.every("html")
    if html.given.get("lang") != "en":
        yield "no language"
    if len([*page.every("main")]) != 1:
        yield "no one main part"
    if not next(page.every("title")).text.removesuffix("· recon").strip():
        yield "no title"
    if next(page.every("a")).given.get("href") != "#main":
        yield "the first link does not skip to the page"
    ids = Counter(one.given["id"] for one in _all(page) if "id" in one.given)
    yield from (f"the id {name} stands twice" for name, count in ids.items() if count > 1)
    named = ("for", "aria-describedby", "aria-labelledby", "aria-controls")
    for one in _all(page):
        for name in named:
            for meant in one.given.get(name, "").split():
                if meant not in ids:
                    yield f"{name}={meant} is nothing"


def _headings(page: Element) -> Iterator[str]:
    levels = [int(one.tag[1]) for one in page.every("h1", "h2", "h3", "h4", "h5", "h6")]
    if levels[:1] != [1] or levels.count(1) != 1:
        yield f"headings {levels} are not below one"
    for before, after in pairwise(levels):
        if after > before + 1:
            yield f"headings {levels} leave one out"


def _named(page: Element) -> Iterator[str]:
    labels = {one.given["for"]: one.text for one in page.every("label") if "for" in one.given}
    for one in page.every(*TYPED):
        if one.given.get("type") in ("hidden", "submit"):
            continue
        if not (
            one.given.get("aria-label")
            or one.given.get("aria-labelledby")
            or labels.get(one.given.get("id", ""))
            or one.within("label")
        ):
            yield f"{one.tag} {one.given.get('name')} has no name"
    for one in page.every("button", "a", "summary"):
        if not (one.text or one.given.get("aria-label")):
            yield f"{one.tag} {one.given} has no name"
    for one in _all(page):
        if one.given.get("tabindex", "0") not in ("0", "-1"):
            yield f"{one.tag} is out of the order of keys"


def _pictures_and_links(page: Element) -> Iterator[str]:
    for one in page.every("img", "svg"):
        names = {"alt", "aria-label", "aria-labelledby", "aria-hidden"}
        if not (names & one.given.keys()):
            yield f"{one.tag} says nothing"
        if one.given.get("role") == "img" and next(one.every("a"), None):
            yield f"{one.tag} is one picture, and has links that nobody is told of"
    for one in page.every("a"):
        if "download" in one.given:
            yield f"{one.given['href']} saves the page that refuses it, or asks for a login"


def _groups(page: Element) -> Iterator[str]:
    for form in page.every("form"):
        boxes = [one for one in form.every("input") if one.given.get("type") == "checkbox"]
        several = Counter(one.given.get("name") for one in boxes if not one.given.get("aria-label"))
        for one in boxes:
            if several[one.given.get("name")] > 1 and not one.grouped:
                yield f"the boxes {one.given.get('name')} have no name together"


def _tables(page: Element) -> Iterator[str]:
    for table in page.every("table"):
        heads = [*table.every("th")]
        first = next(table.every("tr"), None)
        if not heads:
            yield f"a table without headers: {table.text[:60]}"
        if not (
            next(table.every("caption"), None)
            or {"aria-label", "aria-labelledby"} & table.given.keys()
        ):
            yield f"a table without a name: {table.text[:60]}"
        if first and any(
            not one.text and not one.given.get("aria-label") for one in first.every("th")
        ):
            yield f"a column without a name: {first.text[:60]}"
        for one in table.every("td"):
            bare = {"span", "br", "small"} >= {of.tag for of in _all(one)}
            shown = one.own or any(of.tag != "span" or of.own or of.inside for of in one.inside)
            if "data-of" in one.given and shown and bare and not one.text:
                yield f"a cell of nothing that a telephone shows: {one.given['data-of']}"
        for one in heads:
            if one.given.get("scope") not in ("col", "row", "colgroup", "rowgroup"):
                yield f"a header of nothing: {one.text[:30]}"
                break


def _all(page: Element) -> Iterator[Element]:
    for one in page.inside:
        yield one
        yield from _all(one)
