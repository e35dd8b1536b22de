"""Untrusted files: damaged ones, and edited ones whose digest was made right again.

`python -m tests.checks.hostile policies 500 7` tries 500 files drawn from seed 7 and prints each that was taken
although it is damaged, or that led to anything but a sound search or an error of one line.
"""

import resource
import sys
import tempfile
from collections.abc import Callable, Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np

from eccaht import Problem, Simulator, UnknownShift, families, load_policy, make_policy, policy_names
from eccaht.checks.policy import require_sound
from eccaht.plants.front import calibrate, load_watch
from eccaht.plants.incident.counts import kept
from eccaht.plants.incident.drill import drill_history, keeping
from eccaht.plants.incident.naming import name_sensors
from eccaht.plants.model.calibration import calibrate_with_windows
from eccaht.plants.model.model import Model, load_model
from eccaht.streams.measurements import (
    AtMost,
    Available,
    Box,
    Budget,
    Levels,
    NonNegative,
    OneOf,
    OnePerGroup,
    Readout,
)
from tests.checks.archives import Arrays, packed, unpacked
from tests.plants.model.histories import history

ROOM = 1 << 29  # bytes that all of this may take
ODD: list[Any] = [0, -1, 1, 3, 0.5, 1e-300, 1e308, -1e308, 10**30, 2**63, True, None, "x", "", [], {}, [1] * 50, [[]]]
NUMBERS = [np.nan, np.inf, 1e300, 1e100, 1e16, 1e-300, -1.0, 0.0, 0.5, 2.0]

CONSTRAINTS = [
    Readout(2.0, 0.3) & NonNegative() & Box(np.full(8, -1.0), np.inf),
    OnePerGroup([0, 0, 1, 1, None, None, 2, 2]) & Box(np.full(8, -1.0), np.inf),
    Levels([-1, 0, 1]) & AtMost(3) & OnePerGroup([0, 0, -1, -1, 1, -1, -1, 1]) & Available(np.arange(8) != 2),
    OneOf(np.tril(np.ones((8, 8)))) & Budget(9.0),
]


# -- sound files ---------------------------------------------------------------------------------------


def policies(folder: Path) -> Iterator[bytes]:
    """Files of every policy: fresh, with readings, and with measurements that were asked for."""
    for name in [name for name in policy_names() if name != "oracle-design"]:  # which is told the true set
        noise = families.identity(8) if name == "hds" else families.toeplitz(8, 0.6)
        yield from _searches(folder, name, Problem(noise, shift=4.0, n_anomalies=2, budget=3.0, mean=1.5))
    S = families.toeplitz(40, 0.6).dense()
    many: dict[str, Any] = {"budget": 3.0, "mean": np.linspace(0, 1, 40), "names": [f"s{k}" for k in range(40)]}
    yield from _searches(folder, "joint", Problem(S, shift=np.linspace(3, 4, 40), n_anomalies=4, **many))
    yield from _searches(folder, "joint", Problem(S, shift=UnknownShift(3.0), n_anomalies=(0, 4), **many))
    few = Problem(S[:8, :8], shift=3.0, n_anomalies=(1, 2), budget=2.0)
    yield from _searches(folder, "joint", few, outliers=0.05)
    for within in CONSTRAINTS:
        limited = Problem(S[:8, :8], shift=3.0, n_anomalies=2, measurements=within)
        yield from _searches(folder, "joint-pair", limited)


def _searches(folder: Path, name: str, problem: Problem, **options: Any) -> Iterator[bytes]:
    world = Simulator(problem, seed=1)
    for number, asked in ((0, False), (3, True), (12, False)):
        policy = make_policy(name, problem, seed=3, **options)
        for _ in range(number):
            policy.tell(policy.ask(), world.measure(policy.ask()))
        if asked:
            policy.ask()
        if asked and policy.can.batches:
            policy.ask(batch=2)
            policy.ask(available=np.arange(problem.size) % 4 != 1)
        policy.save(folder / "sound")
        yield (folder / "sound").read_bytes()


