"""What the command experiment does."""

from __future__ import annotations

from pathlib import Path

import typer

from gramian.cli.voice import note, say
from gramian.experiments.studies.registry import EXPERIMENTS, named
from gramian.experiments.studies.runner import PAGE, RESULTS, run
from gramian.experiments.studies.sets import DataFolder


def list_experiments() -> None:
    """All experiments: what each asks, and the files that it needs."""
    for experiment in EXPERIMENTS.values():
        say(f"{experiment.name}\n    {experiment.question}")
        files = ", ".join(f"{name}.npz" for name in experiment.needs(quick=False))
        if files:
            say(f"    data: {files}")


def run_experiment(
    name: str, quick: bool, data: Path | None, address: str | None, out: Path | None, limit: float | None
) -> None:
    """Runs an experiment and says what it showed. The same command again does what is left to do."""
    experiment = named(name)
    folder = out or Path(f"gramian-{experiment.name}{'-quick' * quick}")
    try:
        finished = run(experiment, folder, DataFolder(data, address), quick, limit)
    except KeyboardInterrupt:
        note(f"interrupted: what was done is in {folder}; the same command does the rest")
        raise typer.Exit(130) from None
    for sentence in finished.shown.words:
        say(sentence)
    for told in finished.notes[:5]:
        note(f"not measured: {told}")
    if finished.missing:
        whole = finished.cells + finished.missing
        note(f"the time was over after {finished.cells} of {whole} cells: the same command does the rest")
    note(f"\n{folder} has {PAGE}, {RESULTS} and pictures")
