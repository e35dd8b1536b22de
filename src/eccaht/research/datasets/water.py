"""A water network that needs no data of others: EPANET's Net3 with random demand, read by noisy sensors, then attacked.

Hydraulics are EPANET's, by wntr (the extra `[water]`). Demand at each junction is its usual daily pattern times a
random factor that varies in space and time: log-normal, with correlation exp(-distance / 0.2 of the network's width)
between junctions and an hour of memory. Sensors are pressures, flows and tank levels with independent noise. An
attack adds a constant to the readings of some sensors and leaves the hydraulics alone, so its truth is exact.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eccaht.base.arrays import Array
from eccaht.base.randomness import Seed, rng_for
from eccaht.plants import Arrays

FIRST = np.datetime64("2024-01-01T00:00:00", "us")
DAY, PATTERN_STEP = 86_400, 600  # seconds
DEMAND_SPREAD, DEMAND_RANGE, DEMAND_MEMORY = 0.2, 0.2, 3600.0  # of the log factor; of the width; seconds
NOISE = {"pressure": 0.1, "flow": 0.5, "level": 0.01}  # standard deviations: m, L/s, m
_PUMP, _ON, _OFF = "10", 1 * 3600, 15 * 3600  # the network's own file switches this pump by the clock, for one week


@dataclass(frozen=True)
class WaterRecording:
    """Readings of all sensors: times, (T,), and values, (T, K), in metres of water and litres a second."""

    times: NDArray[np.datetime64]
    values: Array
    names: tuple[str, ...]

    def part(self, start: int, stop: int) -> WaterRecording:
        return WaterRecording(self.times[start:stop], self.values[start:stop], self.names)

    def rows(self) -> Arrays:
        """The readings as its files have them, to four decimal places."""
        return Arrays(self.values.round(4), self.times, self.names, label="the recording")

    def save(self, path: Path) -> Path:
        """Write it as CSV, completely or not at all."""
        import polars as pl

        from eccaht.base.files import replacing

        columns = dict(zip(self.names, self.rows().values.T, strict=True))
        table = pl.DataFrame({"time": self.times, **columns})
        with replacing(path) as file:
            table.write_csv(file, datetime_format="%Y-%m-%dT%H:%M:%S")
        return path


def load_wntr() -> Any:
    try:
        with warnings.catch_warnings(), np.printoptions():  # it changes how numpy prints
            warnings.simplefilter("ignore")
            import wntr
    except ImportError:
        raise ValueError("simulating a water network needs wntr: pip install 'eccaht[water]'") from None
    return wntr


def simulate(
    *, days: float, step: float = 60.0, seed: Seed = 0, progress: Callable[[str], object] = lambda _: None
) -> WaterRecording:
    """Run the network for some days and read its sensors every `step` seconds."""
    wntr = load_wntr()
    seconds, step = round(days * DAY), check_step(step)
    progress("demand")
    with warnings.catch_warnings(), TemporaryDirectory(prefix="eccaht-") as place:
        warnings.simplefilter("ignore")  # deprecation warnings of wntr and pandas
        network = wntr.network.WaterNetworkModel("Net3")
        _set_times(network, seconds, step)
        _switch_pump(wntr, network, seconds)
        _set_demand(network, seconds, seed)
        progress("hydraulics")
        results = wntr.sim.EpanetSimulator(network).run_sim(file_prefix=str(Path(place) / "net"))
        names, exact, noise = _sensors(network, results)
    rows = int(seconds // step)
    times = FIRST + (np.arange(rows) * round(step * 1e6)).astype("timedelta64[us]")
    drawn = rng_for(seed, "water", "sensors").standard_normal((rows, len(names)))
    return WaterRecording(times, exact[:rows] + drawn * noise, names)


def check_step(step: float) -> float:
    """Return a time between readings that the demand's patterns are made of, in whole seconds."""
    if step < 10 or PATTERN_STEP % step:
        raise ValueError(f"a step of {step:g} s is no whole part of 10 minutes from 10 s up: use 60s, 2min or 5min")
    return step


