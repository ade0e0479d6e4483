"""Other Pythons and other versions of the dependencies than those that `make test` has.

nox -l               what there is
nox -s newest-3.13   the tests with the newest versions of everything
nox -s oldest-3.11   and with the oldest that pyproject.toml allows
nox -s docs          the site, warnings as errors
nox -s build         wheel and source archive, checked and tried in an environment of their own
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import nox

nox.options.sessions = ["newest-3.11"]
nox.options.error_on_missing_interpreters = False
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
PROJECT = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))
# what old typer and old matplotlib call is deprecated in the newest of these, and warnings are errors
OF_THEIR_TIME = ("click<8.2", "pyparsing<3.3")
MINIMUM = re.compile(r"^([A-Za-z0-9_-]+)>=([\d.]+)")


def oldest(names: list[str]) -> list[str]:
    """ "numpy>=2.0" as "numpy==2.0.*": the oldest minor version that is promised, as it was last mended."""
    pins = []
    for name, version in (match.groups() for match in map(MINIMUM.match, names) if match):
        pins.append(f"{name}=={version}{'.*' if version.count('.') < 2 else ''}")
    return pins


@nox.session(python=PYTHONS)
def newest(session: nox.Session) -> None:
    """All tests with the newest versions."""
    session.install("--upgrade", ".[test]")
    session.run("pytest", *session.posargs)


@nox.session(name="oldest", python=["3.11"])
def oldest_versions(session: nox.Session) -> None:
    """All tests with the oldest versions that pyproject.toml promises of what is always installed."""
    session.install(".[test]", *oldest(PROJECT["project"]["dependencies"]), *OF_THEIR_TIME)
    session.run("pytest", *session.posargs)


@nox.session
def docs(session: nox.Session) -> None:
    """The site."""
    session.install("-c", "constraints.txt", ".[mcmc,docs]")
    session.run("sphinx-build", "-b", "html", "-E", "-W", "--keep-going", "docs", "docs/_build/html")


@nox.session
def build(session: nox.Session) -> None:
    """Wheel and source archive, checked; the wheel in an environment that has nothing else."""
    session.install(*PROJECT["dependency-groups"]["release"])
    session.run("python", "-m", "build", "--outdir", "dist")
    session.run("twine", "check", "--strict", *map(str, Path("dist").iterdir()))
    session.install(*map(str, Path("dist").glob("*.whl")))
    session.run("gramian", "--version")
