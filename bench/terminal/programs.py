"""The three programs at a terminal, each on the service of the run, with a home of its own, and calling nobody."""

import json
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.plan import Plan
from bench.subject import Deed, Place
from bench.subjects import amanu, codex, peers
from bench.subjects.environment import PEERS, environment
from bench.terminal.task import Name

PLACE = Path("/var/tmp")
"""Homes are below it: Codex complains about one in the folder for temporary files."""
MODELS: dict[Name, str] = {"Amanu": amanu.MODELS["responses"], "Codex": "gpt-6.2-sol", "Gemini CLI": "gemini-2.5-pro"}


@dataclass(frozen=True)
class Program:
    """`ready` stands on the screen as soon as the composer is drawn, `settled` when its session is there, too, `pasted`
    where many lines are."""

    name: Name
    version: str
    has_daemon: bool
    ready: str
    settled: str
    pasted: str
    command: Sequence[str]
    environment: Callable[[Place], dict[str, str]]
    """Prepares the home."""
    trust: Callable[[Place], None]
    """Has the workspace trusted."""
    resume: Callable[[str], Sequence[str]]
    """Options that go on with a session."""
    uses: Callable[[Deed, Mapping[str, str]], dict[str, Any] | None]

    def configure(self, place: Place, settings: str) -> None:
        """Further settings, for this play."""
        if settings:
            path = place.home / {"Amanu": "amanu/config/config.toml", "Codex": ".codex/config.toml"}[self.name]
            path.write_text(f"{settings}\n{path.read_text()}")

    def plan(self, deed: Deed, **what: str) -> Plan:
        """One reply that calls its tool for that, then one of words."""
        found = self.uses(deed, what)
        assert found is not None
        return Plan(steps=1, **found)


def programs() -> tuple[list[Program], list[str]]:
    """The programs that are installed, and a line for each that is not."""
    from amanu import __version__

    found, missing = peers.peers()
    subjects = {each.name: each for each in found}
    ours = Program(
        "Amanu",
        __version__,
        True,
        "Enter sends",
        "Enter sends",
        "[Pasted #",
        [str(amanu.COMMAND), "chat", "--model", MODELS["Amanu"]],
        lambda place: amanu.variables("responses", place),
        _trust_amanu,
        lambda session: ["--session", session],
        amanu.uses,
    )
    programs = [ours]
    if each := subjects.get("Codex"):
        programs.append(
            Program(
                "Codex",
                each.version,
                True,
                "Ask Codex to do anything",
                "GPT-6.2-Sol default",
                "[Pasted Content",
                [peers.native_codex()],
                _codex,
                _trust_codex,
                lambda session: ["resume", session],
                each.uses,
            )
        )
    if each := subjects.get("Gemini CLI"):
        script = PEERS / "node_modules" / "@google" / "gemini-cli" / "bundle" / "gemini.js"
        programs.append(
            Program(
                "Gemini CLI",
                each.version,
                False,
                "Type your message",
                "Type your message",
                "[Pasted Text",
                [shutil.which("node") or "node", str(script), "--model", MODELS["Gemini CLI"]],
                _gemini,
                _trust_gemini,
                lambda session: ["--resume", session],
                each.uses,
            )
        )
    return programs, [each for each in missing if not each.startswith("OpenCode")]


def _trust_amanu(place: Place) -> None:
    command = [str(amanu.COMMAND), "trust", "add", str(place.workspace)]
    subprocess.run(command, env=amanu.variables("responses", place), check=True, capture_output=True)


def _codex(place: Place) -> dict[str, str]:
    folder = place.home / ".codex"
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / "config.toml").exists():
        text = codex.codex_config(place.url, place.workspace).partition("[projects.")[0]
        kept = [
            line for line in text.splitlines() if not line.startswith(("model =", "approval_policy", "sandbox_mode"))
        ]
        (folder / "config.toml").write_text("\n".join([f'model = "{MODELS["Codex"]}"', *kept, ""]))
    return environment(place.home, CODEX_HOME=str(folder), BENCH_KEY="dummy")


def _trust_codex(place: Place) -> None:
    _codex(place)
    with (place.home / ".codex" / "config.toml").open("a") as file:
        file.write(f'[projects."{place.workspace}"]\ntrust_level = "trusted"\n')


def _gemini(place: Place) -> dict[str, str]:
    folder = place.home / ".gemini"
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / "settings.json").exists():
        (folder / "settings.json").write_text(json.dumps(GEMINI_SETTINGS))
    variables = peers.gemini_environment(place)
    del variables["GEMINI_CLI_NO_RELAUNCH"]  # it starts itself anew when a folder becomes trusted
    return variables


GEMINI_SETTINGS = {
    "security": {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": True}},
    "privacy": {"usageStatisticsEnabled": False},
    "telemetry": {"enabled": False},
    "general": {"enableAutoUpdate": False, "enableAutoUpdateNotification": False},
    "model": {"maxSessionTurns": -1},
}


def _trust_gemini(place: Place) -> None:
    _gemini(place)
    (place.home / ".gemini" / "trustedFolders.json").write_text(json.dumps({str(place.workspace): "TRUST_FOLDER"}))
