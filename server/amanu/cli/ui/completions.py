"""Completion of a slash command at the prompt: its name, then its arguments, the best first. Draws nothing."""

import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from amanu.cli.edit_scope import CONCERNED, Scope, changes_at
from amanu.cli.header import price
from amanu.cli.session_lookup import LATEST, SHORT, SHORTEST
from amanu.cli.text import one_line
from amanu.cli.ui.fit import fit
from amanu.config import ThemeChoice
from amanu.text.amounts import plural
from amanu.text.sub_agents import agent_label
from amanu_protocol.items import Effort, Job, Mode, ModelInfo
from amanu_protocol.labels import MODES
from amanu_protocol.requests import Checkpoint, Command, SessionSummary
from amanu_protocol.state import SessionState

NEED_ARGUMENT = frozenset({"/queue", "/record"})
"""The chat's slash commands that do nothing alone."""
MAY_TAKE_ARGUMENT = frozenset(
    {"/mode", "/plan", "/model", "/effort", "/theme", "/sessions", "/restore", "/jobs", "/agents", "/audit", "/export"}
    | {f"/{verb}" for verb in CONCERNED}
)
_SCOPES: Mapping[Scope, str] = {
    "turn": "the last turn with such changes",
    "session": "the whole session",
    "file": "one file",
}

Need = Literal["models", "sessions", "checkpoints"]


@dataclass(frozen=True)
class Row:
    """A line of the popup."""

    text: str
    """The text from `start` to the cursor when it is taken. A blank at its end: more may follow."""
    start: int
    """Characters before the cursor's text that stay."""
    label: str
    description: str
    complete: bool
    """The prompt is a whole command then, which Enter runs; else an argument is missing."""

    def prompt(self, typed: str) -> str:
        """The text before the cursor with this row taken."""
        return typed[: self.start] + self.text


def folder_names(folder: str) -> list[str]:
    """The folders in a folder, sorted; none where it cannot be listed."""
    try:
        with os.scandir(Path(folder).expanduser()) as entries:
            return sorted(entry.name for entry in entries if entry.is_dir())
    except (OSError, RuntimeError):  # an unknown user's home
        return []


@dataclass(frozen=True)
class Known:
    """All that can be offered. What `needed` names has to be asked for first, and is empty until it is there."""

    state: SessionState
    own: Mapping[str, str]
    """The chat's slash commands with their descriptions, as `/name`."""
    daemons: Sequence[Command] = ()
    models: Sequence[ModelInfo] = ()
    sessions: Sequence[SessionSummary] = ()
    """The newest first."""
    checkpoints: Sequence[Checkpoint] = ()
    """The newest first, as `/checkpoints` numbers them."""
    list_folders: Callable[[str], Sequence[str]] = folder_names


def needed(typed: str) -> Need | None:
    """The list that the daemon has to be asked for to complete that."""
    word, blank, _ = typed.partition(" ")
    needs: dict[str, Need] = {
        "/model": "models",
        "/effort": "models",
        "/sessions": "sessions",
        "/restore": "checkpoints",
    }
    return needs.get(word) if blank else None


def completions(typed: str, known: Known) -> list[Row]:
    """The rows for the text before the cursor, the best first; of what fits equally well, and before anything of an
    argument is typed, what is in force first: there Enter changes nothing."""
    if not typed.startswith("/") or "\n" in typed:
        return []
    word, blank, argument = typed.partition(" ")
    if not blank:
        return _ranked(word[1:], 0, _slash_commands(known))
    query, choices = _arguments(word[1:], argument.lstrip(), known)
    return _ranked(query, len(typed) - len(query), choices)


@dataclass(frozen=True)
class _Choice:
    text: str
    description: str = ""
    label: str = ""
    keys: Sequence[str] = ()
    """The texts that may fit; none: its own."""
    complete: bool = True
    rank: int = 0
    """Counts before how well it fits; less is better."""


_Choices = tuple[str, Iterable[_Choice]]
"""The part of the text that they replace, its end, and they."""
_NONE: _Choices = ("", ())


