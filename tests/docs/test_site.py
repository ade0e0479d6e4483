"""The site is built without a warning, and what a reader needs is in it. Pictures are left out: `make docs`
runs the programs of the gallery, and fails where one does."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import gramian

ROOT = Path(gramian.__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    for module in ("sphinx", "myst_parser", "pydata_sphinx_theme", "sphinx_gallery", "sphinx_design"):
        pytest.importorskip(module, reason=f'{module} is not installed: pip install "gramian[docs]"')
    folder = tmp_path_factory.mktemp("site")
    made = shutil.ignore_patterns("_build", "api", "examples", "__pycache__")
    shutil.copytree(ROOT / "docs", folder / "docs", ignore=made)
    for page in ROOT.glob("*.md"):
        shutil.copy(page, folder)
    (folder / "src").symlink_to(ROOT / "src")
    done = subprocess.run(
        [sys.executable, "-m", "sphinx", "-b", "html", "-E", "-W", "--keep-going", "-q", "docs", "html"],
        cwd=folder,
        env={**os.environ, "GRAMIAN_DOCS_PICTURES": "0", "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return folder / "html"


def test_every_public_name_has_a_page(site):
    index = (site / "objects.inv").stat().st_size
    assert index > 0
    names = [name for name in gramian.__all__ if name not in ("likelihoods", "__version__")]
    missing = [name for name in names if not (site / "api" / "generated" / f"gramian.{name}.html").exists()]
    assert not missing


def test_nothing_is_loaded_from_elsewhere(site):
    for page in ("index.html", "search.html", "methods/vfe.html"):
        text = (site / page).read_text(encoding="utf-8")
        for mark in ('src="http', "src='http", 'rel="stylesheet" href="http', "@import"):
            assert mark not in text, (page, mark)


def test_search_has_words_of_all_kinds_of_pages(site):
    text = (site / "searchindex.js").read_text(encoding="utf-8")
    pages = "tutorials/start", "methods/exact", "help/troubleshooting", "api/generated/gramian.GPRegressor"
    for page in pages:
        assert f'"{page}"' in text
