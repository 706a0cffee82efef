"""`amanu …`: which part of Amanu to start. Each verb's module is imported only when it is the one asked for."""

import importlib
import os
import sys
from io import TextIOWrapper
from typing import cast

from amanu.home import hide_memory
from amanu.parts import verbs

VERBS = {
    "serve": ("amanu.daemon.serve", "language server on stdin/stdout, for an editor (--alone: no shared daemon)"),
    "acp": ("amanu.cli.acp", "Agent Client Protocol on stdin/stdout, for Zed, JetBrains and other clients"),
    "chat": ("amanu.cli.chat", "chat in the terminal"),
    "run": ("amanu.cli.run", "run one prompt without asking anybody, for scripts and CI"),
    "demo": ("amanu.cli.demo", "watch it fix a small sample project; needs no key"),
    "tool": ("amanu.cli.tool", "use one tool, under the same policy"),
    "policy": ("amanu.cli.policy", "show what is allowed without asking, and by which rule"),
    "sessions": ("amanu.cli.sessions", "list, show, rename, delete sessions"),
    "audit": ("amanu.cli.audit", "show what was asked, decided and done, and check that the log is intact"),
    "trust": ("amanu.cli.trust", "show which folders you trust, and what that enables"),
    "mcp": ("amanu.cli.mcp", "list, add, import and turn off MCP servers, whose tools the agent can use"),
    "plugin": (
        "amanu.cli.plugin",
        "add, list and remove plug-ins: folders with skills, commands, agents, hooks, servers",
    ),
    **verbs(),
    "models": ("amanu.cli.models", "list the models, with window, price and what is about to be shut down"),
    "auth": ("amanu.cli.auth", "manage the keys of model services"),
    "doctor": ("amanu.cli.doctor", "check the setup and say what to do"),
    "logs": ("amanu.cli.logs", "print the end of the log"),
    "completion": ("amanu.cli.completion", "print the script that completes commands in bash, zsh or fish"),
    "version": ("amanu.cli.version", "show the version, the Python it runs on and where it is installed"),
}


def main() -> int:
    """Run the verb named by the first argument. Returns the exit code: 2 for wrong usage."""
    argv = sys.argv[1:]
    if getattr(sys.stdout, "errors", None) == "strict":  # not every terminal has every character
        cast("TextIOWrapper", sys.stdout).reconfigure(errors="backslashreplace")
    if argv[:1] == ["--version"]:
        from amanu import __version__

        print(f"amanu {__version__}")
        return 0
    if not argv or argv[0] in ("-h", "--help", "help"):
        print(_usage())
        return 0 if argv else 2
    if argv[0] not in VERBS:
        print(_unknown(argv[0]), file=sys.stderr)
        return 2
    hide_memory()
    try:
        if argv[0] == "chat":
            from amanu.cli.ui.first_paint import painted

            with painted(argv[1:]):
                return importlib.import_module(VERBS[argv[0]][0]).main(argv[1:])
        return importlib.import_module(VERBS[argv[0]][0]).main(argv[1:])
    except KeyboardInterrupt:
        return 130  # as a shell has it for a program that Ctrl-C ended
    except BrokenPipeError:  # the reader left, as `head` does; nothing more can be flushed to it, also not at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except PermissionError as error:  # of our own folders
        print(f"amanu: {error}", file=sys.stderr)
        return 1
    except FileNotFoundError:
        if not _is_folder_gone():
            raise
        print("The current folder was deleted. Change to one that exists, with cd, and try again.", file=sys.stderr)
        return 2


def _is_folder_gone() -> bool:
    try:
        os.getcwd()  # noqa: PTH109  whether it raises is the question
    except FileNotFoundError:
        return True
    return False


ELSEWHERE = {
    "--continue": "amanu chat --continue",
    "--print": "amanu run PROMPT",
    "-c": "amanu chat --continue",
    "-p": "amanu run PROMPT",
    "config": "amanu doctor, which says where config.toml is",
    "continue": "amanu chat --continue",
    "login": "amanu auth set VENDOR for a key, or amanu auth login for a ChatGPT plan",
    "logout": "amanu auth forget VENDOR, or amanu auth logout",
    "resume": "amanu chat --continue, or amanu chat --session ID; amanu sessions lists them",
    "update": "what Amanu was installed with, such as uv tool upgrade amanu; amanu version says where it is",
    "upgrade": "what Amanu was installed with, such as uv tool upgrade amanu; amanu version says where it is",
}
"""Words that other agents have for something, and what does it here."""


def _unknown(word: str) -> str:
    from difflib import get_close_matches

    if word in ELSEWHERE:
        return f"amanu: unknown command {word!r}. Use {ELSEWHERE[word]}. `amanu --help` lists all."
    near = get_close_matches(word, VERBS, 1, 0.6)
    if not near:
        return f"amanu: unknown command {word!r}\n\n{_usage()}"
    return f"amanu: unknown command {word!r}. Did you mean {near[0]}? `amanu --help` lists all."


def _usage() -> str:
    lines = [f"  {name:<12}{what}" for name, (_, what) in VERBS.items()]
    return "\n".join(("usage: amanu COMMAND [--help]", "", *lines, "", "  --version"))


if __name__ == "__main__":
    sys.exit(main())