def _ranked(query: str, start: int, choices: Iterable[_Choice]) -> list[Row]:
    fitting = [
        (choice.rank, found, number, choice)
        for number, choice in enumerate(choices)
        if (found := fit(query, *(choice.keys or [choice.text.strip(" /")]))) is not None
    ]
    return [
        Row(choice.text, start, choice.label or choice.text.strip(), choice.description, choice.complete)
        for *_, choice in sorted(fitting, key=lambda each: each[:3])
    ]


def _slash_commands(known: Known) -> Iterable[_Choice]:
    for name, description in known.own.items():
        more = " " if name in NEED_ARGUMENT | MAY_TAKE_ARGUMENT else ""
        yield _Choice(name + more, description, complete=name not in NEED_ARGUMENT)
    for command in known.daemons:
        if (name := f"/{command.name}") not in known.own:
            hint = command.argument_hint
            described = one_line(" · ".join(filter(None, [hint, command.description])))
            # By custom what may be left out is in brackets.
            yield _Choice(name + " " * bool(hint), described, complete=not hint or hint.startswith("["))


def _arguments(verb: str, typed: str, known: Known) -> _Choices:
    state = known.state
    match verb:
        case "mode":
            return typed, _modes(state.mode)
        case "effort":
            return typed, _efforts(known)
        case "model":
            return typed, _models(known)
        case "theme":
            return typed, [_Choice(each, "") for each in get_args(ThemeChoice)]
        case "sessions":
            return typed, _sessions(typed, known)
        case "jobs":
            return _jobs(typed, state.jobs)
        case "agents":
            return _agents(typed, state)
        case "restore":
            return _checkpoints(typed, known.checkpoints)
        case "record":
            return _new_file(typed, known.list_folders)
        case "audit":
            return typed, [_Choice("last", "the last tool call"), _Choice("session", "all calls of this session")]
        case _ if verb in CONCERNED:
            return _edits(verb, typed, state)
        case _:
            return _NONE


def _modes(current: Mode) -> Iterable[_Choice]:
    for mode in sorted(get_args(Mode), key=lambda mode: mode != current):
        yield _Choice(mode, _with("current", mode == current, MODES[mode].meaning))


def _efforts(known: Known) -> Iterable[_Choice]:
    """The efforts that the model offers; all while nobody knows."""
    state = known.state
    model = next((model for model in known.models if model.model_id == state.model_id), None)
    offered: Sequence[Effort] = get_args(Effort) if model is None else model.efforts
    current = state.effort or (model and model.default_effort)
    for effort in sorted(offered, key=lambda effort: effort != current):
        notes = [("current", effort == state.effort), ("the default", model and effort == model.default_effort)]
        yield _Choice(effort, " · ".join(note for note, holds in notes if holds))


def _models(known: Known) -> Iterable[_Choice]:
    current = known.state.model_id
    for model in sorted(known.models, key=lambda model: model.model_id != current):
        missing = "" if model.available else one_line(model.unavailable or "not available")
        about = _with("current", model.model_id == current, f"{one_line(model.model_id)} · {missing or price(model)}")
        yield _Choice(
            model.model_id, about, one_line(model.name), (model.model_id, model.name), rank=not model.available
        )


def _sessions(typed: str, known: Known) -> Iterable[_Choice]:
    others = [session for session in known.sessions if session.session_id != known.state.session_id]
    for session in others:
        when = time.strftime("%Y-%m-%d %H:%M", time.localtime(session.updated_at / 1000))
        about = f"{when} · {session.status} · {session.session_id[:SHORT]}"
        title = one_line(session.title, 80)
        beginning = session.session_id[: len(typed)] if len(typed) >= SHORTEST else ""
        yield _Choice(session.session_id, about, title or "Untitled", (session.title, beginning))
    if known.sessions:
        yield _Choice(LATEST, "the one in which something was said last")


