"""What can look at a text that is in no file yet: language servers and linters, as data.

Left out is what must write into the workspace to look at it: rust-analyzer builds into `target/`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Reads = Literal["lsp", "eslint", "shellcheck"]
"""How it is talked to: as a language server; or text on its standard input, and JSON of that program on its output."""

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
    """`name` is for the user and the settings. Of `commands` the first whose program is there is used."""

    name: str
    languages: Mapping[str, str]
    """File name suffix → LSP's word for the language."""
    commands: tuple[tuple[str, ...], ...]
    reads: Reads = "lsp"
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """What a server that asks for its configuration is told, by section."""
    environment: Mapping[str, str] = field(default_factory=dict[str, str])
    """A leading `~` is the user's home."""
    silent: float | None = None
    """Seconds without a word after which nothing has changed, for a server that publishes only what did."""
    caches: tuple[str, ...] = ()
    """Folders below the user's home that it cannot work without; it sees them, and writes elsewhere."""
    beside: tuple[str, ...] = ()
    """Patterns of file names. It has something to say only where a file's folder or one above it has such a file."""


CHECKERS: tuple[Checker, ...] = (
    Checker("ruff", _PYTHON, (("ruff", "server"),)),
    Checker(
        "pyright",
        _PYTHON,
        (("basedpyright-langserver", "--stdio"), ("pyright-langserver", "--stdio")),
        # Where the one from PyPI keeps the program it is a wrapper of.
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
        beside=("eslint.config.*", ".eslintrc*"),
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