def _set_times(network: Any, seconds: int, step: float) -> None:
    time = network.options.time
    time.duration, time.pattern_timestep = seconds, PATTERN_STEP
    time.hydraulic_timestep = time.report_timestep = time.quality_timestep = time.rule_timestep = step
    network.options.quality.parameter = "NONE"


def _switch_pump(wntr: Any, network: Any, seconds: int) -> None:
    """Switch the pump of the day shift on every day; the network's file ends after a week."""
    controls, pump = wntr.network.controls, network.get_link(_PUMP)
    for day in range(7, seconds // DAY + 1):
        for after, status in ((_ON, wntr.network.LinkStatus.Open), (_OFF, wntr.network.LinkStatus.Closed)):
            condition = controls.SimTimeCondition(network, "=", day * DAY + after)
            action = controls.ControlAction(pump, "status", status)
            network.add_control(f"day {day} at {after}", controls.Control(condition, action))


def _set_demand(network: Any, seconds: int, seed: Seed) -> None:
    names = [name for name, junction in network.junctions() if junction.base_demand]
    places = np.array([network.get_node(name).coordinates for name in names])
    steps = seconds // PATTERN_STEP + 1
    factors = demand_factors(places, steps, rng_for(seed, "water", "demand"))
    clock = np.arange(steps) * PATTERN_STEP
    for k, name in enumerate(names):
        (demand,) = network.get_node(name).demand_timeseries_list
        usual = network.get_pattern(demand.pattern_name) if demand.pattern_name else None
        hours = np.ones(1) if usual is None else np.asarray(usual.multipliers, dtype=float)
        daily = hours[(clock // 3600) % len(hours)]  # the network's patterns have a value an hour
        network.add_pattern(f"of {name}".replace(" ", "_"), list(daily * factors[:, k]))
        demand.pattern_name = f"of_{name}"


def demand_factors(places: Array, steps: int, rng: np.random.Generator) -> Array:
    """Log-normal factors of mean 1, (steps, places), correlated in space and time."""
    from scipy.signal import lfilter

    width = float(np.ptp(places, axis=0).max())
    distance = np.linalg.norm(places[:, None] - places[None], axis=2)
    root = np.linalg.cholesky(np.exp(-distance / (DEMAND_RANGE * width)) + 1e-9 * np.eye(len(places)))
    memory = np.exp(-PATTERN_STEP / DEMAND_MEMORY)
    fresh = rng.standard_normal((steps, len(places))) @ root.T
    fresh[1:] *= np.sqrt(1.0 - memory**2)  # the first is drawn from the stationary law
    field = DEMAND_SPREAD * lfilter([1.0], [1.0, -memory], fresh, axis=0)
    factors: Array = np.exp(field - 0.5 * DEMAND_SPREAD**2)
    return factors


def _sensors(network: Any, results: Any) -> tuple[tuple[str, ...], Array, Array]:
    """Names, exact values and noise: every other junction, every sixth pipe, all pumps and tanks.

    Pipes that never carry water are left out.
    """
    pressure, flow = results.node["pressure"], results.link["flowrate"] * 1000.0
    junctions = network.junction_name_list[::2]
    pipes = [name for name in network.pipe_name_list if flow[name].std() > NOISE["flow"]][::6]
    kinds = [("pressure", "P", pressure, junctions), ("flow", "F", flow, [*pipes, *network.pump_name_list])]
    kinds.append(("level", "L", pressure, network.tank_name_list))
    names = tuple(f"{letter}-{name}" for _, letter, _, chosen in kinds for name in chosen)
    exact = np.hstack([table[list(chosen)].to_numpy(dtype=float) for _, _, table, chosen in kinds])
    noise = np.repeat([NOISE[kind] for kind, *_ in kinds], [len(chosen) for *_, chosen in kinds])
    return names, exact, noise
