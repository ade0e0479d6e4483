"""`gramian models`: the models that the data choose from, side by side."""

from __future__ import annotations

import csv

import numpy as np
import pytest

from gramian.data.tables import write_table
from gramian.words import OF_LABELS, OF_NUMBERS

NUMBERS = ("models", "data.csv", "-t", "y", "--id", "code", "--restarts", 0)


@pytest.fixture
def labelled(tmp_path):
    """labels.csv"""
    rng = np.random.default_rng(3)
    a, b = rng.normal(size=(2, 30)).round(3)
    table = {"a": a, "b": b, "kind": np.where(a + 0.5 * rng.normal(size=30) > 0, "warm", "cold")}
    write_table(tmp_path / "labels.csv", list(table), table)


def written(path):
    return list(csv.DictReader(path.read_text().splitlines()))


def test_models_of_numbers_are_ranked_and_written(run, data, tmp_path):
    shown = run(*NUMBERS, "-o", "models.csv")
    lines = written(tmp_path / "models.csv")
    assert {line["name"] for line in lines} == {*OF_NUMBERS, *(f"{word} (y warped)" for word in OF_NUMBERS)}
    assert [line["rank"] for line in lines] == [str(k) for k in range(1, 7)]
    heights = [float(line["height"]) for line in lines]
    assert heights == sorted(heights, reverse=True)
    assert "6 models on 24 rows, ranked by height" in shown.stdout
    assert f"Best by height: {lines[0]['name']}; next {lines[1]['name']}" in shown.stdout
    assert "models.csv has one line a model" in shown.stderr
    run(*NUMBERS, "-o", "again.csv")
    again = written(tmp_path / "again.csv")
    assert [line["evidence"] for line in again] == [line["evidence"] for line in lines]


def test_labels_are_told_by_their_text(run, labelled):
    shown = run("models", "labels.csv", "-t", "kind", "--by", "cv", "--folds", 3, "--restarts", 0).stdout
    assert "4 models on 30 rows, ranked by cv" in shown
    assert all(word in shown for word in OF_LABELS)
    assert "right" in shown
    assert "RMSE" not in shown


def test_whole_numbers_may_be_labels(run, labelled, tmp_path):
    write_table(tmp_path / "n.csv", ["a", "y"], {"a": np.arange(20.0), "y": np.arange(20) // 10})
    few = ("models", "n.csv", "-t", "y", "-k", "rbf", "--restarts", 0)
    told = run(*few)
    assert "RMSE" in told.stdout
    assert "If they are labels: --task classification" in told.stderr
    assert "right" in run(*few, "--task", "classification").stdout


def test_kernels_and_rows_of_ones_own(run, data):
    given = ("-k", "rbf", "-k", "matern12+matern32", "-k", "1.0 * RBF(1.0).on('a')")
    shown = run(*NUMBERS, *given, "--max-rows", 15, "--by", "loo")
    assert "3 models on 15 rows, ranked by loo" in shown.stdout
    assert "matern12+matern32" in shown.stdout
    assert "warped" not in shown.stdout
    assert "15 of 24 rows, taken at random" in shown.stderr


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--by", "aic"), "--by aic is not known"),
        (("--by", "cv", "--folds", 1), "--folds 1 must be from 2 to the number of rows, 24"),
        (("-k", "rbf", "-k", "rbx"), "--kernel rbx: 'rbx' is no word"),
        (("-k", "RBF("), "RBF("),
        (("--max-rows", 0), "--max-rows 0 must be a whole number from 1 on"),
        (("--time-limit", -1), "--time-limit"),
        (("-c", "nothing"), "no column 'nothing'"),
        (("-o", "data.csv"), "data.csv would be overwritten"),
        (("--task", "sorting"), "--task 'sorting' is not known"),
    ],
)
def test_what_cannot_be_compared_is_refused_by_its_option(run, data, options, message):
    before = data.read_bytes()
    assert message in run(*NUMBERS, *options, code=2).stderr
    assert data.read_bytes() == before


def test_one_target_at_a_time(run, data):
    shown = run("models", "data.csv", "-t", "y", "-t", "a", code=2).stderr
    assert "one target are compared, but there are 2: y, a" in shown
