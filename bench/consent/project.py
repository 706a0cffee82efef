"""A small project of each kind the corpus speaks of, in a folder of its own. git starts nothing of the user's."""

import os
import subprocess
from pathlib import Path

from amanu.core.command import CommandContext

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
FILES = {
    "python": {
        "README.md": "# App\n\nIt runs.\n",
        "pyproject.toml": "[project]\nname = 'app'\nversion = '1'\n[tool.x]\n",
        "requirements.txt": "flask==3.0\nrequests==2.32\n",
        "src/app.py": "import os\n\n\ndef main() -> None:\n    print(os.name)\n",
        "src/util.py": "import sys\n",
        "tests/test_app.py": "def test() -> None:\n    pass\n",
        "logs/app.log": "2026-01-01 10:00 ERROR x\n",
        "data.json": '{"items": [{"name": "a"}]}',
        ".gitignore": ".env\n.venv/\n__pycache__/\n",
        ".env": "KEY=secret\n",
    },
    "node": {
        "package.json": '{"name": "x", "scripts": {"build": "tsc"}, "dependencies": {"react": "19"}}',
        "package-lock.json": "{}",
        "tsconfig.json": "{}",
        ".eslintrc.json": "{}",
        ".gitignore": "node_modules/\ndist\n.env\n",
        "src/index.ts": "export const a = 1\n",
        "src/components/Button.tsx": "import { useState } from 'react'\n",
        "scripts/build.js": "",
        **{f"node_modules/p{each}/index.js": "" for each in range(1600)},
        **{f"node_modules/p{each}/package.json": "{}" for each in range(1600)},
        "node_modules/react/package.json": '{"version": "19"}',
        "node_modules/.bin/tsc": "",
        ".env": "KEY=secret\n",
    },
    "rust": {
        "Cargo.toml": "[package]\nname = 'x'\n[dependencies]\nserde = '1'\n",
        "Cargo.lock": 'name = "serde"\nversion = "1"\n',
        "src/main.rs": "fn main() {}\n",
        "src/lib.rs": "pub fn a() {}\n",
        ".gitignore": "/target\n",
    },
    "go": {
        "go.mod": "module example.org/x\n\ngo 1.22\n",
        "main.go": "package main\n\nfunc main() {}\n",
        "internal/server/server.go": "package server\n",
        "internal/server/server_test.go": "package server\n",
        "Makefile": "test:\n\tgo test ./...\n",
        "Dockerfile": "FROM scratch\n",
        "docker-compose.yml": "services: {}\n",
        ".github/workflows/ci.yml": "on: push\n",
    },
}


def stand_in(tool: str, folder: Path) -> None:
    """An empty program at the end of PATH, outside of the projects."""
    path = _tools(folder) / tool
    path.parent.mkdir(exist_ok=True)
    path.touch(mode=0o755)


def _tools(folder: Path) -> Path:
    return Path(os.path.realpath(folder)) / "tools"


def make(kind: str, folder: Path) -> CommandContext:
    """The project as a repository with two commits on a branch."""
    root = Path(os.path.realpath(folder)) / kind
    for name, text in FILES[kind].items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "GIT_CONFIG_NOSYSTEM": "1"}
    user = ["-c", "user.name=A", "-c", "user.email=a@example.org"]
    for words in (
        ["init", "-q", "-b", "main"],
        ["remote", "add", "origin", "git@example.org:a/x.git"],
        ["add", "."],
        [*user, "commit", "-qm", "first"],
        [*user, "commit", "-qm", "second", "--allow-empty"],
    ):
        subprocess.run(["git", *words], cwd=root, check=True, env=environment, capture_output=True)
    seen = {"HOME": str(folder), "PATH": f"{PATH}:{_tools(folder)}", "GIT_PAGER": "cat", "PAGER": "cat"}
    return CommandContext(root, (root,), seen, lambda path: not path.name.lower().startswith(".env"), trusted=True)
