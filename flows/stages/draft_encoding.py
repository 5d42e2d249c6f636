"""The encoding of a text, as a draft of a profile says it."""

import re

from connectors.files.content import byte_order_mark, shown, unmarked_utf16

PLAIN = "cp1252"
WIDE = ("cp932", "gbk", "cp949", "cp950")
"""Encodings whose signs have one byte or two."""
PAIRS = 3
"""Of so many runs of such bytes one, at the least, has several: a second byte may be ASCII."""
_FOREIGN = re.compile(rb"[\x80-\xff]+")


def encoding_of(head: bytes) -> tuple[str, tuple[str, ...]]:
    """The encoding of a text that begins so, and the lines of a profile that say it."""
    _, marked = byte_order_mark(head)
    if marked:
        return marked, ()
    if wide := unmarked_utf16(head):
        return wide, (
            f'encoding = "{wide}"  # ? It looks like it, and no byte-order mark says so.',
        )
    lines = head[: head.rfind(b"\n") + 1 or None]
    try:
        lines.decode()
    except UnicodeDecodeError as error:
        first, *others = _fitting(lines)
        line = lines[lines.rfind(b"\n", 0, error.start) + 1 : error.start + 10]
        return first, (
            f'encoding = "{first}"  # ? It is not UTF-8. Is this right: {_shown(line, first)}',
            *(f'#   or "{one}": {_shown(line, one)}' for one in others),
        )
    return "utf-8", ()


def _fitting(text: bytes) -> list[str]:
    """The encodings a text may be in that is not UTF-8, the likely one first."""
    runs = _FOREIGN.findall(text)
    # Nearly all bytes are signs of one byte; those of two stand together.
    in_pairs = sum(len(run) > 1 for run in runs) * PAIRS > len(runs)
    plain = [PLAIN] if _decodes(text, PLAIN) else []
    wide = [one for one in WIDE if _decodes(text, one)] if in_pairs or not plain else []
    return [*wide, *plain] or [PLAIN]


def _decodes(text: bytes, encoding: str) -> bool:
    try:
        text.decode(encoding)
    except UnicodeDecodeError:
        return False
    return True


def _shown(line: bytes, encoding: str) -> str:
    return shown(line.decode(encoding, "ignore")[-20:], 60)
