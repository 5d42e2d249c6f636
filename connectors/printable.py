"""Text from outside that is to be read by people."""

from unicodedata import category


def printable(text: str) -> str:
    """A text whose signs without a shape are escaped, but for blanks and line ends."""
    return "".join(
        sign
        if sign.isprintable() or sign == "\n" or category(sign) == "Zs"
        else sign.encode("unicode_escape").decode()
        for sign in text
    )
