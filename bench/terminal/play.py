"""The tasks, each played once in each program, in a home and a folder of its own."""

import shutil
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bench.plan import Plan
from bench.process import Tree
from bench.stage import Stage
from bench.subject import Place
from bench.terminal.programs import Program
from bench.terminal.task import Hand, Step, Task
from bench.terminal.tmux import NotSeen, Screen

PAUSE_SECONDS = 0.4
"""Before a key that is no text: Codex and Gemini CLI take Enter right behind characters for a part of a paste."""
FILES = {
    "prices.py": "name_0 = 0\nprice_0 = 0\nname_1 = 1\nprice_1 = 0\n",
    "src/click/utils.py": "def echo(): ...\n",
    "docs/utils.rst": "Utilities\n",
}


@dataclass(frozen=True)
class Played:
    """`failure`: what was wrong, if the task did not come to its result."""

    seconds: float
    screen: str
    failure: str = ""


async def play(stage: Stage, task: Task, program: Program, hand: Hand) -> Played:
    folder = stage.folder / f"{task.name}-{program.name.split()[0]}"
    workspace = folder / "work"
    for path, text in FILES.items():
        (workspace / path).parent.mkdir(parents=True, exist_ok=True)
        (workspace / path).write_text(text)
    subprocess.run(["git", "init", "-q"], cwd=workspace, check=True)
    place = Place(folder / "home", workspace, f"http://127.0.0.1:{stage.port}")
    place.home.mkdir()
    await stage.understand({words: _plan(program, answer) for words, answer in task.answers.items()})
    environment = program.environment(place)
    if task.trusted:
        program.trust(place)
    program.configure(place, hand.settings)
    tree = Tree()
    screen = Screen(folder / "tmux", program.command, tree.marked(environment), workspace)
    began = time.monotonic()
    try:
        _act(screen, hand.before)
        began = time.monotonic()
        _act(screen, hand.keys)
        failure = _outcome(screen, workspace, task)
        return Played(time.monotonic() - began, _shown(screen, folder), failure)
    except NotSeen as error:
        return Played(time.monotonic() - began, _shown(screen, folder), str(error).splitlines()[0])
    finally:
        screen.close()
        await tree.end()
        shutil.rmtree(folder, ignore_errors=True)


def _plan(program: Program, answer: Mapping[str, Any]) -> Plan:
    if "deed" not in answer:
        return Plan(**answer)
    what = {name: value for name, value in answer.items() if name not in ("deed", "each")}
    return replace(program.plan(answer["deed"], **what), each=answer.get("each", 0))


def _act(screen: Screen, steps: Sequence[Step]) -> None:
    for step in steps:
        match step.verb:
            case "type":
                screen.type(step.what)
            case "press":
                time.sleep(PAUSE_SECONDS)
                screen.press(step.what)
            case "see":
                screen.sees(step.what)
            case "wait":
                time.sleep(float(step.what))


def _outcome(screen: Screen, workspace: Path, task: Task) -> str:
    """Wait for all that the task's result names. Returns what is wrong, or nothing."""
    for line in task.result:
        kind, _, rest = line.partition(" ")
        if kind == "screen":
            screen.sees(rest)
            continue
        path, how, text = rest.split(" ", 2)
        has = text in (workspace / path).read_text()
        if has != (how == "has"):
            return f"{path} {'lacks' if how == 'has' else 'has'} {text!r}"
    return ""


def _shown(screen: Screen, folder: Path) -> str:
    return screen.text().rstrip().replace(str(folder), "…") + "\n"
