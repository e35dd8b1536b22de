"""`eccaht identify --sums`: a search by weighted sums of readings, for those who pay for each of them."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import typer

from eccaht.cli.identify import deliver_answer, drawn
from eccaht.cli.output import PLOTS, Bar, Inputs, check_outputs, ended_by_signals, note, saved, shown_progress
from eccaht.cli.parsing import parse_number, parse_shifts
from eccaht.plants import Model, Replay, load_model
from eccaht.plants.incident.search import Search, investigate
from eccaht.plants.incident.search_words import answer_of_search
from eccaht.plants.model.follow import SearchableWindows, followed, recorded
from eccaht.streams import CATALOGUE, DEFAULT_POLICY, Ledger, Policy, Recorder, Step, make_policy
from eccaht.streams.run.recorders import SUFFIXES


def check_sums(options: dict[str, Any], asked: list[str], anomalies: str | None) -> None:
    """Refuse a search of which not enough is known; asked: the options that ask for it."""
    lacking = [] if anomalies is not None else ["--anomalies N (how many sensors are wrong)"]
    if not options["shift"] and options["shift_file"] is None:
        lacking.append("--shift D (the size of an anomaly in robust units)")
    if lacking:
        means = "--sums" if asked[0] == "--sums" else f"{asked[0]} means a search by weighted sums (--sums), which"
        raise ValueError(f"{means} needs {' and '.join(lacking)}; without {asked[0]} whole windows are read")


def identify_sums(
    model: Path,
    data: list[Path],
    asked: dict[str, Any],
    *,
    anomalies: str,
    budget: float,
    alpha: float,
    reading: dict[str, Any],
    waits: dict[str, Any] | None,
    plot: Path | None,
    as_json: bool,
) -> None:
    """Search, and print what was found.

    asked: the options of a search as they were given. reading: the options of `recorded` and `followed`. waits: how a
    growing file is followed, None for one that is complete.
    """
    inputs: Inputs = {"--model": model, "--data": data, "--shift-file": asked["shift_file"]}
    ledger: Path | None = asked["ledger"]
    check_outputs({"--ledger": ledger, "--plot": plot}, inputs, {"--ledger": SUFFIXES, "--plot": PLOTS})
    policy, vectors, per_window = asked["policy"] or DEFAULT_POLICY, asked["vectors"], asked["per_window"] or 1
    readout_noise, outliers, seed = asked["readout_noise"] or 0.0, asked["outliers"] or 0.0, asked["seed"] or 0
    number, rule, max_measurements = parse_number(anomalies), _stopping(asked["stopping"]), asked["max_measurements"]
    if vectors:
        _check_vectors(policy, per_window)
        if isinstance(rule, int):  # counts windows, however many sensors each of them lacks
            max_measurements, rule = min(rule, max_measurements or rule), None
    calibrated = load_model(model)
    sizes = parse_shifts(asked["shift"] or [], asked["shift_file"], calibrated.names)
    shifts = dict(zip(calibrated.names, sizes, strict=True))
    options: dict[str, Any] = {"seed": seed, "alpha": alpha, "stopping": rule}
    options |= {"outliers": outliers} if outliers else {}
    pose = {"n_anomalies": number, "budget": budget, "readout_noise": readout_noise}
    _search(policy, calibrated, calibrated.names, shifts, pose, options)  # refuses bad options before any data are read
    if waits is not None:
        source = followed(calibrated, data, **reading, **waits, note=note)
    else:
        source = recorded(calibrated, data, **reading)
    n_not_searched = len(source.culprits) + source.n_silent
    if n_not_searched and CATALOGUE[policy].can.open_number:  # some anomalies may be among the sensors left out
        least, most = (number, number) if isinstance(number, int) else number
        pose["n_anomalies"] = max(least - n_not_searched, 0), most
    search = _search(policy, calibrated, source.names, shifts, pose, options)
    for text in source.notes:
        note(text)
    kept = Ledger(search)
    with _watching(source, search, calibrated, per_window, quiet=as_json) as (replay, shown):
        finding = investigate(
            search, replay, max_measurements=max_measurements, vectors=vectors, ledger=kept, recorders=shown
        )
    can = CATALOGUE[policy].can  # scores of policies that judge whole sets are no log-odds of single sensors
    scores = "log-odds" if can.log_odds and not can.exact_lead else "score"
    result = Search(finding, search.problem, policy, scores, calibrated.seconds, alpha, source.culprits)
    answer = answer_of_search(result, calibrated, source.clock)

    settings = {name: reading[name] for name in ("start", "stop", "missing")} | {"anomalies": number, "least": None}
    settings |= {"policy": policy, "budget": budget, "per_window": per_window, "vectors": vectors}
    settings |= {"readout_noise": readout_noise, "stopping": asked["stopping"] or "default", "outliers": outliers}
    settings |= {"alpha": alpha, "seed": seed, "sensors": search.problem.size}
    more = {"settings": settings, "timezone": source.clock.zone, "notes": source.all_notes}
    remarks = () if source.follower is None else source.follower.counts
    writes = [saved(ledger, lambda path: kept.save(path, source.clock)), drawn(answer, source.clock, plot)]
    deliver_answer(answer, source.clock, more, writes, remarks=remarks, as_json=as_json)


def _stopping(text: str | None) -> str | int | None:
    if text is None:
        return "default"
    if text == "never":
        return None
    try:
        return int(text)
    except ValueError:
        return text


def _check_vectors(policy: str, per_window: int) -> None:
    able = [name for name, entry in CATALOGUE.items() if entry.can.whole_vectors]
    if policy in CATALOGUE and policy not in able:
        raise ValueError(f"policy {policy!r} scores weighted sums alone: --vectors needs {', '.join(able)}")
    if per_window > 1:
        raise ValueError("--vectors takes all of each window at once: leave out --per-window")


def _search(
    policy: str,
    model: Model,
    names: tuple[str, ...],
    shifts: dict[str, Any],
    pose: dict[str, Any],
    options: dict[str, Any],
) -> Policy:
    number = pose["n_anomalies"]
    most = number if isinstance(number, int) else number[1]
    if len(names) <= most:
        raise ValueError(f"--anomalies {most} needs more than the {len(names)} sensors that are there")
    asked = {key: value for key, value in pose.items() if key != "readout_noise"}
    chosen = None if names == model.names else names
    problem = model.problem(shift=[shifts[sensor] for sensor in names], names=chosen, **asked)
    return make_policy(policy, problem.replace(readout_noise=pose["readout_noise"]), **options)


# -- what is shown of a search while it runs -------------------------------------------------------------


@contextmanager
def _watching(
    source: SearchableWindows, policy: Policy, model: Model, per_window: int, *, quiet: bool
) -> Iterator[tuple[Replay, list[Recorder]]]:
    """The replay, and what shows each measurement: changes of the set while following, else a bar."""
    replay = Replay(source.windows, policy.problem, per_window=per_window, model=model)
    if source.follower is None:
        most = len(source.windows.starts) * per_window  # type: ignore[union-attr]
        with shown_progress("measurements at most", most) as bar:
            yield replay, [_Count(bar)]
        return
    with ended_by_signals(source.follower.end):
        yield replay, [] if quiet else [_Changes(source)]


class _Changes(Recorder):
    """One line whenever the set changes."""

    def __init__(self, source: SearchableWindows) -> None:
        self._source, self._names = source, ""

    def after(self, policy: Policy, step: Step) -> None:
        """Show the set if it is another than before."""
        names = ", ".join(policy.decision_names) or "no sensor"
        if names != self._names:
            when = self._source.clock.show(step.time)
            typer.echo(f"{when}  measurement {step.number}: {names} (lead {policy.lead:.2f})")
            sys.stdout.flush()
        self._names = names


class _Count(Recorder):
    """One step of a bar for each measurement."""

    def __init__(self, bar: Bar) -> None:
        self._bar = bar

    def after(self, policy: Policy, step: Step) -> None:  # noqa: ARG002
        self._bar.advance()
