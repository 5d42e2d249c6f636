"""Compile a loop over bytes, and keep its machine code for the next process.

A process that finds kept code calls it without numba, whose import costs more than reading many a
delivery. Only a process that has to compile a loop imports numba.

Machine code runs unchecked. So it is kept in a folder that belongs to this account alone, below
`NUMBA_CACHE_DIR`; the folder's name tells its sources and its processor, so an upgrade uses another
folder. If anything is wrong with the folder, the loop is compiled again, and nothing else is lost.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from ctypes import CFUNCTYPE, byref, c_int, c_int64, c_void_p
from functools import cache, wraps
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from tempfile import NamedTemporaryFile
from threading import Lock
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np

# Loops make no arrays, so reference counting, which would take most of their time, is off. Python
# never calls numba's functions directly, so they need no wrappers.
_OPTIONS: dict[str, Any] = {"_nrt": False, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
_DIGEST = sha256().digest_size
_FOUND_IN_EVERY_PROCESS = {"memcpy", "memmove", "memset"}
_lock = Lock()
_parts: list[Callable[..., object]] = []
Loop = TypeVar("Loop", bound=Callable[..., object])


def compiled(loop: Loop) -> Loop:
    """Turn a loop that Python calls into machine code, made on the first call.

    The loop runs beside other threads, returns an integer or nothing, and makes no arrays: the
    caller passes in the arrays it writes to, and numbers are of 64 bits. What it uses has to stand
    in `schemas` or in its own folder. `NUMBA_DISABLE_JIT=1` leaves the loop uncompiled.
    """
    if os.environ.get("NUMBA_DISABLE_JIT", "0") not in {"", "0"}:
        return loop
    made: dict[tuple[_Kind, ...], _Machine] = {}

    @wraps(loop)
    def call(*arguments: object) -> object:
        kinds = tuple(map(_kind, arguments))
        if kinds not in made:
            with _lock:  # Loading the same code twice would define all its names twice.
                if kinds not in made:
                    made[kinds] = _Machine(loop, kinds)
        return made[kinds](arguments)

    return cast("Loop", call)


def loop_part(of: Loop) -> Loop:
    """Mark a function that compiled loops call and are compiled with; Python sees it unchanged."""
    _parts.append(of)
    return of


class _Machine:
    """The machine code of a loop for one combination of argument kinds."""

    def __init__(self, loop: Callable[..., object], kinds: tuple["_Kind", ...]) -> None:
        self._returns = loop.__annotations__["return"] is int
        self._call = _callable(_kept(loop, kinds))

    def __call__(self, arguments: tuple[object, ...]) -> int | None:
        returned, failed = c_int64(), c_void_p()
        status = self._call(byref(returned), byref(failed), *_flat(arguments))
        if status:
            raise ArithmeticError(f"A compiled loop ended with status {status}.")
        return returned.value if self._returns else None


class _Code(NamedTuple):
    """An object file, and the name of the function in it."""

    name: str
    object: bytes


class _ArrayKind(NamedTuple):
    """An array as a loop sees it; arrays of one kind share the same code."""

    dtype: np.dtype[Any]
    ndim: int
    layout: str
    writeable: bool


class _TupleKind(NamedTuple):
    of: type
    kinds: tuple["_Kind", ...]


_Kind = type | _ArrayKind | _TupleKind


def _kind(argument: object) -> _Kind:
    if isinstance(argument, np.ndarray):
        layout = "C" if argument.flags.c_contiguous else "A"
        return _ArrayKind(argument.dtype, argument.ndim, layout, argument.flags.writeable)
    if isinstance(argument, tuple):
        return _TupleKind(type(argument), tuple(map(_kind, argument)))
    return bool if isinstance(argument, bool) else int


def _flat(arguments: tuple[object, ...]) -> Iterator[c_int64]:
    """Flatten arguments as numba's functions take them: arrays and tuples become their parts.

    Source: numba, `core/datamodel/models.py`, ArrayModel.
    """
    for argument in arguments:
        if isinstance(argument, np.ndarray):
            data = argument.ctypes.data
            parts = (0, 0, argument.size, argument.itemsize, data, *argument.shape)
            yield from map(c_int64, (*parts, *argument.strides))
        elif isinstance(argument, tuple):
            yield from _flat(argument)
        else:
            yield c_int64(int(cast("int", argument)))


def _kept(loop: Callable[..., object], kinds: tuple[_Kind, ...]) -> _Code:
    """The code of a loop: read if it is kept, else compiled and kept."""
    path = None
    with suppress(OSError):
        name = f"{loop.__name__}-{sha256(repr(kinds).encode()).hexdigest()[:16]}.o"
        path = _folder(Path(loop.__code__.co_filename).parent) / name
        if (code := _read(path)) is not None:
            return code
    code = _made(loop, kinds)
    if path is not None:
        with suppress(OSError):
            _write(path, code)
    return code


def _read(path: Path) -> _Code | None:
    """Kept code; None if there is none, or if it was altered or moved.

    Raises OSError where somebody else may have put it there.
    """
    # Follow no link, which may lead outside the folder, and do not wait for a pipe.
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
    with suppress(FileNotFoundError), os.fdopen(os.open(path, flags), "rb") as file:
        _refuse_shared(os.fstat(file.fileno()), path)
        whole = file.read()
        digest, rest = whole[:_DIGEST], whole[_DIGEST:]
        if _digest(path, rest) == digest:
            name, _, code = rest.partition(b"\n")
            return _Code(name.decode(), code)
    return None


def _digest(path: Path, whole: bytes) -> bytes:
    """Digest code with its place, so that code of another loop or version does not match."""
    place = f"{path.parent.name}/{path.name}\n"
    return sha256(place.encode() + whole).digest()


def _write(path: Path, code: _Code) -> None:
    whole = code.name.encode() + b"\n" + code.object
    with NamedTemporaryFile(dir=path.parent, prefix=".new-", delete=False) as file:
        try:
            file.write(_digest(path, whole) + whole)
            file.flush()
            Path(file.name).replace(path)
        except OSError:
            Path(file.name).unlink()
            raise


def _folder(source: Path) -> Path:
    """The folder for the code of a source folder's loops; raises OSError if it cannot be used."""
    base = os.environ.get("NUMBA_CACHE_DIR")
    if not base:
        raise OSError("There is no folder to keep machine code in.")
    folder = Path(base) / f"{source.name}-{made_of(source)}-{os.getuid()}"
    for one in (folder.parent, folder):
        one.mkdir(mode=0o700, parents=True, exist_ok=True)
    _refuse_shared(folder.stat(), folder)
    return folder


