"""Where pieces of work are run: in this process, in others of this machine, or on a dask cluster.

The user's own policies and problems go along: workers start with the built-in ones alone. Functions and classes of a
script, of a notebook and of files that are not installed are sent as they are now; a worker would import an older state
of them, or not find them. Those of installed packages are sent by name and imported there.
"""

import os
import pickle
import signal
import sys
import sysconfig
import threading
import time
import warnings
from collections.abc import Callable, Generator, Hashable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from functools import lru_cache
from multiprocessing import resource_tracker
from types import ModuleType
from typing import Any, Literal, TypeVar
from uuid import uuid4

from joblib import Parallel, delayed, parallel_config  # type: ignore[import-untyped]
from joblib.externals.loky import BrokenProcessPool, reusable_executor  # type: ignore[import-untyped]
from joblib.externals.loky.backend import (  # type: ignore[import-untyped]
    resource_tracker as loky_resource_tracker,
)
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from eccaht.base.presentation.text import explained
from eccaht.streams.policies.catalogue import own_entries, set_own_entries

try:
    import cloudpickle  # type: ignore[import-untyped]
except ImportError:  # joblib before 1.6 brings it along
    from joblib.externals import cloudpickle  # type: ignore[import-untyped]

_HERE = uuid4().hex  # of this process: workers of some backends are threads of it
_STANDARD = f"{sysconfig.get_path('stdlib')}{os.sep}"
_INSTALLED = tuple(f"{os.sep}{name}{os.sep}" for name in ("site-packages", "dist-packages"))


def packed_policies() -> bytes:
    """All policies of the user's own, for `learn`."""
    return packed((_HERE, own_entries()))


def packed(work: object) -> bytes:
    """Work for `pickle.loads`; constraints and covariances in it may be the user's own."""
    with _sent_as_they_are():
        try:
            return bytes(cloudpickle.dumps(work))
        except Exception as error:  # whatever its parts raise
            raise ValueError(f"a part cannot be sent to other processes ({explained(error)}): use one job") from error


@lru_cache(maxsize=1)
def learn(policies: bytes) -> None:
    """Have the policies of the process that packed them, and no others."""
    try:
        home, own = pickle.loads(policies)
    except Exception as error:
        raise ValueError(f"a worker cannot load your policies ({explained(error)}): install them there") from error
    if home != _HERE:
        set_own_entries(own)


@contextmanager
def _sent_as_they_are() -> Iterator[None]:
    """Let functions and classes of modules that are not installed be sent themselves."""
    known = cloudpickle.list_registry_pickle_by_value()
    chosen = [module for name, module in list(sys.modules.items()) if _is_users(name, module) and name not in known]
    for module in chosen:
        cloudpickle.register_pickle_by_value(module)
    try:
        yield
    finally:
        for module in chosen:
            cloudpickle.unregister_pickle_by_value(module)


def _is_users(name: str, module: ModuleType) -> bool:
    file = getattr(module, "__file__", None)
    named = getattr(module, "__name__", None) == name  # what is in sys.modules need not be a module
    if not isinstance(file, str) or not named or name.partition(".")[0] == "eccaht":
        return False
    return not file.startswith(_STANDARD) and not any(folder in file for folder in _INSTALLED)


Item = TypeVar("Item", bound=Hashable)
Backend = Literal["loky", "dask"]
Results = Generator[Any, None, None]
Start = Callable[[Callable[..., Any], Iterable[tuple[Any, ...]]], Results]  # results in any order


@contextmanager
def workers(backend: Backend, scheduler: str | None, jobs: int) -> Iterator[Start]:
    """Connect to the workers; what is yielded calls a function on them once for each tuple of arguments."""
    if backend == "loky":
        if scheduler is not None:
            raise ValueError("a scheduler is for the dask backend: add --backend dask")
        yield local(jobs)
        return
    if backend != "dask":
        raise ValueError(f"unknown backend {backend!r}: use loky or dask")
    if scheduler is None:
        raise ValueError("the dask backend needs the address of a scheduler: add --scheduler ADDR")
    try:
        from distributed import Client
    except ImportError:
        raise ValueError("the dask backend is not installed: pip install 'eccaht[dask]'") from None
    try:
        client = Client(scheduler, timeout="10s")  # type: ignore[no-untyped-call]
    except (OSError, ValueError, TypeError) as error:
        raise ValueError(f"no dask scheduler answers at {scheduler}: {error}") from None
    with client:
        if not client.scheduler_info()["workers"]:
            raise ValueError(f"the dask scheduler at {scheduler} has no workers: start some")
        yield _remote


