"""`amanu plugin`: plug-ins from local folders, reviewed file by file before they are on."""

import argparse
import difflib
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from amanu.cli import exits
from amanu.cli.text import one_line, visible
from amanu.context.extension_files import ExtensionKind
from amanu.context.plugin_manifest import Plugin
from amanu.context.plugin_store import PluginStore, StagedPlugin, changed_files
from amanu.context.plugins import PluginState, folders_of
from amanu.context.skills import scan
from amanu.context.slash_commands import find_slash_commands
from amanu.home import find_home
from amanu_protocol.errors import AmanuError

MAX_SHOWN = 200_000
"""Characters of one file; of a longer one, and of one that is no text, only size and digest are shown."""
LAYOUTS = {"claude": "Claude Code's layout", "gemini": "a Gemini CLI extension"}


def parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="amanu plugin",
        description="Add folders with skills, commands, agents, hooks and MCP servers. They are copied, and on "
        "only after you have reviewed their files.",
        epilog="exit codes: 0 done · 1 failed · 2 wrong usage · 3 not approved: nothing was changed",
    )
    commands = parser.add_subparsers(dest="command", required=True)
    add = commands.add_parser(
        "add", help="review a local folder (Claude Code plug-in, Gemini CLI extension), and add it"
    )
    add.add_argument("path", metavar="PATH")
    show = commands.add_parser("list", help="list them: on, off or changed, and what each contains")
    show.add_argument("--json", action="store_true", help="one JSON object")
    enable = commands.add_parser("enable", help="turn one on; if its copy has changed, review the changes first")
    for subparser in (add, enable):
        subparser.add_argument("--yes", action="store_true", help="no questions: needs --digest")
        subparser.add_argument("--digest", metavar="DIGEST", help="of the reviewed files, as it was printed")
    disable = commands.add_parser("disable", help="turn one off")
    remove = commands.add_parser("remove", help="remove one, and its copy")
    for subparser in (enable, disable, remove):
        subparser.add_argument("name", metavar="NAME")
    return parser


def main(argv: list[str]) -> int:
    arguments = parser().parse_args(argv or ["list"])
    store = PluginStore(find_home().plugins)
    try:
        match arguments.command:
            case "add":
                source = Path(arguments.path).expanduser().absolute()
                return _review_and_install(store, store.stage(source), arguments)
            case "enable":
                return _enable(store, arguments)
            case "disable":
                store.turn(arguments.name, on=False)
                print(f"{arguments.name} is off.")
            case "remove":
                store.remove(arguments.name)
                print(f"{arguments.name} is removed.")
            case _:
                _list(store.states(), as_json=arguments.json)
    except AmanuError as error:
        print(visible(f"{error} {error.data.hint or ''}".rstrip()), file=sys.stderr)
        return exits.of_error(error)
    return exits.OK


# Review ---------------------------------------------------------------------------------------------------


def _enable(store: PluginStore, arguments: argparse.Namespace) -> int:
    state = store.state(arguments.name)
    if state.changed or state.plugin is None:
        staged = store.stage(store.copy_of(arguments.name), state.record.source)
        if staged.plugin.name != arguments.name:
            store.discard(staged)
            raise AmanuError(
                "invalidParams", "The plug-in's name has changed since it was added. Remove it and add it again."
            )
        return _review_and_install(store, staged, arguments)
    store.turn(arguments.name, on=True)
    print(f"{arguments.name} is on.")
    return exits.OK


def _review_and_install(store: PluginStore, staged: StagedPlugin, arguments: argparse.Namespace) -> int:
    installed = False
    try:
        if _is_approved(store, staged, arguments):
            store.install(staged)
            installed = True
            print(f"\n{staged.plugin.name} is on. Its skills and commands are /{staged.plugin.name}:NAME.")
            return exits.OK
    finally:
        if not installed:
            store.discard(staged)
    return exits.DENIED


def _is_approved(store: PluginStore, staged: StagedPlugin, arguments: argparse.Namespace) -> bool:
    digest = staged.plugin.digest
    if arguments.yes:
        if arguments.digest == digest:
            return True
        raise AmanuError(
            "invalidParams",
            f"--yes needs the digest of the files you reviewed; these files have the digest {digest}.",
            hint="Review them without --yes first.",
        )
    print("\n".join(_summary(staged)))
    paths = changed_files(staged)
    if not sys.stdin.isatty():
        for path in paths:
            _show(store, staged, path)
        again = "enable" if arguments.command == "enable" else "add"
        named = arguments.name if again == "enable" else arguments.path
        print(f"\nNothing was changed. To approve: amanu plugin {again} --yes --digest {digest} {one_line(named)}")
        return False
    for number, path in enumerate(paths, 1):
        _show(store, staged, path)
        answer = _ask(f"[{number}/{len(paths)}] y: approve this file · a: approve the rest · n: stop here > ")
        if answer == "a":
            break
        if answer != "y":
            print("Nothing was changed.")
            return False
    return bool(paths) or _ask("You have already reviewed all of it. Turn it on? y/n > ") == "y"


def _ask(question: str) -> str:
    try:
        return input(question).strip().lower()[:1]
    except (EOFError, KeyboardInterrupt):
        return "n"


