"""Links lead somewhere: files, headings and pictures that pages name are there, and messages that they quote
are in the code."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import gramian
from tests.docs.pages import pages

ROOT = Path(gramian.__file__).resolve().parents[2]
PAGES = [*sorted(ROOT.glob("*.md")), *pages(ROOT / "docs")]
BLOCK = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"(?<!`)\[[^\]\n]*\]\(([^)\s]+)\)")
PICTURE = re.compile(r"<!-- picture (\w+): .+? -->", re.DOTALL)
CODE = re.compile(r"`[^`\n]*`")


def prose(page: Path) -> str:
    return BLOCK.sub("", page.read_text(encoding="utf-8"))


def links(page: Path) -> list[str]:
    return [target for target in LINK.findall(prose(page)) if not target.startswith(("http:", "https:"))]


def anchors(page: Path) -> set[str]:
    """Headings as GitHub and MyST name them."""
    headings = re.findall(r"^#+ +(.+?) *$", prose(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def shown(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", [page for page in PAGES if links(page)], ids=shown)
def test_links(page):
    for link in links(page):
        name, _, anchor = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        assert target.exists(), f"{shown(page)} has a link to {link}, which is not there"
        if anchor:
            assert anchor in anchors(target), f"{shown(page)}: {link} has no such heading"


@pytest.mark.parametrize("page", [page for page in PAGES if PICTURE.search(prose(page))], ids=shown)
def test_pictures(page):
    for name in PICTURE.findall(CODE.sub("", prose(page))):
        program = ROOT / "docs" / "gallery" / f"{name}.py"
        assert program.exists(), f"{shown(page)} shows {name}, which no program of the gallery draws"


@pytest.mark.parametrize("program", sorted((ROOT / "docs" / "gallery").glob("*.py")), ids=lambda p: p.stem)
def test_the_gallery_has_titles_and_pictures(program):
    module = ast.parse(program.read_text(encoding="utf-8"))
    title, line, *_ = (ast.get_docstring(module) or "").splitlines()
    assert line == "=" * len(title)
    assert program.stem.startswith("plot_")  # what the gallery runs
    assert ast.unparse(module.body[-1]) == "plt.show()"


def test_messages_that_are_explained_are_in_the_code():
    """Each part of a quoted message, between the names and numbers of a reader (…), is in a text of the
    code."""
    texts = {
        node.value
        for path in (ROOT / "src").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    page = ROOT / "docs" / "help" / "troubleshooting.md"
    rows = re.findall(r"^\| `([^`]+)` \|", page.read_text(encoding="utf-8"), re.MULTILINE)
    assert len(rows) > 40
    others = {"os.fork() was called"}  # a message of JAX
    for message in sorted({*rows} - others):
        for part in message.split("…"):
            assert any(part in text for text in texts), f"{message!r}: {part!r} is nowhere in the code"


def test_all_files_tell_one_version():
    told = {
        "CITATION.cff": re.search(r"^version: (.+)$", (ROOT / "CITATION.cff").read_text(), re.MULTILINE),
        "CHANGELOG.md": re.search(r"^## (.+)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE),
    }
    assert {name: match and match[1] for name, match in told.items()} == dict.fromkeys(
        told, gramian.__version__
    )
