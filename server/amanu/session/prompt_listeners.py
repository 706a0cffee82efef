"""What the parts of a session make of one prompt."""

from collections.abc import Sequence

from amanu.core.listeners import TurnListener
from amanu.core.session_part import PromptListener, SessionPart


class PromptListeners:
    """Asks the listeners of one prompt as `core/session_part.py` says."""

    def __init__(self, parts: Sequence[SessionPart]) -> None:
        made = [part.listen_to_prompt() for part in parts]
        self._listeners: Sequence[PromptListener] = [listener for listener in made if listener is not None]

    @property
    def calls(self) -> Sequence[TurnListener]:
        return [listener.calls for listener in self._listeners if listener.calls is not None]

    async def begin(self) -> str:
        """See `PromptListener`."""
        return "\n\n".join(filter(None, [await listener.begin() for listener in self._listeners]))

    async def on_words(self, words: str, *, typed: str) -> str:
        """See `PromptListener`. Raises `PromptBlocked`."""
        said = [await listener.on_words(words, typed=typed) for listener in self._listeners]
        return "\n\n".join(filter(None, said))

    def told(self, *, opens_turn: bool) -> None:
        """See `PromptListener`."""
        for listener in self._listeners:
            listener.told(opens_turn=opens_turn)
