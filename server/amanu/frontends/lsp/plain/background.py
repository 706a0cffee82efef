"""What a plain client sets going without waiting for it: a failure becomes a message to its user."""

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any

from pydantic import ValidationError

from amanu.frontends.lsp.plain.editor import ERROR, PlainEditor
from amanu_protocol.errors import AmanuError

log = logging.getLogger(__name__)


class BackgroundTasks:
    """They run to their end, also when the client has gone."""

    def __init__(self, editor: PlainEditor) -> None:
        self._editor = editor
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self, coroutine: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run it, whoever waits for it. The task does not raise: errors are said to the user."""
        task = asyncio.create_task(self._run(coroutine))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _run(self, coroutine: Coroutine[Any, Any, None]) -> None:
        try:
            await coroutine
        except AmanuError as error:
            hint = f" {error.data.hint}" if error.data.hint else ""
            self._editor.say(f"Amanu: {error}{hint}", ERROR)
        except ValidationError:  # half a surrogate pair, say: text that no message of ours can hold
            self._editor.say("Amanu: the text contains characters that cannot be encoded.", ERROR)
        except Exception:
            log.exception("a command failed")
            self._editor.say("Amanu: an internal error; `amanu logs` shows what happened.", ERROR)
