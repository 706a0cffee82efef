"""Gemini CLI, OpenCode and Codex, as npm has them, with telemetry and update checks off."""

import json
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bench.subject import Agent, Deed, Place, Subject
from bench.subjects.acp import AcpAgent
from bench.subjects.codex import CodexAgent, codex_config
from bench.subjects.environment import PEERS, ROOT, environment

PACKAGES = {"Gemini CLI": "@google/gemini-cli", "OpenCode": "opencode-ai", "Codex": "@openai/codex"}


def install() -> None:
    """From npm into `.tools/peers`. Raises CalledProcessError, FileNotFoundError."""
    PEERS.mkdir(parents=True, exist_ok=True)
    (PEERS / "package.json").write_text('{"private": true}\n')
    subprocess.run(
        [_npm(), "install", "--no-audit", "--no-fund", "--loglevel=error", *PACKAGES.values()], cwd=PEERS, check=True
    )


def peers() -> tuple[list[Subject], list[str]]:
    """The programs that are installed, and a line for each that is not."""
    found: list[Subject] = []
    missing: list[str] = []
    for name, package in PACKAGES.items():
        manifest = PEERS / "node_modules" / package / "package.json"
        if not manifest.exists():
            missing.append(f"{name} is not installed (`python -m bench --install-peers`): skipped")
            continue
        version = json.loads(manifest.read_text())["version"]
        wire, start, uses = _DRIVERS[name]
        found.append(Subject(name, wire, False, start, uses, version))
    return found, missing


def _npm() -> str:
    own = ROOT / ".venv" / "bin" / "npm"
    return str(own) if own.exists() else shutil.which("npm") or "npm"


def _bin(name: str) -> str:
    return str(PEERS / "node_modules" / ".bin" / name)


# Gemini CLI -----------------------------------------------------------------------------------------


async def _start_gemini(place: Place) -> Agent:
    settings = {
        "security": {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": False}},
        "privacy": {"usageStatisticsEnabled": False},
        "telemetry": {"enabled": False},
        "general": {"enableAutoUpdate": False, "enableAutoUpdateNotification": False},
        "model": {"name": "gemini-2.5-flash", "maxSessionTurns": -1},
    }
    _write(place.home / ".gemini" / "settings.json", settings)
    env = gemini_environment(place)
    node = shutil.which("node") or "node"
    script = PEERS / "node_modules" / "@google" / "gemini-cli" / "bundle" / "gemini.js"
    agent = AcpAgent("gemini-api-key")
    return await agent.start([node, str(script), "--acp", "--model", "gemini-2.5-flash"], env, place)


def gemini_environment(place: Place) -> dict[str, str]:
    return environment(
        place.home,
        GEMINI_API_KEY="dummy",
        GOOGLE_GEMINI_BASE_URL=place.url,
        GEMINI_CLI_NO_RELAUNCH="1",
        GEMINI_TELEMETRY_ENABLED="false",
    )


def _gemini_uses(deed: Deed, what: Mapping[str, str]) -> dict[str, Any] | None:
    match deed:
        case "read":
            return {"tool": "read_file", "arguments": {"file_path": what["path"]}}
        case "grep":
            return {"tool": "grep_search", "arguments": {"pattern": what["pattern"]}}
        case "glob":
            return {"tool": "glob", "arguments": {"pattern": what["pattern"]}}
        case "edit":
            arguments = {"file_path": what["path"], "old_string": what["old"], "new_string": what["new"]}
            return {"tool": "replace", "arguments": {**arguments, "instruction": "Change the line."}}
        case "hunks":
            return {"tool": "write_file", "arguments": {"file_path": what["path"], "content": _rewritten(what)}}
        case "run":
            return {"tool": "run_shell_command", "arguments": {"command": what["command"]}}


# OpenCode -------------------------------------------------------------------------------------------


async def _start_opencode(place: Place) -> Agent:
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "name": "Bench",
        "options": {"baseURL": f"{place.url}/v1", "apiKey": "dummy"},
        "models": {"m": {"name": "m", "tool_call": True, "limit": {"context": 1_000_000, "output": 32_000}}},
    }
    settings = {
        "autoupdate": False,
        "share": "disabled",
        "model": "bench/m",
        "small_model": "bench/m",
        "enabled_providers": ["bench"],
        "provider": {"bench": provider},
        "permission": {"edit": "ask", "external_directory": "allow", "doom_loop": "allow"},
    }
    _write(place.home / ".config" / "opencode" / "opencode.json", settings)
    env = environment(
        place.home,
        OPENCODE_DISABLE_AUTOUPDATE="1",
        OPENCODE_DISABLE_MODELS_FETCH="1",
        OPENCODE_DISABLE_LSP_DOWNLOAD="1",
        OPENCODE_DISABLE_DEFAULT_PLUGINS="1",
    )
    return await AcpAgent().start([_bin("opencode"), "acp"], env, place)


