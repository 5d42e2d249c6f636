"""Compile a loop over bytes, and keep its machine code for the next process.

Machine code is run without question. So it is kept in a folder of this account alone, below
`NUMBA_CACHE_DIR`, and the folder's name says what it was made of: after an upgrade it is another
one. Whatever goes wrong with the folder costs the time to compile again, nothing else.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
from numba.core.caching import CompileResultCacheImpl, FunctionCache, InTreeCacheLocator

# Without arrays of its own nobody counts who has them, which would take most of its time.
_OPTIONS: dict[str, Any] = {"nogil": True, "_nrt": False}
Loop = TypeVar("Loop", bound=Callable[..., object])


def compiled(loop: Loop) -> Loop:
    """A loop as machine code, made when it is first called; it runs beside other threads.

    What it uses stands in `schemas` or beside it, and it makes no arrays: whoever calls it gives it
    those it writes to. `NUMBA_DISABLE_JIT=1` leaves it as it is.
    """
    made = numba.njit(**_OPTIONS)(loop)
    if made is not loop:
        with suppress(OSError, RuntimeError):
            made._cache = _Kept(loop)  # type: ignore[no-untyped-call]
    return cast("Loop", made)


@cache
def made_of(folder: Path) -> str:
    """A name for all that the loops of a folder are made of.

    numba compares the file of a loop itself, and not those of the loops and numbers it uses.
    """
    digest = sha256(f"{version('numba')} {version('llvmlite')}".encode())
    for source in sorted({*folder.glob("*.py"), *Path(__file__).parent.rglob("*.py")}):
        digest.update(source.name.encode() + source.read_bytes())
    return digest.hexdigest()[:16]


class _Place(InTreeCacheLocator):
    """Where the code of a file's loops is kept."""

    def __init__(self, loop: Callable[..., object], file: str) -> None:
        super().__init__(loop, file)  # type: ignore[no-untyped-call]
        base = os.environ.get("NUMBA_CACHE_DIR")
        if not base:
            raise OSError("There is no folder to keep machine code in.")
        source = Path(file).parent
        folder = Path(base) / f"{source.name}-{made_of(source)}-{os.getuid()}"
        for one in (folder.parent, folder):
            one.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = folder.stat()
        if found.st_uid != os.getuid() or found.st_mode & 0o022:
            raise OSError(f"Somebody else may write to {folder}.")
        self._cache_path = str(folder)


class _Parts(CompileResultCacheImpl):
    _locator_classes = [_Place]  # noqa: RUF012 -- As numba has it.


class _Kept(FunctionCache):
    """Code in files; one that cannot be read or written is as one that is not there."""

    _impl_class = _Parts

    def load_overload(self, sig: object, target_context: object) -> object:
        """The code for arguments of these kinds, without what would be needed to compile it."""
        # That is to get ready for compiling, and takes most of the time of loading.
        with self._guard_against_spurious_io_errors():
            return self._load_overload(sig, target_context)  # type: ignore[no-untyped-call]
        return None

    @contextmanager
    def _guard_against_spurious_io_errors(self) -> Iterator[None]:
        try:
            yield
        except Exception:  # noqa: BLE001 -- What is read from a broken file may raise anything.
            with suppress(OSError):
                self.flush()  # type: ignore[no-untyped-call]
