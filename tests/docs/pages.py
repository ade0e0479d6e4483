"""The pages that people have written: not those that a build of the site leaves among them."""

from __future__ import annotations

from pathlib import Path

MADE = {"_build", "api", "examples"}  # as .gitignore has them


def pages(folder: Path) -> list[Path]:
    """Every page of a folder and of those in it."""
    return sorted(page for page in folder.rglob("*.md") if page.relative_to(folder).parts[0] not in MADE)
