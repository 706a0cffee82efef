"""Lists to choose from with arrows, narrowed by what is typed: models, efforts, modes, sessions, checkpoints."""

import asyncio
from collections.abc import Collection, Mapping, Sequence
from functools import partial
from pathlib import PurePath
from typing import get_args

from amanu.cli import picker_previews as previews
from amanu.cli.header import model_info, price
from amanu.cli.text import one_line
from amanu.cli.ui.dialog import Choice, Dialog, Preview, RowKey
from amanu.cli.ui.terminal import StopRequested, Terminal
from amanu.client.session_view import SessionView
from amanu.text.amounts import plural
from amanu_protocol import requests as r
from amanu_protocol.items import Effort, Line, Mode, ModelInfo
from amanu_protocol.labels import MODES

_PROMPT = "{} › "
_ARCHIVE = RowKey("c-x", "Ctrl-X", "archive")
_ELSEWHERE = 200
"""Sessions of all folders that words are looked for in."""


class Pickers:
    """Each returns what was chosen, or None when the user left with Esc or there was nothing. `words` come from the
    command line: they narrow the list, and where they leave one row, that is what was chosen."""

    def __init__(self, view: SessionView, terminal: Terminal) -> None:
        self._view = view
        self._terminal = terminal

    async def model(self, words: str = "") -> str | None:
        """The id of a model."""
        answer = await self._view.client.request("amanu/model/list", r.Empty(), r.ModelListResult)
        models = {each.model_id: each for each in answer.models}
        if words and len(meant := _meant(words, answer.models)) == 1:
            return meant[0].model_id

        async def preview(model_id: str) -> Sequence[Line]:
            return previews.of_model(models[model_id])

        current = self._view.state.model_id
        ranked = sorted(models.values(), key=lambda each: (each.model_id != current, not each.available))
        choices = [Choice(each.model_id, one_line(each.name), _model_facts(each, current)) for each in ranked]
        return await self._pick("model", choices, words, preview)

    async def effort(self, words: str = "") -> Effort | None:
        """One of those that the model offers; any that there is, if it is typed."""
        model = await asyncio.to_thread(model_info, self._view.state.model_id)
        current = self._view.state.effort or model.default_effort
        notes = {model.default_effort: "this model's default", self._view.state.effort: "now"}
        offered = sorted(model.efforts, key=lambda each: each != current)
        choices = [Choice(each, each, notes.get(each, "")) for each in offered]
        chosen = words if words in get_args(Effort) else await self._pick_word("effort", choices, words)
        return next((each for each in get_args(Effort) if each == chosen), None)

    async def mode(self, words: str = "") -> Mode | None:
        modes = sorted(get_args(Mode), key=lambda each: each != self._view.state.mode)
        chosen = await self._pick_word("mode", [Choice(each, each, MODES[each].meaning) for each in modes], words)
        return next((each for each in get_args(Mode) if each == chosen), None)

    async def theme(self, choices: Sequence[Choice], words: str = "") -> str | None:
        return await self._pick_word("theme", choices, words)

    async def session(self, root: str, words: str = "") -> str | None:
        """The id of another session of that folder. Archived ones, and those of other folders, are found by words."""
        selected = 0
        while True:
            here, sessions = await self._other_sessions(root)
            choices = [_session(each, is_here=each.session_id in here) for each in sessions.values()]
            preview = partial(_session_preview, sessions)
            chosen = await self._pick("session", choices, words, preview, [_ARCHIVE], selected)
            if chosen is None or not chosen.startswith(f"{_ARCHIVE.verb} "):
                return chosen
            session_id = chosen.removeprefix(f"{_ARCHIVE.verb} ")
            await self._archive(session_id, not sessions[session_id].archived)
            listed = [each.value for each in choices if not each.hidden]
            selected = listed.index(session_id) if session_id in listed else 0  # the next one takes its place

    async def _other_sessions(self, root: str) -> tuple[Collection[str], Mapping[str, r.SessionSummary]]:
        """The ids of those of the folder; and all by their ids, the folder's first."""
        request = self._view.client.request
        here = await request("amanu/session/list", r.SessionListParams(root=root, archived=True), r.SessionListResult)
        all_of_them = r.SessionListParams(limit=_ELSEWHERE, archived=True)
        elsewhere = await request("amanu/session/list", all_of_them, r.SessionListResult)
        found = {each.session_id: each for each in (*here.sessions, *elsewhere.sessions)}
        found.pop(self._view.session_id, None)
        return {each.session_id for each in here.sessions}, found

    async def _archive(self, session_id: str, archived: bool) -> None:
        params = r.SessionArchiveParams(session_id=session_id, archived=archived)
        await self._view.client.request("amanu/session/archive", params, r.Empty)

    async def checkpoint(self, checkpoints: Sequence[r.Checkpoint], words: str = "") -> str | None:
        """The arguments of `/restore`: the number of a checkpoint, newest first, and what goes back."""
        choices: list[Choice] = []
        for number, each in enumerate(checkpoints, 1):
            parts = [previews.moment(each.at)]
            parts += [plural(len(each.files), "file")] if each.files else []
            parts += [plural(len(each.commands), "command")] if each.commands else []
            choices.append(Choice(str(number), one_line(each.text), " · ".join(parts)))

        async def preview(number: str) -> Sequence[Line]:
            params = r.CheckpointPreviewParams(
                session_id=self._view.session_id, turn_id=checkpoints[int(number) - 1].turn_id
            )
            dry = await self._view.client.request("amanu/checkpoint/preview", params, r.CheckpointPreviewResult)
            return previews.of_rewind(dry, self._view.state.roots)

        number = await self._pick("go back to before", choices, words, preview)
        if number is None:
            return None
        what = [
            Choice("files", "Its files", "the conversation stays"),
            Choice("all", "Its files and the conversation", "your prompt is put back for you to edit"),
        ]
        newer = checkpoints[: int(number)]
        if not any(each.files for each in newer):
            what = [Choice("all", "The conversation", "no file changed; your prompt is put back for you to edit")]
        part = await self._pick("take back", what)
        return None if part is None else f"{number} {part}"

    async def _pick_word(self, name: str, choices: Sequence[Choice], words: str) -> str | None:
        """Pick among rows that are a word each: the beginning of one is enough."""
        beginning = [each.value for each in choices if words and each.value.lower().startswith(words.lower())]
        return beginning[0] if len(beginning) == 1 else await self._pick(name, choices, words)

    async def _pick(
        self,
        name: str,
        choices: Sequence[Choice],
        words: str = "",
        preview: Preview | None = None,
        row_keys: Sequence[RowKey] = (),
        selected: int = 0,
    ) -> str | None:
        if not choices:
            return None
        dialog = Dialog(
            _PROMPT.format(name),
            choices,
            default=words,
            is_picker=True,
            selected=selected,
            row_keys=row_keys,
            preview=preview,
            valid=lambda: not self._view.client.lost.is_set(),
        )
        try:
            return await self._terminal.ask(dialog)
        except StopRequested:
            return None


