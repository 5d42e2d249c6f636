"""Text from outside, made readable for people."""

from unicodedata import category


def printable(text: str) -> str:
    """A text whose unprintable characters are escaped, except blanks and line ends."""
    if text.isprintable():
        return text
    return "".join(
        sign if sign == "\n" or category(sign) == "Zs" else _escaped(sign) for sign in text
    )


def shown(text: str, length: int = 200) -> str:
    """A text for one line of a message: no control, bidirectional or lone surrogate signs."""
    whole = "".join(map(_escaped, text))
    return whole if len(whole) <= length else f"{whole[:length]}..."


def _escaped(sign: str) -> str:
    return sign if sign.isprintable() else sign.encode("unicode_escape").decode()
