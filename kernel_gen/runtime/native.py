"""A plan's shared object in this process: loaded from verified bytes, called through ctypes."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from kernel_gen.codegen.cpu.abi import ABI_VERSION
from kernel_gen.errors import InternalError, InvalidValues, Unavailable
from kernel_gen.lifetime.scratch import Scratch
from kernel_gen.runtime.plan import Artifact

_STATUS = {1: "bad argument", 2: "out of memory"}
_KERNEL_FAILED = 3


class Call(ctypes.Structure):
    """`gaf_call` of the plan ABI."""

    _fields_ = (
        ("size", ctypes.c_uint64),
        ("segment", ctypes.c_uint32),
        ("n_threads", ctypes.c_int32),
        ("values", ctypes.c_void_p),
        ("arena", ctypes.c_void_p),
        ("dims", ctypes.c_void_p),
        ("stream", ctypes.c_void_p),
    )


class NativePlan:
    """The functions of one object. It stays loaded for the life of the process."""

    def __init__(self, artifact: Artifact) -> None:
        try:
            library = _load(artifact)
        except OSError as error:
            raise Unavailable(f"cannot load object {artifact.sha256[:16]}: {error}") from None
        try:
            self._declare(library)
        except AttributeError as error:
            raise Unavailable(f"object {artifact.sha256[:16]} is no plan: {error}") from None
        found = library.gaf_abi_version()
        if found != ABI_VERSION:
            raise Unavailable(f"object {artifact.sha256[:16]}: ABI {found}, not {ABI_VERSION}")
        self.run = library.gaf_run
        self._library = library

    @staticmethod
    def _declare(library: ctypes.CDLL) -> None:
        library.gaf_abi_version.restype = ctypes.c_uint
        library.gaf_arena_bytes.argtypes = (ctypes.c_void_p, ctypes.c_int)
        library.gaf_arena_bytes.restype = ctypes.c_uint64
        library.gaf_create.argtypes = (ctypes.c_void_p, ctypes.c_uint64, ctypes.c_void_p)
        library.gaf_create.restype = ctypes.c_int
        library.gaf_run.argtypes = (ctypes.c_void_p, ctypes.c_void_p)
        library.gaf_run.restype = ctypes.c_int
        library.gaf_destroy.argtypes = (ctypes.c_void_p,)
        library.gaf_destroy.restype = None

    def create(self, constants: Sequence[int]) -> ctypes.c_void_p:
        """A plan over constants at these addresses, which must stay valid; see `destroy`."""
        pointers = (ctypes.c_void_p * max(len(constants), 1))(*constants)
        handle = ctypes.c_void_p()
        check(self._library.gaf_create(pointers, len(constants), ctypes.byref(handle)))
        return handle

    def destroy(self, handle: ctypes.c_void_p) -> None:
        self._library.gaf_destroy(handle)

    def arena_bytes(self, n_threads: int) -> int:
        """Size of the 64-byte aligned arena of a call with `n_threads` threads."""
        return int(self._library.gaf_arena_bytes(None, n_threads))


def check(status: int) -> None:
    """Raises InvalidValues if a kernel refused what it read, InternalError for any other status
    that is not GAF_OK."""
    if status == _KERNEL_FAILED:
        raise InvalidValues("an index lies outside of its tensor, or an integer is divided by zero")
    if status:
        raise InternalError(f"the plan returned status {status}: {_STATUS.get(status, 'unknown')}")


def _load(artifact: Artifact) -> ctypes.CDLL:
    """The object of exactly the artifact's bytes."""
    with object_path(artifact) as path:
        return ctypes.CDLL(path)


@contextmanager
def object_path(artifact: Artifact) -> Iterator[str]:
    """A path from which the loader takes exactly the artifact's bytes.

    The bytes lie in memory, where nobody can exchange them between check and use and no mount
    forbids execution. The loader takes a path it knows for an object it has, so each load needs a
    path of its own: a fresh link, or a descriptor that stays open where no link can be made.
    """
    memory = os.memfd_create("gaf-plan", os.MFD_CLOEXEC)
    with open(memory, "wb", closefd=False) as file:
        file.write(artifact.data)
    path = f"/proc/self/fd/{memory}"
    try:
        scratch = Scratch("object")
    except OSError:
        yield path
        return
    try:
        with scratch as folder:
            link = folder / "plan.so"
            link.symlink_to(path)
            yield str(link)
    finally:
        os.close(memory)
