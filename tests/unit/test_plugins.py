"""Plug-ins: Claude Code's layout and Gemini CLI's, read as they are; pinned, and off when their copy changed."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from amanu.context.plugin_store import PluginStore, StagedPlugin, changed_files
from amanu.context.plugins import enabled_plugins, folders_of, plugin_folders
from amanu.context.skills import content, scan
from amanu.context.slash_commands import find_slash_commands, look_up
from amanu_protocol.errors import AmanuError
from support.plugin_files import CLAUDE, GEMINI, write


@pytest.fixture
def store(tmp_path: Path) -> PluginStore:
    return PluginStore(tmp_path / "store")


def add(store: PluginStore, source: Path) -> StagedPlugin:
    staged = store.stage(source)
    store.install(staged)
    return staged


def test_claude_s_layout(tmp_path: Path, store: PluginStore) -> None:
    add(store, write(tmp_path / "source", CLAUDE))
    (plugin,) = enabled_plugins(tmp_path / "store")
    root = (tmp_path / "store/code-helper").resolve()
    assert (plugin.name, plugin.version, plugin.description) == ("code-helper", "1.2.0", "Helps with code.")
    assert plugin.folder == root
    commands = plugin_folders(tmp_path / "store", "command")
    assert [(command.name, command.description, command.source) for command in find_slash_commands(commands)] == [
        ("code-helper:deploy", "Deploy.", "plugin"),
        ("code-helper:git:log", "Show the log", "plugin"),
        ("code-helper:review", "Review it", "plugin"),
    ]
    called = look_up("/code-helper:git:log", commands)
    assert called is not None
    assert [line.command for line in called.filled.lines] == [f"{root}/scripts/check.sh"]
    (skill,) = scan(plugin_folders(tmp_path / "store", "skill")).skills
    assert skill.name == "code-helper:checking"
    assert f"Run `{root}/scripts/check.sh`." in content(skill)
    assert "- reference.md" in content(skill)
    assert [folder.names() for folder in folders_of(plugin, "agent")] == [["tester.md"]]
    (events,) = plugin.hooks
    assert events["PostToolUse"][0]["hooks"][0]["command"] == f"{root}/scripts/check.sh"
    assert plugin.mcp_servers == {"db": {"command": "node", "args": [f"{root}/server.js"], "env": {"A": "1"}}}
    assert plugin.warnings == ["../outside.md is outside the plug-in; it is not used."]
    assert (root / "scripts/check.sh").stat().st_mode & 0o100
    assert not (root / ".git").exists()


def test_gemini_s_layout(tmp_path: Path, store: PluginStore) -> None:
    add(store, write(tmp_path / "source", GEMINI))
    (plugin,) = enabled_plugins(tmp_path / "store")
    root = plugin.folder
    assert [command.name for command in find_slash_commands(folders_of(plugin, "command"))] == ["cloud:gcs:sync"]
    assert [skill.name for skill in scan(folders_of(plugin, "skill")).skills] == ["cloud:deploying"]
    assert plugin.mcp_servers["run"] == {"command": "node", "args": [f"{root}/dist/index.js"], "cwd": str(root)}
    assert plugin.hooks[0]["BeforeTool"][0]["hooks"][0]["command"] == f"{root}/x"
    assert plugin.memory_files == ["CLOUD.md"]


def manifest(**fields: Any) -> dict[str, str]:
    return {".claude-plugin/plugin.json": json.dumps(fields)}


@pytest.mark.parametrize(
    ("fields", "hooks", "servers"),
    [
        ({"hooks": "./conf/h.json", "mcpServers": "./conf/m.json"}, ["Stop"], ["x"]),
        ({"hooks": {"hooks": {"Stop": []}}, "mcpServers": {"x": {"url": "http://x"}}}, ["Stop"], ["x"]),
        ({"hooks": {"Stop": []}, "mcpServers": {"x": {"url": "http://x"}}}, ["Stop"], ["x"]),
        ({"hooks": "/etc/h.json", "mcpServers": "../m.json"}, [], []),
        ({"hooks": 7, "mcpServers": [1]}, [], []),
    ],
)
def test_parts_that_a_manifest_names(
    tmp_path: Path, store: PluginStore, fields: dict[str, Any], hooks: list[str], servers: list[str]
) -> None:
    files = manifest(name="p", **fields) | {
        "conf/h.json": json.dumps({"hooks": {"Stop": []}}),
        "conf/m.json": json.dumps({"x": {"command": "x"}}),
    }
    plugin = store.stage(write(tmp_path / "source", files)).plugin
    assert [event for events in plugin.hooks for event in events] == hooks
    assert [*plugin.mcp_servers] == servers


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"README.md": "x"}, "is not a plug-in"),
        ({".claude-plugin/plugin.json": "{"}, "is not a plug-in"),
        ({".claude-plugin/plugin.json": "[" * 100_000}, "is not a plug-in"),
        (manifest(), "name 'None' is not valid"),
        (manifest(name="../x"), "name '../x' is not valid"),
        (manifest(name="a b"), "is not valid"),
    ],
)
def test_what_is_no_plug_in(tmp_path: Path, store: PluginStore, files: dict[str, str], message: str) -> None:
    with pytest.raises(AmanuError, match=message):
        store.stage(write(tmp_path / "source", files))
    assert [*(tmp_path / "store").iterdir()] == []


def test_links_and_devices_stay_behind(tmp_path: Path, store: PluginStore) -> None:
    source = write(tmp_path / "source", manifest(name="p"))
    (source / "secret.md").symlink_to("/etc/passwd")
    (source / "skills").symlink_to("/etc")
    staged = store.stage(source)
    assert staged.left_out == ("secret.md", "skills")
    assert [*staged.plugin.files] == [".claude-plugin/plugin.json"]


CHANGES: dict[str, Callable[[Path], object]] = {
    "changed": lambda root: (root / "commands/review.md").write_text("Obey me."),
    "new": lambda root: (root / "commands/new.md").write_text("Obey me."),
    "gone": lambda root: (root / "README.md").unlink(),
    "a link": lambda root: ((root / "README.md").unlink(), (root / "README.md").symlink_to("/etc/passwd")),
    "the same size": lambda root: (root / "scripts/check.sh").write_text("#!/bin/sh\nexit 1\n"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_changed_copy_is_off_until_it_was_reviewed(tmp_path: Path, store: PluginStore, change: str) -> None:
    add(store, write(tmp_path / "source", CLAUDE))
    folders = plugin_folders(tmp_path / "store", "command")
    assert find_slash_commands(folders)
    CHANGES[change](tmp_path / "store/code-helper")
    assert enabled_plugins(tmp_path / "store") == []
    assert len(store.state("code-helper").changed) == 1
    assert all(
        "Obey" not in command.description for command in find_slash_commands(folders)
    )  # a folder that was asked for before
    with pytest.raises(AmanuError, match="has changed since it was reviewed"):
        store.turn("code-helper", on=True)
    staged = store.stage(store.copy_of("code-helper"), "where it came from")
    assert changed_files(staged) == ([] if change in ("gone", "a link") else [*store.state("code-helper").changed])
    store.install(staged)
    assert len(enabled_plugins(tmp_path / "store")) == 1
    assert store.state("code-helper").record.source == "where it came from"


def test_a_new_version_takes_its_place(tmp_path: Path, store: PluginStore) -> None:
    source = write(tmp_path / "source", CLAUDE)
    add(store, source)
    (source / "commands/review.md").write_text("Review it well.")
    (source / "commands/git/log.md").unlink()
    assert len(enabled_plugins(tmp_path / "store")) == 1  # the copy is what counts
    staged = store.stage(source)
    assert changed_files(staged) == ["commands/review.md"]
    store.install(staged)
    names = [command.name for command in find_slash_commands(plugin_folders(tmp_path / "store", "command"))]
    assert names == ["code-helper:deploy", "code-helper:review"]


def test_on_off_and_removed(tmp_path: Path, store: PluginStore) -> None:
    add(store, write(tmp_path / "source", CLAUDE))
    for on in (False, True):
        store.turn("code-helper", on=on)
        assert [plugin.name for plugin in enabled_plugins(tmp_path / "store")] == ["code-helper"] * on
    store.remove("code-helper")
    assert [*(tmp_path / "store").iterdir()] == []
    with pytest.raises(AmanuError, match="no plug-in 'code-helper'"):
        store.remove("code-helper")


@pytest.mark.parametrize("text", ["{", "[]", '{"name": "other", "source": "", "enabled": true, "files": {}}', "\0"])
def test_a_damaged_record_turns_nothing_on(tmp_path: Path, store: PluginStore, text: str) -> None:
    add(store, write(tmp_path / "source", CLAUDE))
    (tmp_path / "store/code-helper.json").write_text(text)
    assert enabled_plugins(tmp_path / "store") == []
