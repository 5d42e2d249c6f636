"""The text of pages that a browser printed."""

import re
import zlib

_OBJECT = re.compile(rb"\n(\d+) 0 obj\n(.*?)\nendobj", re.DOTALL)
_RANGE = re.compile(r"<([0-9A-F]{4})> <([0-9A-F]{4})>(?: <([0-9A-F]{4})>)?")
_DRAWN = re.compile(r"/(F\d+) [\d.]+ Tf|<([0-9A-F]+)> Tj")


def text_of_page(pdf: bytes, number: int) -> str:
    """What a page says, in the order in which it is drawn and without blanks."""
    objects = {int(at): body for at, body in _OBJECT.findall(pdf)}
    pages = [body for _, body in sorted(objects.items()) if body.startswith(b"<</Type /Page\n")]
    page = pages[number - 1]
    fonts = {
        name.decode(): _letters(objects, objects[int(at)])
        for name, at in re.findall(rb"/(F\d+) (\d+) 0 R", page)
    }
    letters: dict[str, str] = {}
    told = []
    for font, glyphs in _DRAWN.findall(_stream(objects, page, b"Contents")):
        letters = fonts[font] if font else letters
        told += [letters.get(glyphs[at : at + 4], "") for at in range(0, len(glyphs), 4)]
    return "".join("".join(told).split())


def _stream(objects: dict[int, bytes], body: bytes, name: bytes) -> str:
    at = re.search(rb"/%s (\d+) 0 R" % name, body)
    assert at, body
    packed = objects[int(at[1])].partition(b" stream\n")[2].removesuffix(b"\nendstream")
    return zlib.decompress(packed).decode("latin-1")


def _letters(objects: dict[int, bytes], font: bytes) -> dict[str, str]:
    """What each glyph of a font stands for."""
    found = {}
    for line in _stream(objects, font, b"ToUnicode").splitlines():
        if one := _RANGE.fullmatch(line):
            first, last, begin = one[1], one[2] if one[3] else one[1], one[3] or one[2]
            for place in range(int(last, 16) - int(first, 16) + 1):
                found[f"{int(first, 16) + place:04X}"] = chr(int(begin, 16) + place)
    return found
