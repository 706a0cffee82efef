"""What is said in a turn beside replies and results: by the daemon to the model, to the person, and by the person."""

from collections.abc import Collection
from typing import TYPE_CHECKING, Literal

from amanu.agent.recovery import REMEDIES, Oddity
from amanu.core.conversation import Results, Told
from amanu_protocol.events import ItemCompleted
from amanu_protocol.items import Notice

if TYPE_CHECKING:
    from amanu.agent.turn import Turn


def tell(turn: "Turn", step: int, text: str, shown: str) -> None:
    """Say something to the model in the daemon's name; the person sees a notice of it."""
    note = Told(text=text)
    turn.conversation.note(note)
    turn.told += 1
    entry = Results(results=(), notes=(note,))
    notice(turn, f"{step}.told.{turn.told}", "info", "modelTold", shown, entry)


def remind(turn: "Turn", step: int, odd: Oddity) -> None:
    """Tell the model what its odd reply calls for."""
    tell(turn, step, REMEDIES[odd].note, REMEDIES[odd].shown)


def notice(
    turn: "Turn", name: str, level: Literal["info", "warning"], code: str, text: str, entry: Results | None = None
) -> None:
    notice = Notice(item_id=f"{turn.turn_id}.{name}", turn_id=turn.turn_id, level=level, code=code, text=text)
    turn.emit(ItemCompleted(item=notice), entry=entry)


def hear(turn: "Turn") -> bool:
    """Put what the person said or decided meanwhile at the end of the conversation. True if there was any."""
    notes = turn.take_notes()
    for said in notes:
        turn.conversation.note(*said.parts)
        if turn.loops is not None and not said.told:
            turn.loops.heard(said.text)
    return bool(notes)


async def refresh(turn: "Turn", step: int) -> None:
    """Tell the model which files it has read are others now."""
    news = await turn.outdated()
    if news is not None:
        tell(turn, step, *news)


async def remember(turn: "Turn", step: int, paths: Collection[str]) -> None:
    """Tell the model the project memory of what was touched, and the person that it was."""
    remembered = await turn.touched(paths)
    if remembered is None:
        return
    note = Told(text=remembered.text) if remembered.text else None
    entry = Results(results=(), notes=(note,)) if note is not None else None
    if note is not None:
        turn.conversation.note(note)
    turn.emit(ItemCompleted(item=remembered.notice(f"{turn.turn_id}.{step}", turn.turn_id)), entry=entry)