def models(folder: Path) -> Iterator[bytes]:
    """Files of models with drills."""
    history(folder / "h.csv")
    for estimator in ("ledoit-wolf", "empirical"):
        model, windows = calibrate_with_windows(folder / "h.csv", estimator=estimator)
        keeping(model, drill_history(model, windows, runs=150)).save(folder / "sound")
        yield (folder / "sound").read_bytes()


def watches(folder: Path) -> Iterator[bytes]:
    """Files of watches of rows: in the middle of a window, and with doubted rows."""
    history(folder / "h.csv")
    watch = calibrate(folder / "h.csv", drills=0).watch()
    for k in range(40):
        minute = np.datetime64("2024-05-01T08:00", "us") + np.timedelta64(20 * k, "s")
        watch.update(np.full(len(watch.model.names), 0.1 * k), minute)
    watch.save(folder / "sound")
    yield (folder / "sound").read_bytes()
    watch.update(np.zeros(len(watch.model.names)), np.datetime64("2024-06-01", "us"))
    watch.save(folder / "sound")
    yield (folder / "sound").read_bytes()


# -- how they are damaged ------------------------------------------------------------------------------


def damaged(data: bytes, rng: np.random.Generator) -> bytes:
    """A file with bytes changed, cut off, exchanged, repeated or replaced."""
    changed = bytearray(data)
    a, b, c = sorted(rng.integers(0, len(data), 3).tolist())
    match rng.integers(6):
        case 0:
            changed[a] ^= 1 << int(rng.integers(8))
        case 1:
            del changed[a:]
        case 2:
            changed = changed[:a] + changed[b:c] + changed[a:b] + changed[c:]
        case 3:
            changed = changed[:b] + changed[a:]
        case 4:
            changed[a:b] = rng.bytes(int(rng.integers(0, 100)))
        case _:
            changed += rng.bytes(8 * int(rng.integers(1, 5)))
    return bytes(changed)


def edited(data: bytes, other: bytes, rng: np.random.Generator) -> bytes:
    """A file with other arrays or another header, and the digest that belongs to it."""
    header, arrays = unpacked(data)
    for _ in range(int(rng.integers(1, 3))):
        if arrays and rng.random() < 0.6:
            _edit_array(arrays, unpacked(other)[1], rng)
        else:
            _edit_header(header["content"], unpacked(other)[0]["content"], rng)
    return packed(header, arrays)


def _edit_array(arrays: Arrays, others: Arrays, rng: np.random.Generator) -> None:
    names = list(arrays)
    name, second = (names[k] for k in rng.integers(0, len(names), 2))
    array = arrays[name]
    flat = array.reshape(-1)
    factors = [-1.0, 0.0, 1.001, 2.0, 1e-3, 1e10, 1e200]
    match rng.integers(12 if flat.size else 4):
        case 0:
            arrays[name], arrays[second] = arrays[second], array
        case 1:
            arrays[name] = others.get(name, np.zeros(3))
        case 2:
            del arrays[name]
        case 3:
            arrays["state.belief.more"] = array
        case 4:
            with np.errstate(all="ignore"):
                arrays[name] = (array * factors[rng.integers(len(factors))]).astype(array.dtype)
        case 5:
            arrays[name] = np.flip(array).copy()
        case 6:
            arrays[name] = rng.permutation(flat).reshape(array.shape)
        case 7:
            shapes = (
                [array[..., :-1], array.T, flat, array[None], np.concatenate([flat, flat])] if array.ndim else [flat]
            )
            arrays[name] = np.ascontiguousarray(shapes[rng.integers(len(shapes))])
        case 8:
            arrays[name] = np.zeros(array.shape, ["<i8", "<f8"][rng.integers(2)])
        case _:
            with np.errstate(all="ignore"):
                flat[rng.integers(flat.size)] = np.array(NUMBERS[rng.integers(len(NUMBERS))]).astype(array.dtype)


