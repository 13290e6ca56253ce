"""Build the documentation as a site: `make site`, then open site/index.html.

Its navigation is made from the lists in each folder's `index.md`, which name its pages in the order in which
they are read. Files that pages link to beside `docs` become pages of their own.

python tools/site.py [FOLDER]
"""

from __future__ import annotations

import json
import posixpath
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
BUILD = ROOT / "build" / "site"
SECTIONS = ("tutorial", "howto", "reference", "reference/api", "explain", "adr")
_LINK = re.compile(r"\]\(([^)#:]+\.md)(?:#[^)]*)?\)")
_OUTSIDE = re.compile(r"\]\(((?:\.\./)+(?:examples|deploy|src|tests)(?:/[^)#]+)?)\)")
_LANGUAGES = {".py": "python", ".yaml": "yaml", ".json": "json", ".sh": "bash", ".js": "javascript"}


def build(folder: Path) -> None:
    shutil.rmtree(BUILD, ignore_errors=True)
    docs = Path(shutil.copytree(DOCS, BUILD / "docs"))
    for page in docs.rglob("*.md"):
        page.write_text(_with_pages_of_files(page, docs), "utf-8")
    settings = (ROOT / "zensical.toml").read_text("utf-8")
    head, project, rest = settings.partition("[project]\n")
    own = f'site_dir = "html"\ndocs_dir = "docs"\nnav = {_navigation()}\n'
    source = rest.replace('paths = ["src"]', f"paths = [{json.dumps(str(ROOT / 'src'))}]")
    config = BUILD / "zensical.toml"
    config.write_text(head + project + own + source, "utf-8")
    words = [sys.executable, "-m", "zensical", "build", "--clean", "--strict", "-f", str(config)]
    subprocess.run(words, cwd=BUILD, check=True)
    shutil.rmtree(folder, ignore_errors=True)
    shutil.move(BUILD / "html", folder)


def pages() -> Iterator[str]:
    """Every page of the site, in the order in which they are read."""
    yield "index.md"
    for section in SECTIONS:
        yield from _listed(section)
    yield "performance.md"


def _listed(section: str) -> list[str]:
    """The pages of a section, as its index lists them; those of a folder below it come last."""
    text = (DOCS / section / "index.md").read_text("utf-8")
    linked = [posixpath.normpath(posixpath.join(section, link)) for link in _LINK.findall(text)]
    own = [page for page in linked if posixpath.dirname(page) == section]
    below = [page for page in linked if posixpath.dirname(page) == f"{section}/contracts"]
    return list(dict.fromkeys([f"{section}/index.md", *own, *below]))


def _navigation() -> str:
    """As TOML: a list of pages for each section, under its title."""
    sections = []
    for name in SECTIONS:
        title = (DOCS / name / "index.md").read_text("utf-8").partition("\n")[0].removeprefix("# ")
        sections.append(f"{{ {json.dumps(title)} = {json.dumps(_listed(name))} }}")
    return f'["index.md", {", ".join(sections)}, "performance.md"]'


def _with_pages_of_files(page: Path, docs: Path) -> str:
    """The page's text, its links to files beside the docs leading to pages that show them."""
    original = DOCS / page.relative_to(docs)

    def lead(link: re.Match[str]) -> str:
        source = (original.parent / link[1]).resolve()
        if not source.is_file():
            return "]()"  # a folder: its name is text enough
        shown = docs / "files" / f"{source.relative_to(ROOT)}.md"
        shown.parent.mkdir(parents=True, exist_ok=True)
        name = source.relative_to(ROOT).as_posix()
        language = _LANGUAGES.get(source.suffix, "")
        shown.write_text(
            f"# {name}\n\n````{language}\n{source.read_text('utf-8')}\n````\n", "utf-8"
        )
        return f"]({posixpath.relpath(shown, page.parent)})"

    return _OUTSIDE.sub(lead, page.read_text("utf-8"))


if __name__ == "__main__":
    build(Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "site").resolve())