def _opencode_uses(deed: Deed, what: Mapping[str, str]) -> dict[str, Any] | None:
    match deed:
        case "read":
            return {"tool": "read", "arguments": {"filePath": what["path"]}}
        case "grep":
            return {"tool": "grep", "arguments": {"pattern": what["pattern"]}}
        case "glob":
            return {"tool": "glob", "arguments": {"pattern": what["pattern"]}}
        case "edit":
            arguments = {"filePath": what["path"], "oldString": what["old"], "newString": what["new"]}
            return {"tool": "edit", "arguments": arguments}
        case "hunks":
            return {"tool": "write", "arguments": {"filePath": what["path"], "content": _rewritten(what)}}
        case "run":
            return {"tool": "bash", "arguments": {"command": what["command"], "description": "Run it."}}


# Codex ----------------------------------------------------------------------------------------------


async def _start_codex(place: Place) -> Agent:
    folder = place.home / ".codex"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.toml").write_text(codex_config(place.url, place.workspace))
    env = environment(place.home, CODEX_HOME=str(folder), BENCH_KEY="dummy")
    return await CodexAgent().start([native_codex(), "app-server"], env, place)


def native_codex() -> str:
    """The program itself: its npm launcher starts Node first."""
    found = sorted((PEERS / "node_modules" / "@openai").glob("codex-*/vendor/*/bin/codex"))
    return str(found[0]) if found else _bin("codex")


def _codex_uses(deed: Deed, what: Mapping[str, str]) -> dict[str, Any] | None:
    match deed:
        case "read":
            return _codex_shell(f"cat {what['path']}")
        case "grep":
            return _codex_shell(f"rg -n {what['pattern']}")
        case "glob":
            return _codex_shell(f"rg --files -g '{what['pattern']}'")
        case "edit":
            lines = re.sub(r"^", "-", what["old"], flags=re.M) + "\n" + re.sub(r"^", "+", what["new"], flags=re.M)
            return _codex_patch(what["path"], f"@@\n{lines}\n")
        case "hunks":
            return _codex_patch(what["path"], f"{{each:@@\n {what['kept']}\n-{what['old']}\n+{what['new']}\n:each}}")
        case "run":
            return _codex_shell(what["command"])


def _codex_patch(path: str, hunks: str) -> dict[str, Any]:
    patch = f"*** Begin Patch\n*** Update File: {path}\n{hunks}*** End Patch"
    return _codex_shell(f"apply_patch <<'EOF'\n{patch}\nEOF")


def _codex_shell(command: str) -> dict[str, Any]:
    return {"tool": "exec_command", "arguments": {"cmd": command}}


def _rewritten(what: Mapping[str, str]) -> str:
    """The whole new text of a file with many hunks, as a template."""
    return f"{{each:{what['kept']}\n{what['new']}\n:each}}"


def _write(path: Path, settings: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(settings))


_DRIVERS = {
    "Gemini CLI": ("gemini", _start_gemini, _gemini_uses),
    "OpenCode": ("chat", _start_opencode, _opencode_uses),
    "Codex": ("responses", _start_codex, _codex_uses),
}
