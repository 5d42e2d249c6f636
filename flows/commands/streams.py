"""Standard streams of a command, which may be closed, full, or abandoned by their reader."""

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
"""The least and the greatest width of output; rich never ends in one or two columns."""


def _by_number(error: UnicodeError) -> tuple[str, int]:
    """Escape a character like JSON, unlike some escapes of Python, so that --json stays JSON."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    units = error.object[error.start : error.end].encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4)), error.end


BY_NUMBER = "by number"
codecs.register_error(BY_NUMBER, _by_number)


class Output:
    """A standard stream whose reader may leave, after which output is dropped.

    The exit code is that of the work, which a satisfied reader does not change. With `must`, output
    is a result, and losing it on a full disk is an error; a message to a person may be lost.
    """

    def __init__(self, stream: TextIO, *, must: bool) -> None:
        self.stream = stream
        self._lost = BrokenPipeError if must else OSError
        if isinstance(stream, TextIOWrapper):
            # Characters the terminal or file cannot show appear as numbers, and so do bytes of a
            # file name that are not text.
            stream.reconfigure(errors=BY_NUMBER)

    def write(self, text: str) -> int:
        """Write, unless the reader has left."""
        try:
            return self.stream.write(text)
        except self._lost:
            self.leave()
            return len(text)

    def flush(self) -> None:
        """Flush what was written, unless the reader has left."""
        try:
            self.stream.flush()
        except self._lost:
            self.leave()

    def leave(self) -> None:
        """Send further output, and what is buffered for a last attempt, to nowhere."""
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, self.stream.fileno())
        os.close(nowhere)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


def tell(text: str) -> None:
    """Write a line to standard error; typed or delivered text cannot leave that line."""
    line = printable(text).replace("\n", "\\n")
    sys.stderr.write(f"recon: {line}\n")


@contextmanager
def standard_streams() -> Iterator[None]:
    """Within the block, standard output and error can be written to in any case."""
    _open_closed_ones()
    _forget_no_width()
    out, err = Output(sys.stdout, must=True), Output(sys.stderr, must=False)
    with redirect_stdout(cast("TextIO", out)), redirect_stderr(cast("TextIO", err)):
        try:
            yield
        finally:
            # Otherwise the interpreter tries again at its end, and changes the exit code.
            try:
                out.flush()
            except OSError:
                out.leave()
            err.flush()


def _forget_no_width() -> None:
    """Ignore an impossible width, with which printing a table would fail."""
    columns = os.environ.get("COLUMNS", "")
    number = (
        int(columns)
        if columns.isascii() and columns.isdigit() and len(columns) < len(str(WIDE))
        else 0
    )
    if number < NARROW:
        os.environ.pop("COLUMNS", None)


def _open_closed_ones() -> None:
    """Open standard streams that were closed at the start, as empty ones.

    Otherwise the next file or connection gets their number, and receives what a library or another
    process writes to standard error.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            nowhere = os.open(os.devnull, os.O_RDWR)  # Takes the lowest free number.
            os.set_inheritable(nowhere, True)
            setattr(sys, name, open(nowhere, mode, encoding=UTF8, closefd=False))  # noqa: SIM115
