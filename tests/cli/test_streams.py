"""Standard streams that are closed, full, or left by their reader: work is done and saved, and no command
ends with a traceback. In processes of their own, as streams belong to a process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import gramian

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the shell is a Unix one")

GRAMIAN = f'{sys.executable} -c "from gramian.cli.main import main; main()"'


@pytest.fixture
def shell(tmp_path, data, model):
    """Runs a line of the shell in which `gramian` is the command; model.gm and data.csv are there."""
    source = str(Path(gramian.__file__).parents[1])

    def run(line: str) -> subprocess.CompletedProcess[str]:
        script = f'gramian() {{ {GRAMIAN} "$@"; }}\nset -o pipefail\n{line}'
        environment = os.environ | {"PYTHONPATH": source, "JAX_PLATFORMS": "cpu"}
        result = subprocess.run(
            ["bash", "-c", script], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300
        )
        assert "Traceback" not in result.stderr, result.stderr
        assert "Exception ignored" not in result.stderr, result.stderr
        assert "Traceback" not in result.stdout
        return result

    return run


FIT = "gramian fit data.csv -t y --id code --restarts 0 -o new.gm"
COMMANDS = {
    "help": "gramian --help",
    "version": "gramian --version",
    "show": "gramian show model.gm",
    "predict": "gramian predict model.gm data.csv",
    "score": "gramian score model.gm data.csv",
    "plan": "gramian plan data.csv -t y --id code",
}


@pytest.mark.parametrize("command", COMMANDS)
def test_all_streams_may_be_closed(shell, command):
    assert shell(f"{COMMANDS[command]} <&- >&- 2>&-").returncode == 0


@pytest.mark.parametrize("command", ["version", "show"])
def test_a_reader_who_leaves_ends_a_command_quietly(shell, command):
    # a reader that has left before the first line is the hardest
    result = shell(f"{COMMANDS[command]} | true; {COMMANDS[command]} | head -1")
    assert result.returncode in (0, 1)
    assert "error" not in result.stderr
    assert result.stdout.count("\n") == 1


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="Linux alone has it")
@pytest.mark.parametrize("command", ["version", "predict"])
def test_a_full_output_is_told(shell, command):
    result = shell(f"{COMMANDS[command]} > /dev/full")
    assert result.returncode == 2
    assert result.stderr.endswith("error: standard output: No space left on device.\n")


@pytest.mark.parametrize("closed", [">&- 2>&- <&-", "| true", "2> /dev/full"])
def test_a_model_is_saved_whatever_becomes_of_what_is_said(shell, tmp_path, closed):
    shell(f"{FIT} {closed}")
    assert "predicts y" in shell("gramian show new.gm").stdout


def test_predictions_are_written_whatever_becomes_of_what_is_said(shell, tmp_path):
    for k, closed in enumerate((">&-", "2> /dev/full", ">&- 2>&- <&-")):
        shell(f"gramian predict model.gm data.csv --out {k}.csv {closed}")
    assert len({(tmp_path / f"{k}.csv").read_bytes() for k in range(3)}) == 1


def test_models_and_comparisons_are_written_before_they_are_printed(shell, tmp_path):
    shell("gramian models data.csv -t y --id code -k rbf --restarts 0 -o models.csv | true")
    assert (tmp_path / "models.csv").read_text().count("\n") == 2
    shell(
        "gramian compare data.csv -t y -c a,b --methods nystrom:uniform --sizes 5 --repeats 1 -k 'RBF(1.0)'"
        " --noise 0.1 -o runs | true"
    )
    assert (tmp_path / "runs" / "table.txt").exists()
    shell("gramian demo -o demo | true")
    assert {path.name for path in (tmp_path / "demo").iterdir()} == {
        "model.gm",
        "predictions.csv",
        "forecast.png",
    }


def test_an_input_that_is_closed_has_nothing_to_read(shell):
    result = shell("gramian predict model.gm - <&-")
    assert result.returncode == 2
    assert "stdin.csv is empty" in result.stderr


def test_pipes_are_tables(shell, tmp_path):
    plain = shell("gramian predict model.gm data.csv").stdout
    assert shell("gramian predict model.gm - < data.csv").stdout == plain
    assert shell("gramian predict model.gm <(cat data.csv)").stdout == plain
    assert (
        shell("mkfifo pipe.csv; cat data.csv > pipe.csv & gramian predict model.gm pipe.csv").stdout == plain
    )
    scores = shell("gramian score model.gm data.csv").stdout
    assert shell("gramian score model.gm <(gzip -c data.csv)").stdout == scores
