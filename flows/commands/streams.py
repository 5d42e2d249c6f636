"""Standard streams of a command, which may be closed, full, or left by their reader."""

import codecs
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from io import TextIOWrapper
from typing import Any, TextIO, cast

from connectors.printable import printable

UTF8 = "utf-8"
NARROW, WIDE = 10, 10_000
"""Columns of the least and the widest output; rich does not come to an end in one or two."""


def _by_number(error: UnicodeError) -> tuple[str, int]:
    """A sign as JSON escapes it, which not every escape of Python is: --json stays JSON."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    units = error.object[error.start : error.end].encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4)), error.end


BY_NUMBER = "by number"
codecs.register_error(BY_NUMBER, _by_number)


class Output:
    """A standard stream that nobody may read any more: then nobody has to be told any more.

    The exit code is that of the work: a reader that has seen enough changes nothing about it. What
    `must` arrive is a result, and its loss on a full disk is an error; a message to a person is
    not.
    """

    def __init__(self, stream: TextIO, *, must: bool) -> None:
        self.stream = stream
        self._lost = BrokenPipeError if must else OSError
        if isinstance(stream, TextIOWrapper):
            # A sign that this terminal or file has not is shown by its number, and so is a byte of
            # a file's name that is no text.
            stream.reconfigure(errors=BY_NUMBER)

    def write(self, text: str) -> int:
        """Write, unless the reader has left."""
        try:
            return self.stream.write(text)
        except self._lost:
            self.leave()
            return len(text)

    def flush(self) -> None:
        """Hand over what was written, unless the reader has left."""
        try:
            self.stream.flush()
        except self._lost:
            self.leave()

    def leave(self) -> None:
        """Send what is still to come, and what is kept to be tried again at the end, nowhere."""
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, self.stream.fileno())
        os.close(nowhere)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


def tell(text: str) -> None:
    """Write a line to standard error: what was typed or delivered stays on it."""
    line = printable(text).replace("\n", "\\n")
    sys.stderr.write(f"recon: {line}\n")


@contextmanager
def standard_streams() -> Iterator[None]:
    """Within, standard output and error can be written to, whatever they are."""
    _open_closed_ones()
    _forget_no_width()
    out, err = Output(sys.stdout, must=True), Output(sys.stderr, must=False)
    with redirect_stdout(cast("TextIO", out)), redirect_stderr(cast("TextIO", err)):
        try:
            yield
        finally:
            # The interpreter would try again when it ends, and change the exit code.
            try:
                out.flush()
            except OSError:
                out.leave()
            err.flush()


def _forget_no_width() -> None:
    """Take a width that none has for none: whoever prints a table would fail at it."""
    columns = os.environ.get("COLUMNS", "")
    number = (
        int(columns)
        if columns.isascii() and columns.isdigit() and len(columns) < len(str(WIDE))
        else 0
    )
    if number < NARROW:
        os.environ.pop("COLUMNS", None)


def _open_closed_ones() -> None:
    """Open the standard streams that were closed when the program began, as ones with nothing.

    The next file or connection would have their number otherwise, and what a library or another
    process writes to standard error would go there.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            nowhere = os.open(os.devnull, os.O_RDWR)  # It takes the lowest number that is free.
            os.set_inheritable(nowhere, True)
            setattr(sys, name, open(nowhere, mode, encoding=UTF8, closefd=False))  # noqa: SIM115
