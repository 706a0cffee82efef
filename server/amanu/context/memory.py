"""Project memory, and when the model is told about it.

With the first prompt of a session it becomes part of the system prompt, which then stays the same to the byte: caches,
and models that verify what came before their thoughts, depend on that. Later changes are added at the end of the
conversation: files that changed, appeared or disappeared after the user's next words; the memory of a folder after the
results of the tools that touched something in it. When earlier messages are rewritten (`Conversation.generation`), what
they said may be lost: then it is said again, and the next prompt renews the system prompt.

What the model knows is read from the conversation itself (`memory_format.py`), not stored beside it.
"""

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from amanu.context.memory_files import NAMES, MemoryFile, MemoryFiles, MemoryScan
from amanu.context.memory_format import GONE, blocks, in_blocks, in_note, note
from amanu.core.conversation import Assistant, Conversation, Memory, Results, SystemText, User
from amanu.core.listeners import Notes, StepRecord, TurnListener, TurnView
from amanu.core.notes import SystemNote

CHANGED = "Project memory has changed. The text below replaces what you knew of these files."
TOUCHED = "Project memory for folders you are now working in:"


@dataclass(frozen=True)
class RecalledMemory:
    """The project memory that goes with a prompt."""

    system: Memory | None
    """The memory part of the system prompt, if it has changed."""
    notice: SystemNote | None
    """`text` goes after the user's words; "" when all of it is in the system prompt."""


class ProjectMemory(TurnListener):
    """One session's project memory. `trusted` returns whether its workspace is trusted."""

    def __init__(self, files: MemoryFiles, conversation: Conversation, trusted: Callable[[], bool]) -> None:
        self._files = files
        self._conversation = conversation
        self._trusted = trusted
        self._noted: dict[str, str] = {}
        """Path → text, of what the model was told outside of the system prompt."""
        self._read = 0
        """How many messages `_noted` was read from."""
        self._generation = conversation.generation
        self._system_generation = conversation.generation
        self._looked: set[Path] = set()
        """Folders below the roots whose memory is known."""
        self._base_trusted = False
        """The base was read in a trusted workspace, and nothing has been lost since."""
        self._said: set[str] = set()
        """Sentences about what was left out that the user has been told."""

    async def recall(self, window: int) -> RecalledMemory:
        """What a model with a window of so many tokens must be told with the user's next words; the caller puts it into
        the conversation."""
        self._files.fit(window)
        self._follow()
        trusted = self._trusted()
        below = self._known_folders(in_blocks(self._conversation.memory) | self._noted) if trusted else set[Path]()
        base, nested = await asyncio.to_thread(lambda: (self._files.base(trusted=trusted), self._files.below(below)))
        self._base_trusted = trusted
        memory, system = self._conversation.memory, None
        is_new = not any(isinstance(message, Assistant) for message in self._conversation)
        if is_new or self._conversation.generation != self._system_generation:
            self._system_generation = self._conversation.generation
            memory = blocks(_pairs(base.files))
            if memory != self._conversation.memory:
                system = Memory(text=memory)
        current = in_blocks(memory) | self._noted
        head = "Project memory changed" if in_blocks(self._conversation.memory) or self._noted else "Project memory"
        files = {file.path: file for file in (*nested.files, *base.files)}  # the base's form of what is in both
        news = _news(current, files.values())
        removed = [path for path, text in current.items() if path not in files and text != GONE]
        text = note(CHANGED, [*_pairs(news), *((path, GONE) for path in removed)]) if news or removed else ""
        visible = [*base.files, *news] if system is not None else news
        return RecalledMemory(
            system, self._remembered(text, head, visible, removed, [*base.left_out, *nested.left_out])
        )

    async def after_step(self, turn: TurnView, step: StepRecord) -> Notes | None:
        note = await self.touched(step.touched)
        return None if note is None else [note]

    async def touched(self, paths: Collection[str]) -> SystemNote | None:
        """What the model must be told after tools have touched those absolute paths; the caller tells it at once."""
        lost = self._follow()
        if not self._trusted():
            return None
        folders = self._files.folders(paths) - self._looked
        again = lost or not self._base_trusted
        if not folders and not again:
            return None
        base, nested = await asyncio.to_thread(
            lambda: (self._files.base(trusted=True) if again else MemoryScan(), self._files.below(folders))
        )
        self._looked |= folders
        self._base_trusted = True
        current = in_blocks(self._conversation.memory) | self._noted
        news = _news(current, {file.path: file for file in (*nested.files, *base.files)}.values())
        news, too_much = self._that_fit(news)
        left_out = [*base.left_out, *nested.left_out, *too_much]
        head = TOUCHED if not base.files else CHANGED
        return self._remembered(note(head, _pairs(news)) if news else "", "Project memory", news, [], left_out)

    def _follow(self) -> bool:
        """Read what was added to the conversation since. True when what was said before may be lost."""
        lost = self._conversation.generation != self._generation
        if lost:
            self._generation = self._conversation.generation
            self._noted, self._read = {}, 0
            self._looked.clear()
        for index in range(max(0, self._read - 1), len(self._conversation)):  # the last one may have grown
            match self._conversation[index]:
                case User(text=text):
                    self._noted |= in_note(text)
                case Results(notes=notes):
                    for note in notes:
                        self._noted |= in_note(note.text) if isinstance(note, SystemText) else {}
                case _:
                    pass
        self._read = len(self._conversation)
        return lost

    def _known_folders(self, current: Iterable[str]) -> set[Path]:
        """The folders below the roots whose memory was told."""
        paths = [self._files.absolute(path) for path in current]
        return {path.parent for path in paths if path.name in NAMES and self._files.folders([str(path.parent)])}

    def _that_fit(self, news: list[MemoryFile]) -> tuple[list[MemoryFile], list[str]]:
        characters_left = self._files.most - sum(map(len, self._noted.values()))
        fit: list[MemoryFile] = []
        left_out: list[str] = []
        for file in news:
            characters_left -= len(file.text)
            if characters_left >= 0:
                fit.append(file)
            else:
                left_out.append(f"{file.path} was left out: project memory is full.")
        return fit, left_out

    def _remembered(
        self, text: str, head: str, files: list[MemoryFile], removed: list[str], left_out: list[str]
    ) -> SystemNote | None:
        unreported = [path for path in dict.fromkeys(left_out) if path not in self._said]
        self._said |= set(unreported)
        if not files and not removed and not unreported:
            return None
        descriptions: list[str] = []
        if files:
            size = sum(len(file.text) for file in files)
            descriptions.append(f"{', '.join(file.path for file in files)} ({size:,} characters)")
        if removed:
            descriptions.append(f"no longer: {', '.join(removed)}")
        lines = [
            *(f"- {file.path}: {len(file.text):,} characters" for file in files),
            *(f"- {path}" for path in unreported),
        ]
        sentences = [f"{head}: {'; '.join(descriptions)}."] if descriptions else []
        return SystemNote(
            text,
            " ".join([*sentences, *unreported]),
            "memoryLoaded",
            "\n".join(lines),
            level="warning" if unreported else "info",
        )


def _news(current: Mapping[str, str], files: Iterable[MemoryFile]) -> list[MemoryFile]:
    """The files that are new or changed. A text that is already known under another name is not new."""
    texts = set(current.values())
    return [
        file
        for file in files
        if current.get(file.path) != file.text and (file.path in current or file.text not in texts)
    ]


def _pairs(files: Iterable[MemoryFile]) -> list[tuple[str, str]]:
    return [(file.path, file.text) for file in files]
