"""A user with a browser, before the strict identity service: what tests of the sign-in with ChatGPT share."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from amanu.models.chatgpt_login import sign_in
from amanu.models.chatgpt_tokens import ChatGPTTokens
from amanu.models.openai_identity import OpenAIIdentity
from amanu.text.redaction import Secrets
from support.fake_browser import Page, visit
from support.strict_services.openai_identity import OpenAIIdentityService


@dataclass
class ChatGPTUser:
    """`path` is where the tokens are kept, `address` the service's."""

    service: OpenAIIdentityService
    path: Path
    address: str
    secrets: Secrets = field(default_factory=Secrets)
    pages: list[Page] = field(default_factory=list[Page])
    browsing: list["asyncio.Task[list[Page]]"] = field(default_factory=list["asyncio.Task[list[Page]]"])

    def tokens(self, **clocks: Callable[[], float]) -> ChatGPTTokens:
        """As another process would read them."""
        return ChatGPTTokens(self.path, self.secrets, OpenAIIdentity(self.address), **clocks)

    async def sign_in(self, browse: Callable[[str], Any] = visit, seconds: float = 20) -> str:
        def show(address: str) -> None:
            self.browsing.append(asyncio.create_task(asyncio.to_thread(browse, address)))

        try:
            return await sign_in(self.tokens(), show, seconds)
        finally:
            for pages in await asyncio.gather(*self.browsing):
                self.pages += pages or []

    def left(self) -> list[str]:
        """What is left of attempts: files with something in them."""
        return sorted(each.name for each in self.path.parent.iterdir() if each.stat().st_size)


@asynccontextmanager
async def chatgpt_user(folder: Path, **answers: Any) -> AsyncGenerator[ChatGPTUser]:
    service = OpenAIIdentityService()
    for name, value in answers.items():
        setattr(service, name, value)
    try:
        yield ChatGPTUser(service, folder / "chatgpt.json", f"{await service.start()}/api/accounts")
    finally:
        await service.stop()
