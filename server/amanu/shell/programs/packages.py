"""Package managers, compilers and other tools, where they only print: mostly their version.

Little is harmless here: npm writes a log with every command but `--version`, and java a file in /tmp with every command
(measured); yarn, pnpm, cargo, rustc and go can start another version of themselves that the workspace names; pytest
before 8.4, flake8 and poetry load workspace plugins to print their version; `python -m` looks into the folder first."""

import sys
from collections.abc import Mapping
from pathlib import Path

from amanu.shell.call import Harmless, NotHarmless, ProgramCall
from amanu.shell.spec import Judge, Use

_VERSION = "Shows its version."


def _version(*flags: str, unless: str = "") -> Judge:
    """A grammar for one of these flags and nothing else, `unless` one of these files is in the folder or above it."""

    def judge(call: ProgramCall) -> Harmless:
        if len(call.arguments) != 1 or call.values[0] not in flags:
            raise NotHarmless(f"{call.program} is not known to be read-only with these arguments.")
        for name in unless.split():
            for folder in (call.context.folder, *call.context.folder.parents):
                if (folder / name).exists():
                    raise NotHarmless(f"{folder / name} can make {call.program} start another version of itself.")
        return Harmless(_VERSION)

    return judge


def _pip(call: ProgramCall) -> Harmless:
    if not call.arguments:
        return Harmless("Shows its help.")
    match call.values[0]:
        case "--version" | "-V":
            return _version("--version", "-V")(call)
        case "list":
            return _PIP_LIST(call.without_first(1))
        case "show":
            return _PIP_SHOW(call.without_first(1))
        case "freeze":
            return _PIP_FREEZE(call.without_first(1))
        case _:
            raise NotHarmless("pip is not known to be read-only with these arguments.")


_PIP_LIST = Use(  # not --outdated: it asks the index
    "Lists installed packages.",
    "--format= -l --local --user --pre --not-required --exclude= --disable-pip-version-check -q -v --exclude-editable",
)
_PIP_SHOW = Use("Shows installed packages.", "-f --files --disable-pip-version-check -q -v", ("text*",))
_PIP_FREEZE = Use("Lists installed packages.", "-l --local --user --all --exclude= --exclude-editable -q")

_PYTHON = _version("--version", "-V", "-VV")
JSON_TOOL = Use(  # a second operand is a file it writes
    "Formats JSON.",
    "--sort-keys --no-ensure-ascii --json-lines --indent= --tab --no-indent --compact",
    ("file",),
)
_MODULES = {"sitecustomize", "usercustomize", *(name.lower() for name in sys.stdlib_module_names)}


def _python(call: ProgramCall) -> Harmless:
    """`python -m` looks for its modules in the folder first, so the folder may contain none of those names, nor one
    with a leading underscore: the private ones differ from version to version."""
    if call.values[:2] != ("-m", "json.tool"):
        return _PYTHON(call)
    try:
        entry_names = [entry.name for entry in call.context.folder.iterdir()]
    except OSError:
        raise NotHarmless(f"The folder {call.context.folder} could not be listed.") from None
    for name in entry_names:
        module = name.partition(".")[0].lower()
        if module in _MODULES or (module.startswith("_") and module not in ("__pycache__", "__init__")):
            raise NotHarmless(f"Python would find {name} in {call.context.folder} before its own modules.")
    return JSON_TOOL(call.without_first(2))


_PLAIN = _version("--version")
_RUST_VERSION = _version("--version", "-V", "-vV", unless="rust-toolchain rust-toolchain.toml")


def _rust(call: ProgramCall) -> Harmless:
    """These names usually start rustup, which writes its settings when it first runs in a home folder."""
    environment = call.context.environment
    home = Path(environment.get("RUSTUP_HOME") or f"{environment.get('HOME', '')}/.rustup")
    if not (home / "settings.toml").is_file():
        raise NotHarmless(f"{call.program} may set up rustup in the home folder.")
    return _RUST_VERSION(call)


PROGRAMS: Mapping[str, Judge] = {
    **{
        name: _PLAIN
        for name in (
            *(
                "cmake",
                "ninja",
                "gcc",
                "g++",
                "cc",
                "c++",
                "clang",
                "clang++",
                "ld",
                "gdb",
                "make",
                "bash",
                "zsh",
                "curl",
            ),
            *("wget", "ssh-keygen", "tmux", "vim", "nvim", "rsync", "gh", "shellcheck", "black", "bwrap"),
            *(
                "psql",
                "mysql",
                "sqlite3",
                "redis-cli",
                "dotnet",
                "swift",
                "brew",
                "code",
                "uv",
                "ruff",
            ),
            *("pandoc", "strace", "ccache", "ldd", "perl", "ruby", "lua", "helm", "mypy", "isort", "coverage"),
        )
    },
    **{name: _python for name in ("python", "python3", *(f"python3.{minor}" for minor in range(10, 15)))},
    **{name: _version("--version", "-v") for name in ("node", "deno", "php")},
    "npm": _version("--version", "-v"),
    "npx": _version("--version", "-v"),
    "lua": _version("-v"),
    "openssl": _version("version"),
    "ffmpeg": _version("-version"),
    "ssh": _version("-V"),
    "pip": _pip,
    "pip3": _pip,
    **{name: _rust for name in ("cargo", "rustc", "rustup", "rustfmt")},
    "go": _version("version", unless="go.mod go.work"),
}
