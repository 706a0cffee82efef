"""Completion in the composer: slash commands at its start, mentions anywhere. Imports prompt_toolkit."""

import asyncio
from collections.abc import AsyncGenerator, Iterable

from prompt_toolkit.application import get_app
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from amanu.cli.text import one_line
from amanu.cli.ui.context import PromptContext
from amanu.client.daemon_client import Disconnected
from amanu_protocol.errors import AmanuError

STILL_READING = 0.2
"""Seconds until it is asked again what may be mentioned, while the daemon reads a folder for the first time."""


class PromptCompleter(Completer):
    def __init__(self, context: PromptContext) -> None:
        self._context = context

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        typed = document.text_before_cursor
        for row in self._context.rows(typed):
            label, about = one_line(row.label), one_line(row.description)
            yield Completion(row.text, row.start - len(typed), display=label, display_meta=about)

    async def get_completions_async(
        self, document: Document, complete_event: CompleteEvent
    ) -> AsyncGenerator[Completion]:
        typed = document.text_before_cursor
        try:
            if typed.startswith("/") and "\n" not in typed:
                await self._context.learn(typed)
                for completion in self.get_completions(document, complete_event):
                    yield completion
                if "@" not in typed:
                    return
            incomplete, offered = True, set[str]()
            while incomplete:
                mentions = await self._context.mentions(typed)
                for item in mentions.items:
                    if item.text not in offered:
                        label, detail = one_line(item.text), one_line(item.detail)
                        yield Completion(item.text, -len(mentions.typed), display=label, display_meta=detail)
                offered |= {item.text for item in mentions.items}
                if incomplete := mentions.incomplete:
                    await asyncio.sleep(STILL_READING)  # a text typed meanwhile waits until this has ended
                    incomplete = get_app().current_buffer.document == document
        except (AmanuError, Disconnected):
            pass