def _jobs(typed: str, jobs: Sequence[Job]) -> _Choices:
    verb, blank, job_id = typed.partition(" ")
    running = [job for job in jobs if job.state == "running"]
    if not blank:
        choices = [_Choice("output ", "print what a command printed", complete=False)] if jobs else []
        stop = [_Choice("stop ", "stop a command", complete=False)] if running else []
        return typed, [*choices, *stop]
    ended = [job for job in reversed(jobs) if job.state != "running"]
    listed = {"output": [*running, *ended], "stop": running}.get(verb, [])
    return job_id.lstrip(), [
        _Choice(
            job.job_id,
            f"{one_line(job.title, 60)} · {one_line(job.summary)}",
            keys=(job.job_id, _number(job.job_id), job.title),
        )
        for job in listed
    ]


def _agents(typed: str, state: SessionState) -> _Choices:
    verb, blank, agent_id = typed.partition(" ")
    working = [agent for agent in state.agents if agent.works]
    if not blank:
        choices = [_Choice("open ", "print an agent's work", complete=False)] if state.agents else []
        stop = [_Choice("stop ", "stop an agent", complete=False)] if working else []
        return typed, [*choices, *stop]
    ended = [agent for agent in reversed(state.agents) if not agent.works]
    listed = {"open": [*working, *ended], "stop": working}.get(verb, [])
    return agent_id.lstrip(), [
        _Choice(
            agent.agent_id,
            f"{one_line(agent.description, 60)} · {one_line(agent.summary)}",
            agent_label(agent.name, agent.agent_id),
            (agent.agent_id, _number(agent.agent_id), agent.name, agent.description),
        )
        for agent in listed
    ]


def _number(name: str) -> str:
    return name.rpartition("-")[2]


def _checkpoints(typed: str, checkpoints: Sequence[Checkpoint]) -> _Choices:
    number, blank, part = typed.partition(" ")
    if blank and number.isdecimal():
        return part.lstrip(), [
            _Choice("files", "undo the changes since then"),
            _Choice("all", "undo the changes, and forget the conversation since then"),
        ]
    return typed, [
        _Choice(f"{number} ", _before(checkpoint), keys=(str(number), checkpoint.text))
        for number, checkpoint in enumerate(checkpoints, 1)
    ]


def _before(checkpoint: Checkpoint) -> str:
    parts = [time.strftime("%H:%M", time.localtime(checkpoint.at / 1000)), one_line(checkpoint.text, 60)]
    parts += [plural(len(checkpoint.files), "file")] if checkpoint.files else []
    parts += [plural(len(checkpoint.commands), "command")] if checkpoint.commands else []
    return " · ".join(parts)


def _edits(verb: str, typed: str, state: SessionState) -> _Choices:
    scope, blank, path = typed.partition(" ")
    if not blank:
        return typed, [
            _Choice(f"{scope} " if scope == "file" else scope, about, complete=scope != "file")
            for scope, about in _SCOPES.items()
        ]
    if scope != "file":
        return _NONE
    counts: dict[str, int] = {}
    for place, change in changes_at(state.proposals, None):
        if CONCERNED[verb](change):
            counts[place] = counts.get(place, 0) + 1
    return path.lstrip(), [
        _Choice(
            written := _written(place, state.roots),
            plural(count, "change"),
            one_line(written),
            (Path(place).name, written),
        )
        for place, count in counts.items()
    ]


def _written(path: str, roots: Sequence[str]) -> str:
    """Relative to the first folder, to which the slash commands relate what they do not find elsewhere."""
    return path.removeprefix(f"{roots[0].rstrip(os.sep)}{os.sep}")


def _new_file(typed: str, list_folders: Callable[[str], Sequence[str]]) -> _Choices:
    """The folders it may be in; and `off`, which ends the recording."""
    folder, name = os.path.split(typed)
    hidden = name.startswith(".")
    folders = [each for each in list_folders(folder or ".") if each.isprintable() and each.startswith(".") == hidden]
    choices = [_Choice(f"{each}/", complete=False, label=one_line(f"{each}/")) for each in folders]
    return name, choices if folder else [_Choice("off", "end the recording"), *choices]


def _with(note: str, holds: bool, text: str) -> str:
    return f"{note} · {text}" if holds else text