def local(jobs: int) -> Start:
    """Processes of this machine; one job is this process itself."""

    def start(call: Callable[..., Any], arguments: Iterable[tuple[Any, ...]]) -> Results:
        if jobs == 1:
            for each in arguments:
                # sums over threads round differently: with one thread everywhere no number depends on the workers
                with threadpool_limits(1):
                    found = call(*each)
                yield found
            return
        own: dict[str, Any] = {"initializer": _watch, "initargs": (os.getpid(),)}
        parallel = Parallel(n_jobs=jobs, backend="loky", return_as="generator_unordered", **own)
        policies = packed_policies()
        try:
            with _deaf_to_interrupts() as listen_again:
                results = parallel(delayed(_single_threaded)(policies, call, *each) for each in arguments)
                with _closing_quietly(results):
                    listen_again()  # here, where an interrupt that came meanwhile closes them too
                    for result in results:  # noqa: UP028 - "yield from" would close them first, and aloud
                        yield result
        except BrokenProcessPool:
            raise OSError("a worker was ended from outside, perhaps for want of memory: use fewer jobs") from None

    return start


def run_batches(
    call: Callable[[Any, Item], Any],
    plan: Any,
    items: Sequence[Item],
    jobs: int,
    progress: Callable[[int], object] = lambda _: None,
) -> dict[Item, Any]:
    """Call with the plan and each item in up to `jobs` processes; results by item.

    The plan is sent packed, and unpacked once by each worker. `progress(1)` is called for each item.
    """
    sent, found = packed(plan), dict[Item, Any]()
    with closing(local(min(jobs, len(items)))(_planned, ((call, sent, item) for item in items))) as results:
        for item, result in results:
            found[item] = result
            progress(1)
    return found


unpacked: Callable[[bytes], Any] = lru_cache(maxsize=1)(pickle.loads)


def _planned(call: Callable[[Any, Item], Any], sent: bytes, item: Item) -> tuple[Item, Any]:
    return item, call(unpacked(sent), item)


@contextmanager
def _closing_quietly(results: Results) -> Iterator[Results]:
    """Close the results in the end, without joblib's warning that work was cancelled."""
    try:
        yield results
    finally:
        with warnings.catch_warnings(action="ignore", category=UserWarning):
            results.close()


@contextmanager
def _deaf_to_interrupts() -> Iterator[Callable[[], object]]:
    """Ctrl-C reaches every process of a terminal; those started here inherit a mask and leave it to this one.

    This one hears it again once what is yielded is called.
    """
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield lambda: None
        return
    for helper in (resource_tracker, loky_resource_tracker):  # starting them would lift the mask
        helper.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})

    def listen_again() -> None:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)

    try:
        yield listen_again
    finally:
        listen_again()


def end() -> None:
    """End all processes of this machine at once; joblib would wait for them where they have nothing to do."""
    executor = getattr(reusable_executor, "_executor", None)
    if executor is not None:
        with warnings.catch_warnings(action="ignore"), suppress(OSError):
            executor.terminate(kill_workers=True)


def _watch(parent: int) -> None:
    """End this worker if its parent is killed: it would wait for minutes for a piece, or to hand over its result."""

    def wait() -> None:
        while os.getppid() == parent:
            time.sleep(1.0)
        os._exit(1)

    threading.Thread(target=wait, daemon=True).start()


def _remote(call: Callable[..., Any], arguments: Iterable[tuple[Any, ...]]) -> Results:
    from distributed import KilledWorker

    with parallel_config(backend="dask"):
        parallel = Parallel(n_jobs=-1, batch_size=1, return_as="generator_unordered")
    policies = packed_policies()
    work = (delayed(_single_threaded)(policies, call, *each) for each in arguments)
    try:
        with _closing_quietly(parallel(work)) as results:
            for result in results:  # noqa: UP028
                yield result
    except KilledWorker:
        raise OSError("a dask worker was ended from outside, perhaps for want of memory") from None


def _single_threaded(policies: bytes, call: Callable[..., Any], *arguments: Any) -> Any:
    """Limit BLAS to one thread permanently: tasks that share a process must not lift each other's limit."""
    threadpool_limits(1)
    learn(policies)
    return call(*arguments)
