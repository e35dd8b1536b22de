"""Put arrays at a chosen distance from a 64-byte boundary, to see whether their place in memory changes a result.

numpy asks one handler for the memory of all its arrays; `place_arrays` sets our own, through the C interface that
exists for this. It stays for the rest of the process, which must raise no exception while arrays are freed.
"""

import ctypes as ct
from importlib import import_module
from typing import Any

import numpy as np

from eccaht.base.arrays import Array

BOUNDARY = 64
_SET_HANDLER = 304  # place of PyDataMem_SetHandler in numpy's table of C functions
_Malloc = ct.CFUNCTYPE(ct.c_void_p, ct.c_void_p, ct.c_size_t)
_Calloc = ct.CFUNCTYPE(ct.c_void_p, ct.c_void_p, ct.c_size_t, ct.c_size_t)
_Realloc = ct.CFUNCTYPE(ct.c_void_p, ct.c_void_p, ct.c_void_p, ct.c_size_t)
_Free = ct.CFUNCTYPE(None, ct.c_void_p, ct.c_void_p, ct.c_size_t)


class _Handler(ct.Structure):
    """PyDataMem_Handler, with its allocator in one piece."""

    _fields_ = (
        ("name", ct.c_char * 127),
        ("version", ct.c_uint8),
        ("context", ct.c_void_p),
        ("malloc", _Malloc),
        ("calloc", _Calloc),
        ("realloc", _Realloc),
        ("free", _Free),
    )


def view_at(offset: int, x: Array) -> Array:
    """Return a copy of x that starts `offset` bytes after a boundary, as a view of a longer array may."""
    raw = np.empty(x.nbytes + 2 * BOUNDARY, dtype=np.uint8)
    start = -raw.ctypes.data % BOUNDARY + offset
    view: Array = raw[start : start + x.nbytes].view(np.float64).reshape(x.shape)
    view[...] = x
    return view


def place_arrays(offset: int) -> None:
    """From now on let every new array of numpy start `offset` bytes after a boundary."""
    pointer = ct.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ct.c_void_p, (ct.py_object, ct.c_char_p)
    functions = import_module("numpy._core._multiarray_umath")._ARRAY_API
    table = ct.cast(pointer(functions, None), ct.POINTER(ct.c_void_p))
    capsule = ct.pythonapi.PyCapsule_New
    capsule.restype, capsule.argtypes = ct.py_object, (ct.c_void_p, ct.c_void_p, ct.c_void_p)
    handler, name = _handler(offset), ct.create_string_buffer(b"mem_handler")
    _kept.extend([handler, name])
    set_handler = ct.PYFUNCTYPE(ct.py_object, ct.py_object)(table[_SET_HANDLER])
    set_handler(capsule(ct.addressof(handler), ct.addressof(name), None))


_kept: list[Any] = []  # numpy holds only addresses of these


def _handler(offset: int) -> _Handler:
    libc = ct.CDLL(None)
    libc.malloc.restype, libc.malloc.argtypes = ct.c_void_p, (ct.c_size_t,)
    libc.free.restype, libc.free.argtypes = None, (ct.c_void_p,)
    given: dict[int, tuple[int, int]] = {}  # what malloc returned, and the size, by where the array starts

    def malloc(_: int | None, size: int) -> int:
        raw = libc.malloc(size + 2 * BOUNDARY)
        start = raw + -raw % BOUNDARY + offset
        given[start] = raw, size
        return int(start)

    def calloc(_: int | None, count: int, size: int) -> int:
        start = malloc(None, count * size)
        ct.memset(start, 0, count * size)
        return start

    def realloc(_: int | None, old: int | None, size: int) -> int:
        start = malloc(None, size)
        if old:
            ct.memmove(start, old, min(size, given[old][1]))
            free(None, old, 0)
        return start

    def free(_: int | None, start: int | None, __: int) -> None:
        if start:
            libc.free(given.pop(start)[0])

    return _Handler(b"placed", 1, None, _Malloc(malloc), _Calloc(calloc), _Realloc(realloc), _Free(free))