def _model_facts(model: ModelInfo, current: str) -> str:
    missing = "" if model.available else one_line(model.unavailable or "not available")
    facts = ["now" if model.model_id == current else "", one_line(model.model_id), missing or price(model)]
    return " · ".join(filter(None, facts))


def _meant(words: str, models: Sequence[ModelInfo]) -> Sequence[ModelInfo]:
    """The models of that id, whatever their vendor; else those that have all the words, where there are any the
    ones that can be used."""
    named = [model for model in models if words == model.model_id.partition(":")[2]]
    needed = words.casefold().split()
    found = named or [
        each for each in models if all(word in f"{each.model_id} {each.name}".casefold() for word in needed)
    ]
    return [model for model in found if model.available] or found


def _session(summary: r.SessionSummary, *, is_here: bool) -> Choice:
    about = [previews.moment(summary.updated_at), "archived" if summary.archived else previews.status(summary)]
    about += [plural(summary.changes, "change")] if summary.changes else []
    about += [] if is_here else [one_line(PurePath(each).name) for each in summary.roots]
    title = one_line(summary.title) or one_line(summary.last_prompt) or "Untitled"
    hidden = summary.archived or not is_here or not (summary.title or summary.last_prompt)
    return Choice(summary.session_id, title, " · ".join(filter(None, about)), _found_by(summary), hidden)


async def _session_preview(sessions: Mapping[str, r.SessionSummary], session_id: str) -> Sequence[Line]:
    return previews.of_session(sessions[session_id])


def _found_by(summary: r.SessionSummary) -> str:
    """All that a session is found by, beside what its row shows."""
    return " ".join([summary.session_id, *summary.roots, summary.last_prompt, summary.last_answer, summary.model_id])
