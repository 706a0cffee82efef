"""Skills: the tool that activates one, as it sees them; and which ones a conversation holds.

An activated skill is a block `<skill_content name="…">` in the conversation. That it is active is read from there, so
it is known after a restart and after a rewind; a compaction keeps the names (`Compacted.skills`).
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol

from amanu.core.conversation import Conversation, Message, Results, SystemText, User

ACTIVATE_SKILL = "activate_skill"
"""The tool's name. Its results are instructions, not output: masking leaves them alone."""

_BLOCK = re.compile(r'<skill_content name="([^"\n]*)">')


@dataclass(frozen=True)
class ActivatedSkill:
    name: str
    text: str
    """For the model."""
    is_new: bool
    """Not active before."""


class Skills(Protocol):
    """Implemented by `session/skills.py`."""

    async def activate(self, name: str, turn_id: str) -> ActivatedSkill:
        """Activate it for the rest of the conversation. Raises `ToolError` when there is no such skill, or it is not
        the model's to activate."""
        ...


def skill_texts(messages: Iterable[Message]) -> Iterator[str]:
    """The texts that may hold activated skills: the user's words with what was sent beside them, notes, and what the
    tool returned. Not what other tools returned: that is data."""
    for message in messages:
        match message:
            case User(text=text):
                yield text
            case Results(results=results, notes=notes):
                yield from (result.text for result in results if result.tool == ACTIVATE_SKILL)
                yield from (note.text for note in notes if isinstance(note, SystemText))
            case _:
                pass


def skill_names(messages: Iterable[Message]) -> list[str]:
    """The skills activated in these messages, in order."""
    return list(dict.fromkeys(name for text in skill_texts(messages) for name in _BLOCK.findall(text)))


def active_skills(conversation: Conversation) -> list[str]:
    """The skills active in a conversation, in order."""
    earlier = conversation.compacted.skills if conversation.compacted is not None else ()
    return list(dict.fromkeys([*earlier, *skill_names(conversation)]))
