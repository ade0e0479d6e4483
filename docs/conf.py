"""The site: Sphinx on the pages of this folder, which stay readable as they are. Built by `make docs`.

Four things happen to a page on its way, so that nothing is written twice:

    <!-- picture plot_x: caption -->   becomes the picture of gallery/plot_x.py, drawn in the same build
    <!-- pages -->                     becomes the table of pages in README.md
    <!-- file X.md -->                 becomes a file beside this folder, and links to that file lead here
    <!-- explorer -->                  becomes the explorer itself: its files are copied into the folder play/

Docstrings are plain text with `names` in backticks and formulas indented; `as_rst` says that to docutils.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import warnings
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
ROOT = HERE.parent
sys.path[:0] = [str(ROOT / "src"), str(HERE / "_ext")]

import api_pages  # noqa: E402  (after the path)
from gramian.version import __version__  # noqa: E402

os.environ.setdefault("MPLBACKEND", "Agg")
warnings.filterwarnings("ignore", "os.fork", RuntimeWarning)

project = "gramian"
author = "gramian contributors"
copyright = "gramian contributors, MIT licence"
version = release = __version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
exclude_patterns = ["_build", "_ext", "_templates", "gallery"]
templates_path = ["_templates"]
nitpicky = False  # names in signatures are of many libraries, whose inventories would have to be fetched
pygments_style = "tango"
default_role = "literal"

# Pages
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 4

# The theme; everything it needs comes with it
html_theme = "pydata_sphinx_theme"
html_title = f"gramian {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "logo": {"text": "gramian"},
    "navbar_align": "left",
    "header_links_before_dropdown": 9,
    "navbar_end": ["theme-switcher"],
    "show_nav_level": 1,
    "show_toc_level": 2,
    "secondary_sidebar_items": {"**": ["page-toc"], "index": []},
    "footer_start": ["copyright"],
    "footer_end": ["sphinx-version"],
    "pygments_light_style": "tango",
    "pygments_dark_style": "monokai",
}
html_sidebars = {"index": []}

# The API
api_pages.write(HERE / "api")
autosummary_generate = True
autosummary_ignore_module_all = False
autodoc_member_order = "bysource"
autodoc_typehints = "none"  # what a setting may be is said in words
autodoc_default_options = {"members": True, "inherited-members": False}
napoleon_use_rtype = False
napoleon_use_param = False  # types are words, not links

# The gallery; a test of the pages alone builds without it
PICTURES = os.environ.get("GRAMIAN_DOCS_PICTURES", "1") != "0"
sphinx_gallery_conf = {
    "examples_dirs": "gallery",
    "gallery_dirs": "examples",
    "filename_pattern": r"/plot_",
    "within_subsection_order": "FileNameSortKey",
    "abort_on_example_error": True,
    "download_all_examples": False,
    "show_signature": False,
    "show_memory": False,
    "write_computation_times": False,
    "min_reported_time": 3600,
    "remove_config_comments": True,
    "plot_gallery": PICTURES,
    "reset_modules": ("matplotlib", "gallery_style.apply"),
}

FIGURE = """:::{{figure}} {up}examples/images/sphx_glr_{name}_001.png
:alt: {caption}
:target: {up}examples/{name}.html

{caption} ([its code]({up}examples/{name}.rst))
:::"""
PLAY = """:::{{button-link}} {up}play/index.html
:color: primary

Open the explorer
:::

```{{raw}} html
<iframe class="play" src="{up}play/index.html" title="The explorer" loading="lazy"></iframe>
```"""
FILE = re.compile(r"<!-- file (\w+\.md) -->")
PICTURE = re.compile(r"<!-- picture (plot_\w+): (.*?) -->", re.DOTALL)
ROOT_FILES = {
    "SECURITY.md": "project/security.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "CHANGELOG.md": "project/changelog.md",
    "CODE_OF_CONDUCT.md": "project/conduct.md",
    "README.md": "index.md",
}


def moved(text: str, up: str) -> str:
    """Links of a file beside this folder, as they are from a page of the site."""
    for name, page in ROOT_FILES.items():
        text = text.replace(f"]({name})", f"]({up}{page})")
    return text.replace("](docs/", f"]({up}")


def table_of_pages(up: str) -> str:
    """The table under "Read on" of README.md."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    rows = [line for line in text[text.index("## Read on") :].splitlines() if line.startswith("|")]
    return moved(re.sub(r"\[docs/([\w-]+)\.md\]", r"[\1]", "\n".join(rows)), up)


def prepare(app: Any, docname: str, source: list[str]) -> None:
    up = "../" * docname.count("/")

    def figure(match: re.Match[str]) -> str:
        return FIGURE.format(up=up, name=match[1], caption=" ".join(match[2].split())) if PICTURES else ""

    def file(match: re.Match[str]) -> str:
        return moved((ROOT / match[1]).read_text(encoding="utf-8"), up)

    text = FILE.sub(file, PICTURE.sub(figure, source[0])).replace("<!-- pages -->", table_of_pages(up))
    text = text.replace("<!-- explorer -->", PLAY.format(up=up))
    for name, page in ROOT_FILES.items():
        text = text.replace(f"](../{up}{name})", f"]({up}{page})")
    source[0] = text


SECTION = re.compile(r"^-{3,}$")
MARKED = re.compile(r"(`+)(.+?)\1")


def escaped(text: str) -> str:
    """Markup of docutils in plain text, taken as text; `names` as code."""
    parts, at = [], 0
    for match in MARKED.finditer(text):
        parts += [re.sub(r"([*|\\]|_\b)", r"\\\1", text[at : match.start()]), f"``{match[2]}``"]
        at = match.end()
    return "".join(parts) + re.sub(r"([*|\\]|_\b)", r"\\\1", text[at:])


def as_rst(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """A docstring of ours as docutils wants it: what is indented in running text is shown as it stands."""
    found, in_sections, literal = [], False, False
    if what == "property":  # whose first line napoleon takes for "type: text" where it has a colon
        found.append("")
    for k, line in enumerate(lines):
        in_sections = in_sections or (k + 1 < len(lines) and bool(SECTION.match(lines[k + 1])))
        if SECTION.match(line):
            found.append(line)
            continue
        indented = line.startswith("    ") and not in_sections
        if indented and not literal:
            if found and found[-1].strip():
                found.append("")
            found += ["::", ""]
        if literal and line.strip() and not indented:
            literal = False
            if found[-1].strip():
                found.append("")
        literal = literal or indented
        found.append(line if literal else escaped(line))
    lines[:] = found


def with_explorer(app: Any, failed: Exception | None) -> None:
    """The page of the explorer, which works without a server behind it."""
    if failed is None and app.builder.format == "html":
        static = ROOT / "src" / "gramian" / "explore" / "static"
        shutil.copytree(static, Path(app.outdir) / "play", dirs_exist_ok=True)


def setup(app: Any) -> dict[str, bool]:
    app.connect("build-finished", with_explorer)
    app.connect("source-read", prepare)
    app.connect("autodoc-process-docstring", as_rst, priority=400)  # before napoleon, which reads sections
    return {"parallel_read_safe": True}