def _summary(staged: StagedPlugin) -> list[str]:
    plugin = staged.plugin
    head = f"{plugin.name} {plugin.version}".rstrip()
    lines = [f"{head}, {LAYOUTS[plugin.layout]}, from {one_line(staged.source)}"]
    lines += [f"  {plugin.description}"] if plugin.description else []
    lines += [f"  {line}" for line in _parts(plugin)]
    lines += [f"  warning: {warning}" for warning in plugin.warnings]
    lines += [f"  left out, because it is not a regular file: {one_line(path)}" for path in staged.left_out[:20]]
    if staged.previous is not None:
        gone = sorted({*staged.previous.record.files} - {*plugin.files})
        lines.append(f"  It replaces the one added from {one_line(staged.previous.record.source)}.")
        lines += [f"  no longer in it: {one_line(path)}" for path in gone[:20]]
    lines.append(f"  {len(plugin.files)} files; digest {plugin.digest}")
    return lines


def _parts(plugin: Plugin) -> list[str]:
    """What a plug-in carries, a line for each part. Blocks."""
    skills = scan(folders_of(plugin, "skill"))
    commands = find_slash_commands(folders_of(plugin, "command"))
    lines = [f"skill /{skill.name}: {one_line(skill.description)}" for skill in skills.skills]
    lines += [f"command /{command.name}: {one_line(command.description)}" for command in commands]
    lines += [f"agent {one_line(name)}" for name in _names(plugin, "agent")]
    for events in plugin.hooks:
        lines += [f"hook {one_line(event)}: {one_line(json.dumps(groups))}" for event, groups in events.items()]
    lines += [f"MCP server {one_line(name)}: {one_line(_start(server))}" for name, server in plugin.mcp_servers.items()]
    lines += [f"memory {one_line(path)}" for path in plugin.memory_files]
    lines += [f"warning: {one_line(warning)}" for warning in skills.warnings]
    return [line.replace(str(plugin.folder), "${PLUGIN_ROOT}") for line in lines]


def _names(plugin: Plugin, kind: ExtensionKind) -> list[str]:
    return [name.rpartition(".")[0] for folder in folders_of(plugin, kind) for name in folder.names()]


def _start(server: Mapping[str, Any]) -> str:
    """What starts a server: its command line, else all of its configuration."""
    command, arguments = server.get("command"), server.get("args")
    return json.dumps(dict(server) if command is None else [command, arguments or []], ensure_ascii=False)


def _show(store: PluginStore, staged: StagedPlugin, path: str) -> None:
    """One file: its diff if an approved form of it is in the store, else all of it."""
    data = (staged.plugin.folder / path).read_bytes()
    print(f"\n── {one_line(path)} · {len(data):,} bytes · {staged.plugin.files[path]}")
    text = _text(data)
    if text is None:
        print("(not shown: not text, or too long)")
        return
    earlier = _approved_text(store, staged.previous, path)
    if earlier is None:
        print(visible(text), end="" if text.endswith("\n") else "\n")
        return
    lines = difflib.unified_diff(visible(earlier).splitlines(), visible(text).splitlines(), lineterm="", n=3)
    print("\n".join(list(lines)[2:]))


def _approved_text(store: PluginStore, previous: PluginState | None, path: str) -> str | None:
    if previous is None or path not in previous.record.files or path in previous.changed:
        return None
    try:
        return _text((store.copy_of(previous.record.name) / path).read_bytes())
    except OSError:
        return None


def _text(data: bytes) -> str | None:
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return None
    return text if len(text) <= MAX_SHOWN and "\0" not in text else None


# List -----------------------------------------------------------------------------------------------------


def _list(states: list[PluginState], *, as_json: bool) -> None:
    if as_json:
        print(json.dumps({"plugins": [_as_json(state) for state in states]}, indent=2))
        return
    if not states:
        print("There are no plug-ins. Add one with: amanu plugin add PATH")
    for state in states:
        version = state.plugin.version if state.plugin is not None else ""
        print(f"{f'{state.record.name} {version}'.rstrip()}: {_standing(state)}, from {one_line(state.record.source)}")
        for path in state.changed[:10]:
            print(f"  changed: {one_line(path)}")
        if state.fault:
            print(f"  {visible(state.fault)}")
        for line in _parts(state.plugin) if state.plugin is not None and not state.changed else ():
            print(f"  {line}")
        if state.changed:
            print(f"  To review the changes and turn it on: amanu plugin enable {state.record.name}")


def _standing(state: PluginState) -> str:
    if state.changed or state.plugin is None:
        return "off, because its copy has changed"
    return "on" if state.is_on else "off"


def _as_json(state: PluginState) -> dict[str, Any]:
    plugin = state.plugin
    return {
        "name": state.record.name,
        "version": plugin.version if plugin is not None else "",
        "layout": plugin.layout if plugin is not None else None,
        "source": state.record.source,
        "on": state.is_on,
        "changed": list(state.changed),
        "digest": plugin.digest if plugin is not None else None,
        "parts": _parts(plugin) if plugin is not None and not state.changed else [],
    }