def _edit_header(content: Any, other: Any, rng: np.random.Generator) -> None:
    """Go down to a random place and change what is there."""
    while True:
        keys = list(content) if isinstance(content, dict) else list(range(len(content)))
        if not keys:
            return
        key = keys[rng.integers(len(keys))]
        inner = content[key]
        try:
            other = other[key]
        except (KeyError, IndexError, TypeError):
            other = None
        if isinstance(inner, dict | list) and len(inner) and rng.random() < 0.85:
            content = inner
            continue
        match rng.integers(5):
            case 0 if isinstance(content, dict):
                del content[key]
            case 1 if isinstance(content, dict):
                content["more"] = 1
            case 2:
                content[key] = other
            case _:
                content[key] = deepcopy(ODD[rng.integers(len(ODD))])
        return


# -- what must come of it ------------------------------------------------------------------------------


def use_policy(path: Path) -> None:
    """Load a policy and go on with it, if it can be loaded; whatever is not sound is an AssertionError."""
    policy = load_policy(path)
    world = Simulator(policy.problem, seed=5)
    for _ in range(2):
        require_sound(policy)
        policy.tell(policy.ask(), world.measure(policy.ask()))
    require_sound(policy)
    policy.save(path)
    again = load_policy(path)
    assert np.array_equal(again.decision, policy.decision)
    assert np.array_equal(again.ask(), policy.ask())


def use_model(path: Path) -> None:
    """Load a model and use it, if it can be loaded."""
    model = load_model(path)
    assert isinstance(model, Model)
    problem = model.problem(shift=3.0, n_anomalies=1, budget=2.0)
    assert np.isfinite(make_policy("ecc-aht", problem).ask()).all()
    drilled = kept(model)
    assert drilled is None or isinstance(drilled.counts.holds, bool)
    if model.normal is not None:
        assert model.normal.local is not None
        windows = np.full((3, len(model.names)), 3.0)
        shown = model.normal.residuals(windows, np.vstack([windows[:1] * np.nan, windows[:2]]))
        assert np.isfinite(shown.r).all()
        assert np.isfinite(model.normal.tails(shown.r)).all()
        assert np.isfinite(np.concatenate(model.normal.peaks.limits(1000.0))).all()
        naming = name_sensors(model.normal.local, model.normal.local.before(windows), windows)
        assert np.isfinite(naming.rarity).all()
    model.prepare(path.parent / "h.csv")


def use_watch(path: Path) -> None:
    """Load a watch and give it rows, if it can be loaded."""
    watch = load_watch(path)
    for k in range(60, 70):
        minute = np.datetime64("2024-05-01T08:00", "us") + np.timedelta64(20 * k, "s")
        watch.update(np.full(len(watch.model.names), 0.1 * k), minute)
    watch.save(path)


def attempt(use: Callable[[Path], None], path: Path) -> str:
    """ "refused" in one line, "taken" and soundly used, or what went wrong."""
    try:
        use(path)
    except (ValueError, ArithmeticError, FileNotFoundError) as error:
        return f"not one line: {error}" if "\n" in str(error) else "refused"
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "taken"


def trials(kind: str, count: int, seed: int, folder: Path) -> Iterator[str]:
    """What is wrong with each of so many hostile files that something is wrong with."""
    sound = list({"policies": policies, "models": models, "watches": watches}[kind](folder))
    use = {"policies": use_policy, "models": use_model, "watches": use_watch}[kind]
    rng, path = np.random.default_rng(seed), folder / "hostile"
    for data in sound:
        path.write_bytes(data)
        assert attempt(use, path) == "taken"
    resource.setrlimit(resource.RLIMIT_AS, (_memory() + ROOM, resource.RLIM_INFINITY))
    for trial in range(count):
        place = int(rng.integers(len(sound)))
        near = sound[place - place % 3 + int(rng.integers(3))] if kind == "policies" else sound[0]
        edit = trial % 4 > 0
        data = edited(sound[place], near, rng) if edit else damaged(sound[place], rng)
        path.write_bytes(data)
        said = attempt(use, path)
        if said not in ("refused", "taken") or (said == "taken" and not edit and data != sound[place]):
            yield f"{kind} {seed} {trial}: {said}"


def _memory() -> int:
    """Bytes of address space in use."""
    return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        for fault in trials(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), Path(folder)):
            print(fault, flush=True)
