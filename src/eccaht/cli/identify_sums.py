"""`eccaht identify --sums`: a search by weighted sums of readings, for those who pay for each of them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer

from eccaht.base.arrays import as_positive
from eccaht.cli.output import PLOTS, Inputs, check_outputs, deliver, note, saved, show_lines
from eccaht.cli.parsing import parse_number, parse_shifts
from eccaht.cli.search_view import watching
from eccaht.plants.explain.account import Account, opening
from eccaht.plants.explain.document import as_document
from eccaht.plants.explain.finding import investigate
from eccaht.plants.model.model import Model, load_model
from eccaht.plants.model.prepare import followed, recorded
from eccaht.streams.policies import CATALOGUE, DEFAULT_POLICY, Policy, make_policy
from eccaht.streams.run.recorders import SUFFIXES, Ledger

BUDGET = 5.0


@dataclass(frozen=True)
class SumsOptions:
    """The options of a search by weighted sums as they were given; None, False and () where they were not."""

    sums: bool = False
    shift: tuple[str, ...] = ()
    shift_file: Path | None = None
    budget: float | None = None
    policy: str | None = None
    per_window: int | None = None
    max_measurements: int | None = None
    vectors: bool = False
    readout_noise: float | None = None
    outliers: float | None = None
    stopping: str | None = None
    seed: int | None = None
    ledger: Path | None = None

    @property
    def given(self) -> list[str]:
        """The options that ask for this search.

        >>> SumsOptions(per_window=2).given, SumsOptions().given
        (['--per-window'], [])
        """
        fields = vars(self).items()  # 0 is a value, if a bad one
        asked = [name for name, value in fields if value is not None and value is not False and value != ()]
        return [f"--{name.replace('_', '-')}" for name in asked]

    def check(self, anomalies: str | None) -> None:
        """Refuse a search of which not enough is known."""
        lacking = [] if anomalies is not None else ["--anomalies N (how many sensors are wrong)"]
        if not self.shift and self.shift_file is None:
            lacking.append("--shift D (the size of an anomaly in robust units)")
        if lacking:
            option = self.given[0]
            means = "--sums" if option == "--sums" else f"{option} means a search by weighted sums (--sums), which"
            raise ValueError(f"{means} needs {' and '.join(lacking)}; without {option} whole windows are read")


@dataclass(frozen=True)
class Following:
    """Whether the data still grow, how often to look, and after how many seconds without rows to end."""

    follow: bool = False
    poll: float = 1.0
    timeout: float | None = None

    def check(self) -> None:
        """Refuse lengths of time that are none."""
        if self.timeout is not None and not self.follow:
            raise ValueError("--timeout is for growing files: add --follow")
        as_positive(self.poll, "--poll")
        if self.timeout is not None:
            as_positive(self.timeout, "--timeout")


def identify_sums(
    model: Path,
    data: list[Path],
    asked: SumsOptions,
    *,
    anomalies: str,
    alpha: float,
    reading: dict[str, Any],
    following: Following,
    plot: Path | None,
    as_json: bool,
) -> None:
    """Search, and print what was found; reading: the options of `recorded` and `followed`."""
    inputs: Inputs = {"--model": model, "--data": data, "--shift-file": asked.shift_file}
    check_outputs({"--ledger": asked.ledger, "--plot": plot}, inputs, {"--ledger": SUFFIXES, "--plot": PLOTS})
    policy, vectors, per_window = asked.policy or DEFAULT_POLICY, asked.vectors, asked.per_window or 1
    budget = BUDGET if asked.budget is None else asked.budget
    readout_noise, outliers, seed = asked.readout_noise or 0.0, asked.outliers or 0.0, asked.seed or 0
    number, rule, max_measurements = parse_number(anomalies), _stopping(asked.stopping), asked.max_measurements
    if vectors:
        _check_vectors(policy, per_window)
        if isinstance(rule, int):  # counts windows, however many sensors each of them lacks
            max_measurements, rule = min(rule, max_measurements or rule), None
    calibrated = load_model(model)
    sizes = parse_shifts(list(asked.shift), asked.shift_file, calibrated.names)
    shifts = dict(zip(calibrated.names, sizes, strict=True))
    options: dict[str, Any] = {"seed": seed, "alpha": alpha, "stopping": rule}
    options |= {"outliers": outliers} if outliers else {}
    pose = {"n_anomalies": number, "budget": budget, "readout_noise": readout_noise}
    _search(policy, calibrated, calibrated.names, shifts, pose, options)  # refuses bad options before any data are read
    if following.follow:
        waits: dict[str, Any] = {"poll": following.poll, "timeout": following.timeout, "note": note}
        source = followed(calibrated, data, **reading, **waits)
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
    with watching(source, search, calibrated, per_window, quiet=as_json) as (replay, shown):
        finding = investigate(
            search, replay, max_measurements=max_measurements, vectors=vectors, ledger=kept, recorders=shown
        )
    can = CATALOGUE[policy].can  # scores of policies that judge whole sets are no log-odds of single sensors
    scores = "log-odds" if can.log_odds and not can.exact_lead else "score"
    account = Account(calibrated, search.problem, finding, scores, alpha, source.culprits, source.clock)

    def document(files: list[str]) -> dict[str, Any]:
        settings = {"policy": policy, "anomalies": number, "budget": budget, "per_window": per_window}
        settings |= {"vectors": vectors, "readout_noise": readout_noise, "stopping": asked.stopping or "default"}
        settings |= {"outliers": outliers, "alpha": alpha, "seed": seed, "sensors": search.problem.size}
        contents = {"settings": settings, **as_document(account), "timezone": source.clock.zone}
        return contents | {"notes": source.all_notes, "files": files}

    def show() -> None:
        typer.echo(opening(search.problem, calibrated.seconds, policy, finding.first, source.clock))
        show_lines(account.table())
        for line in account.lines():
            typer.echo(line)
        for text in source.follower.counts if source.follower is not None else ():
            note(text)

    writes = [saved(asked.ledger, lambda path: kept.save(path, source.clock))]
    writes.append(saved(plot, lambda path: _draw(account, path)))
    deliver(writes, show=show, document=document, as_json=as_json)


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


def _draw(account: Account, path: Path) -> None:
    from eccaht.base.presentation.style import save_picture
    from eccaht.plants.explain.picture import draw

    options: dict[str, Any] = {"scores": account.scores, "clock": account.clock}
    save_picture(draw(account.problem, account.finding, account.model.seconds, **options), path)
