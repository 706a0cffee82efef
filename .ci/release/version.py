"""Write the version of server/amanu/__init__.py into the files that repeat it: two of the extension, one of the dev
container feature."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def version(root: Path) -> str:
    (value,) = (
        statement.value
        for statement in ast.parse((root / "server/amanu/__init__.py").read_text("utf-8")).body
        if isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) == "__version__"
    )
    return ast.literal_eval(value)


def derived(root: Path) -> dict[Path, str]:
    """The text of the files that repeat the version; their own version is the first in them, or the first two."""
    repeats = {
        "vscode-extension/package.json": 1,
        "vscode-extension/package-lock.json": 2,
        ".ci/container/feature/amanu/devcontainer-feature.json": 1,
    }
    texts: dict[Path, str] = {}
    for name, count in repeats.items():
        path = root / name
        texts[path] = re.sub(
            r'"version": "[^"]*"', f'"version": "{version(root)}"', path.read_text("utf-8"), count=count
        )
    return texts


if __name__ == "__main__":
    for path, text in derived(ROOT).items():
        path.write_text(text, "utf-8")
