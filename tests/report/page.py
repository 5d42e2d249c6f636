"""A page read back with the standard parser: its tags, its text, its tables."""

from html.parser import HTMLParser

VOID = {"meta", "br", "wbr", "rect"}


class Page(HTMLParser):
    """`tags` as (name, attributes), `texts` outside the style, `tables` as rows of cell texts."""

    def __init__(self, source: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.tables: list[list[list[str]]] = []
        self.style = ""
        self.open: list[str] = []
        self.feed(source)
        self.close()
        assert not self.open, f"never closed: {self.open}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in ("td", "th"):
            self.tables[-1][-1].append("")
        elif tag in ("small", "br") and self._cell:
            self.tables[-1][-1][-1] += "\n"

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] == "style":
            self.style += data
            return
        self.texts.append(data)
        if self._cell:
            self.tables[-1][-1][-1] += data

    @property
    def _cell(self) -> bool:
        return "td" in self.open or "th" in self.open
