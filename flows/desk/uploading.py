"""Reads a form with files as it arrives: fields into memory, files straight to their place.

The first field is the form's mark. Nothing is written before it was recognised as ours, and
whatever goes wrong leaves nothing behind.
"""

from asyncio import get_running_loop, wait_for
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from python_multipart.exceptions import MultipartParseError
from python_multipart.multipart import MultipartParser, parse_options_header
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import FormData, UploadFile
from starlette.requests import Request

from connectors.errors import DeliveryError, ReconError
from connectors.files.incoming.uploads import MOST_FILES, Upload
from connectors.settings import Settings
from flows.desk.forms import FormBroken, FormTooLarge
from schemas.counting import grouped, quantity

if TYPE_CHECKING:
    from python_multipart.multipart import MultipartCallbacks

PACE_SECONDS, PACE_BYTES = 60.0, 64 * 1024
"""At least this many bytes have to arrive in each period of this many seconds."""
MOST_FIELDS, FIELD_BYTES = 50, 64 * 1024
TOO_MUCH = "The form has more in it than it can. Nothing was kept."


class FormNotOurs(Exception):
    """The mark is missing, or another browser's."""


@dataclass(slots=True)
class _Form:
    """The part of a form that has arrived so far."""

    begin: Callable[[], Upload]
    is_ours: Callable[[str], bool]
    fields: list[tuple[str, str | UploadFile]] = field(default_factory=list)
    upload: Upload | None = None
    _headers: dict[str, bytes] = field(default_factory=dict)
    _header: list[bytes] = field(default_factory=lambda: [b"", b""])
    _name: str = ""
    _value: bytes = b""
    _filed: bool = False
    """Whether this part is a file."""
    _parts: int = 0
    """The number of parts, including empty ones."""
    _ended: bool = False

    def callbacks(self) -> "MultipartCallbacks":
        return {
            "on_part_begin": self._part,
            "on_header_field": partial(self._add, 0),
            "on_header_value": partial(self._add, 1),
            "on_header_end": self._header_end,
            "on_headers_finished": self._headers_end,
            "on_part_data": self._data,
            "on_part_end": self._part_end,
            "on_end": self._end,
        }

    def checked(self) -> Upload:
        """The files; raises FormBroken if the end of the form has not arrived."""
        if not self._ended or self.upload is None:
            raise FormBroken("The files did not arrive whole. Nothing of them was kept; try again.")
        return self.upload

    def _part(self) -> None:
        self._headers, self._value = {}, b""
        self._parts += 1
        if self._parts > MOST_FIELDS + MOST_FILES:
            raise FormTooLarge(TOO_MUCH)

    def _add(self, which: int, data: bytes, start: int, end: int) -> None:
        self._header[which] += data[start:end]

    def _header_end(self) -> None:
        name, value = self._header
        self._headers[name.decode("latin-1").lower()] = value
        self._header = [b"", b""]

    def _headers_end(self) -> None:
        _, options = parse_options_header(self._headers.get("content-disposition", b""))
        self._name = options.get(b"name", b"").decode("utf-8", "replace")
        self._filed = b"filename" in options
        if not self._filed:
            return
        if self.upload is None:
            raise FormNotOurs
        name = options[b"filename"].decode("utf-8", "replace")
        if name:  # A file field without a chosen file has no name.
            self.upload.open(name)

    def _data(self, data: bytes, start: int, end: int) -> None:
        if not self._filed:
            self._value += data[start:end]
            if len(self._value) > FIELD_BYTES:
                raise FormTooLarge(TOO_MUCH)
        elif self.upload is not None and self.upload.is_open:
            self.upload.write(data[start:end])

    def _part_end(self) -> None:
        if self._filed:
            assert self.upload is not None, "a file comes after the mark"
            self.upload.close()
            return
        value = self._value.decode("utf-8", "replace")
        if self.upload is None:
            if self._name != "csrf" or not self.is_ours(value):
                raise FormNotOurs
            self.upload = self.begin()
        self.fields.append((self._name, value))

    def _end(self) -> None:
        self._ended = True


async def receive_files(
    request: Request, settings: Settings, is_ours: Callable[[str], bool]
) -> tuple[FormData, Upload | ReconError]:
    """The form of a request, its files kept for now, or why they are not; raises FormNotOurs."""
    kind, options = parse_options_header(request.headers.get("Content-Type"))
    boundary = options.get(b"boundary", b"")
    if kind != b"multipart/form-data" or not 0 < len(boundary) <= 200:
        raise FormNotOurs
    most = settings.limits.file_bytes + MOST_FIELDS * FIELD_BYTES
    form = _Form(partial(Upload.begin, settings), is_ours)
    parser = MultipartParser(boundary, form.callbacks())
    seen = 0
    try:
        length = request.headers.get("Content-Length", "")
        _refuse_large(int(length) if length.isdecimal() and len(length) < 20 else 0, most)
        async for block in _blocks(request):
            seen += len(block)
            _refuse_large(seen, most)
            await run_in_threadpool(parser.write, block)
        await run_in_threadpool(parser.finalize)
        return FormData(form.fields), form.checked()
    except BaseException as error:
        if form.upload is not None:
            form.upload.drop()
        if not isinstance(error, ReconError | MultipartParseError | OSError):
            raise
        return FormData(form.fields), _as_recon_error(error)


def _as_recon_error(error: ReconError | MultipartParseError | OSError) -> ReconError:
    """The error in words for the sender of the form."""
    if isinstance(error, ReconError):
        return error
    if isinstance(error, OSError):
        why = error.strerror or type(error).__name__
        return DeliveryError(f"The files cannot be kept: {why}. Nothing of them was.")
    return FormBroken(f"This is no form with files: {error}. Nothing of it was kept.")


def _refuse_large(size: int, most: int) -> None:
    if size > most:
        raise FormTooLarge(
            f"More than {quantity(most, 'byte', grouped)} at once. Nothing was kept: upload fewer "
            "files, or put them into the inbox. RECON_LIMIT_FILE_BYTES sets the limit."
        )


async def _blocks(request: Request) -> AsyncIterator[bytes]:
    """The data as they arrive; raises FormBroken if that is too slow."""
    blocks = request.stream().__aiter__()
    now = get_running_loop().time
    until, arrived = now() + PACE_SECONDS, 0
    while True:
        try:
            block = await wait_for(blocks.__anext__(), until - now())
        except StopAsyncIteration:
            return
        except TimeoutError:
            raise FormBroken(
                f"Less than {quantity(PACE_BYTES, 'byte', grouped)} arrived in "
                f"{quantity(int(PACE_SECONDS), 'second')}. Nothing of the files was kept; try "
                "again, or put them into the inbox."
            ) from None
        arrived += len(block)
        if arrived >= PACE_BYTES:
            until, arrived = now() + PACE_SECONDS, 0
        if block:
            yield block
