"""`man amanu`: one page with all commands, from their parsers."""

import argparse
import re
from collections.abc import Iterator

from support.command_line import actions, subcommands

_HEAD = """\
.TH AMANU 1 "" Amanu "User commands"
.nh
.ad l
.SH NAME
amanu \\- an AI pair programmer that lives behind the editor
.SH SYNOPSIS
.B amanu
.I COMMAND
.RI [ options ]
.br
.B amanu \\-\\-version
.SH DESCRIPTION
Amanu is a daemon that your editors and terminals share. It proposes changes, and writes none without your approval.
.B amanu chat
opens a chat in a terminal,
.B amanu run
answers one prompt in a script,
.B amanu doctor
checks the setup.
.B amanu demo
shows it at work and needs no key.
"""
_TAIL = """\
.SH ENVIRONMENT
.TP
.B AMANU_HOME
Put settings, sessions, logs and the socket into this folder.
.TP
.B NO_COLOR
Do not use colours.
.SH FILES
.B amanu doctor
prints the folders.
Settings are in
.IR ~/.config/amanu/config.toml ,
on macOS in
.IR "~/Library/Application Support/amanu/config/config.toml" .
.SH SEE ALSO
.BI amanu " COMMAND " \\-\\-help
prints the options of a command.
"""


def man_page(parser: argparse.ArgumentParser) -> str:
    lines = [".SH COMMANDS"]
    for action in actions(parser):
        for name, (_, command) in subcommands(action).items():
            lines += _command(f"amanu {name}", command)
    return _HEAD + "\n".join(lines) + "\n" + _TAIL


def _command(name: str, parser: argparse.ArgumentParser) -> Iterator[str]:
    yield f".SS {_escaped(name)}"
    below = {key: value for action in actions(parser) for key, value in subcommands(action).items()}
    if not below:
        yield from _usage(name, parser)
    yield ".PP"
    yield from _prose(parser.description or "")
    yield from _arguments(parser)
    for key, (description, each) in below.items():
        yield from _usage(f"{name} {key}", each)
        yield ".RS"
        yield from _prose(_sentence(description))
        yield from _arguments(each)
        if each.epilog:
            yield ".PP"
            yield from _prose(_sentence(each.epilog))
        yield ".RE"
    if parser.epilog:
        yield ".PP"
        yield from _prose(_sentence(parser.epilog))


def _usage(name: str, parser: argparse.ArgumentParser) -> Iterator[str]:
    formatter = argparse.HelpFormatter(prog=name, width=100_000)
    formatter.add_usage(None, actions(parser), parser._mutually_exclusive_groups, prefix="")  # pyright: ignore
    usage = formatter.format_help().strip().removeprefix(name).strip()
    usage = re.sub(
        r"--([\w-]+-)?(\w+) {[^}]*}", lambda option: f"--{option[1] or ''}{option[2]} {option[2].upper()}", usage
    )
    yield ".PP"
    yield f".B {_escaped(name)}"
    if usage:
        yield re.sub(r"\[[^]]*\]", lambda group: group[0].replace(" ", "\\ "), _escaped(usage))


def _arguments(parser: argparse.ArgumentParser) -> Iterator[str]:
    for action in actions(parser):
        if action.help and not subcommands(action):
            yield ".TP"
            yield _heading(action)
            yield from _prose(_sentence(parser._get_formatter()._expand_help(action)))  # pyright: ignore


def _heading(action: argparse.Action) -> str:
    """Options are bold, what the user replaces is in italics."""
    metavar = action.metavar if isinstance(action.metavar, str) else ""
    if not metavar and action.choices is not None and action.nargs != 0:
        metavar = "|".join(str(choice) for choice in action.choices)
    if not action.option_strings:
        return f".I {_escaped(metavar or action.dest)}"
    options = ", ".join(action.option_strings)
    if action.nargs == 0:
        return f".B {_escaped(options)}"
    return f'.BI "{_escaped(options)} " "{_escaped(metavar or action.dest.upper())}"'


def _sentence(text: str) -> str:
    """The sentence, with a capital unless it begins with a value, and a full stop."""
    first = text[:1].upper() + text[1:] if re.match(r"[a-z]+:? ", text) else text
    return first if first.endswith((".", "…")) or " | " in first else f"{first}."


def _prose(text: str) -> Iterator[str]:
    """One sentence a line."""
    for line in re.split(r"(?<=[.!?]) (?=[A-Z])", " ".join(text.split())):
        yield _escaped(line)


def _escaped(text: str) -> str:
    """The text as roff: backslashes escaped, minuses that can be copied, no request at the beginning of a line."""
    escaped = text.replace("\\", "\\e").replace("-", "\\-").replace('"', "\\(dq")
    return f"\\&{escaped}" if escaped.startswith((".", "'")) else escaped