def _refuse_shared(found: os.stat_result, path: Path) -> None:
    if found.st_uid != os.getuid() or found.st_mode & 0o022:
        raise OSError(f"Somebody else may write to {path}.")


@cache
def made_of(folder: Path) -> str:
    """A name made of all that a folder's compiled code depends on, including the processor."""
    from llvmlite import binding  # noqa: PLC0415

    machine = f"{binding.get_host_cpu_name()} {binding.get_host_cpu_features().flatten()}"
    digest = sha256(f"{version('numba')} {version('llvmlite')} {machine}".encode())
    for source in sorted({*folder.glob("*.py"), *Path(__file__).parent.rglob("*.py")}):
        digest.update(source.name.encode() + source.read_bytes())
    return digest.hexdigest()[:16]


@cache
def _engine() -> Any:
    from llvmlite import binding  # noqa: PLC0415

    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    machine = binding.Target.from_default_triple().create_target_machine(jit=True)
    return binding.create_mcjit_compiler(binding.parse_assembly(""), machine)


def _callable(code: _Code) -> Callable[..., int]:
    """The function of an object file, which stays loaded as long as the process lives."""
    from llvmlite import binding  # noqa: PLC0415

    engine = _engine()
    engine.add_object_file(binding.ObjectFileRef.from_data(code.object))
    engine.finalize_object()
    return CFUNCTYPE(c_int)(engine.get_function_address(code.name))


def _made(loop: Callable[..., object], kinds: tuple[_Kind, ...]) -> _Code:
    import numba  # noqa: PLC0415
    from numba.extending import register_jitable  # noqa: PLC0415

    while _parts:
        register_jitable(**_OPTIONS)(_parts.pop())
    made = numba.njit(**_OPTIONS)(loop)
    types = tuple(map(_numba_type, kinds))
    made.compile(types)
    result = made.overloads[types]
    assert result.signature.return_type in (numba.int64, numba.none), result.signature
    declared = (one.name for one in result.library._final_module.functions if one.is_declaration)
    unknown = {name for name in declared if not name.startswith("llvm.")} - _FOUND_IN_EVERY_PROCESS
    assert not unknown, unknown
    return _Code(result.fndesc.llvm_func_name, result.library._get_compiled_object())


def _numba_type(kind: _Kind) -> Any:
    from numba import types  # noqa: PLC0415
    from numba.np.numpy_support import from_dtype  # noqa: PLC0415

    if isinstance(kind, _ArrayKind):
        dtype = from_dtype(kind.dtype)
        layout: Any = kind.layout
        return types.Array(dtype, kind.ndim, layout, readonly=not kind.writeable)
    if isinstance(kind, _TupleKind):
        kinds: Any = types.BaseTuple
        return kinds.from_types(tuple(map(_numba_type, kind.kinds)), kind.of)
    return types.boolean if kind is bool else types.int64
