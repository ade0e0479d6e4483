"""Model files changed at random: each is refused, or loads to something that predicts, in bounded time and
memory."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.modelfile import mutants


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return mutants.models(tmp_path_factory.mktemp("models"))


def test_the_models_themselves_load(files: list[Path]) -> None:
    assert {mutants.outcome(path) for path in files} == {"loaded"}


@pytest.mark.parametrize("seed", range(4))
def test_mutants_are_refused_or_predict(seed: int, files: list[Path], tmp_path: Path) -> None:
    found = mutants.check(files, tmp_path, 100, seed)
    assert found["refused"] > 50  # changes are seen
    assert found["loaded"] > 0  # and some are of numbers that may as well be others
