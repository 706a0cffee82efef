"""The site: README.md and docs/ as they are, read by Sphinx; `make site` builds it."""

import shutil
import tomllib
from pathlib import Path

from sphinx.application import Sphinx

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
PARTS = tomllib.loads((HERE / "navigation.toml").read_text("utf-8"))["parts"]

project = html_title = "Amanu"
extensions = ["myst_parser"]
root_doc = "README"
include_patterns = ["README.md", "docs/*.md", "docs/**/*.md", *(page for part in PARTS for page in part["pages"])]
exclude_patterns = ["**/node_modules", ".venv", ".tools", "dist"]
myst_heading_anchors = 6
html_theme = "furo"
html_static_path = ["static"]
html_css_files = ["amanu.css"]
html_favicon = html_logo = "static/amanu.svg"
html_copy_source = html_show_sphinx = html_show_copyright = False


def setup(app: Sphinx) -> None:
    app.connect("source-read", _add_navigation)
    app.connect("build-finished", _add_files)


def _add_navigation(app: Sphinx, page: str, source: list[str]) -> None:
    """The side bar, at the end of the front page. It lists what is not listed, too: a test complains, not the build."""
    if page != root_doc:
        return
    parts = [(part["title"], _found(part["pages"])) for part in PARTS]
    listed = {root_doc + ".md", *(path for _, paths in parts for path in paths)}
    parts.append(("More", [path for path in _found(["docs/**/*.md"]) if path not in listed]))
    source[0] += "".join(_side_bar(title, paths) for title, paths in parts if paths)


def _found(patterns: list[str]) -> list[str]:
    paths = [path.relative_to(ROOT).as_posix() for pattern in patterns for path in sorted(ROOT.glob(pattern))]
    return list(dict.fromkeys(paths))


def _side_bar(title: str, paths: list[str]) -> str:
    return "\n".join(["\n\n```{toctree}", ":hidden:", f":caption: {title}", "", *paths, "```\n"])


def _add_files(app: Sphinx, failure: Exception | None) -> None:
    """The front page, also where a web server looks for it, and its picture: light and dark take HTML, which Sphinx
    does not read."""
    if failure is None:
        shutil.copy(app.outdir / "README.html", app.outdir / "index.html")
        for picture in (ROOT / "docs").glob("demo-*.png"):
            shutil.copy(picture, app.outdir / "docs")
