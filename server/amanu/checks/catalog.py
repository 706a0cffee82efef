"""The checkers Amanu knows, as data: language servers and linters that can check a text which is not in a file yet.

Checkers that have to write into the workspace are left out: rust-analyzer builds into `target/`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

Reads = Literal["lsp", "eslint", "shellcheck"]
"""How it is used: as a language server; or with the text on standard input, and that program's JSON on standard
output."""

_PYTHON = {".py": "python", ".pyi": "python"}
_SCRIPT = {
    ".js": "javascript",
    ".mjs": "javascript",
    ".cjs": "javascript",
    ".jsx": "javascriptreact",
    ".ts": "typescript",
    ".mts": "typescript",
    ".cts": "typescript",
    ".tsx": "typescriptreact",
}
_C = {
    ".c": "c",
    ".h": "c",
    ".cc": "cpp",
    ".cpp": "cpp",
    ".cxx": "cpp",
    ".hh": "cpp",
    ".hpp": "cpp",
    ".m": "objective-c",
    ".mm": "objective-cpp",
}


@dataclass(frozen=True)
class Checker:
    """A checker. `name` is for the user and the settings. The first of `commands` whose program is installed is
    used."""

    name: str
    languages: Mapping[str, str]
    """File name suffix → LSP language identifier."""
    commands: tuple[tuple[str, ...], ...]
    reads: Reads = "lsp"
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """The configuration a server gets when it asks, by section."""
    environment: Mapping[str, str] = field(default_factory=dict[str, str])
    """Variables set for it. A leading `~` is the user's home."""
    silent: float | None = None
    """Seconds of silence that mean "no change", for a server that publishes only changes."""
    caches: tuple[str, ...] = ()
    """Folders below the user's home that it needs. They are readable for it; it writes its caches elsewhere."""
    markers: tuple[str, ...] = ()
    """Globs of file names. The checker runs only where the file's folder or one above it has such a file."""


CHECKERS: tuple[Checker, ...] = (
    Checker("ruff", _PYTHON, (("ruff", "server"),)),
    Checker(
        "pyright",
        _PYTHON,
        (("basedpyright-langserver", "--stdio"), ("pyright-langserver", "--stdio")),
        # The package on PyPI is a wrapper that keeps the program itself here.
        environment={"PYRIGHT_PYTHON_CACHE_DIR": "~/.cache/pyright-python"},
        caches=(".cache/pyright-python",),
    ),
    Checker(
        "typescript",
        _SCRIPT,
        (("typescript-language-server", "--stdio"), ("tsgo", "--lsp", "--stdio")),
        silent=4.0,
    ),
    Checker(
        "eslint",
        _SCRIPT,
        (("eslint", "--format", "json", "--stdin", "--stdin-filename"),),
        "eslint",
        markers=("eslint.config.*", ".eslintrc*"),
    ),
    Checker(
        "gopls",
        {".go": "go"},
        (("gopls",),),
        # It asks `go` about packages, which would fetch modules and whole toolchains.
        environment={"GOPROXY": "off", "GOTOOLCHAIN": "local", "GOFLAGS": "-mod=readonly"},
        caches=("go/pkg/mod",),
    ),
    # Its index would be written into the workspace (.cache/clangd).
    Checker("clangd", _C, (("clangd", "--background-index=false", "--log=error"),)),
    Checker("lua", {".lua": "lua"}, (("lua-language-server",),)),
    Checker(
        "shellcheck", {".sh": "sh", ".bash": "bash"}, (("shellcheck", "--format=json", "--norc", "-"),), "shellcheck"
    ),
)


def has_checker(path: Path) -> bool:
    """Whether there is a checker for such files, installed or not."""
    return any(path.suffix.lower() in checker.languages for checker in CHECKERS)
