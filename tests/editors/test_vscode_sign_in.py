"""Signing in with ChatGPT in a real VS Code: from a chat without a model to an answer on the plan, and out again.

The user's browser is the one VS Code runs in; OpenAI's page, which opens there, is a strict service's on this machine.
"""

import re
import socket
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from amanu.home import find_home
from support.strict_services.http import Say
from support.strict_services.openai_identity import OpenAIIdentityService
from support.strict_services.responses import Responses
from support.vscode import IN_VSCODE, SECONDS, answered, command, open_chat, send, shoot, until, workbench

pytestmark = IN_VSCODE
BUTTON, COMMAND = "Sign in with ChatGPT", "Amanu: Sign In with ChatGPT"
_AUTHORIZE = re.compile(r"/api/accounts/authorize\?")


async def test_sign_in_prompt_sign_out(window: Path) -> None:
    identity = OpenAIIdentityService()
    api = Responses([Say(text="Hello from your **plan**.")], plan=identity.valid)
    environment = {
        "AMANU_OPENAI_AUTH_URL": f"{await identity.start()}/api/accounts",
        "OPENAI_BASE_URL": f"{await api.start()}/v1",
    }
    try:
        async with workbench(window, environment) as page:
            await page.set_viewport_size({"width": 1280, "height": 800})
            await page.context.route(_AUTHORIZE, arrive)
            chat = await open_chat(page)
            await chat.locator(".hindrance", has_text="needs a model").wait_for(timeout=SECONDS)
            await shoot(page, "sign-in-1-no-model")

            await page.context.route(_AUTHORIZE, hesitate)
            port = await asked(page, lambda: command(page, COMMAND))
            toast = page.locator(".notification-toast", has_text="Waiting for you to sign in")
            await shoot(page, "sign-in-2-waiting")
            assert await asked(page, toast.locator("a", has_text="Open the page again").click) == port
            await toast.locator(".monaco-button", has_text="Cancel").click()
            await toast.wait_for(state="hidden", timeout=SECONDS)
            await until(lambda: is_listening(port), False)
            await page.context.unroute(_AUTHORIZE, hesitate)

            button = chat.locator(".hindrance button", has_text=BUTTON)
            opened = await opens(page, lambda: button.click(timeout=SECONDS))
            await opened.locator("text=You can close this page").wait_for(timeout=SECONDS)
            await shoot(opened, "sign-in-3-page")
            await opened.close()
            await chat.locator(".told", has_text="Signed in as ada@example.org").wait_for(timeout=SECONDS)
            await chat.locator(".hindrance").wait_for(state="hidden", timeout=SECONDS)
            await shoot(page, "sign-in-4-signed-in")
            await send(chat, "Are you there?")
            await answered(chat, "Hello from your plan.")
            await shoot(page, "sign-in-5-answer")

            await command(page, "Amanu: Sign Out of ChatGPT")
            await chat.locator(".told", has_text="Signed out").wait_for(timeout=SECONDS)
            await chat.locator(".hindrance", has_text="needs a model").wait_for(timeout=SECONDS)
            await shoot(page, "sign-in-6-signed-out")

            await page.context.route(_AUTHORIZE, hesitate)
            port = await asked(page, lambda: command(page, COMMAND))
            await page.reload()
            await until(lambda: is_listening(port), False)
    finally:
        await identity.stop()
        await api.stop()
    assert (identity.refused, api.refused, api.lint) == ([], [], [])
    assert api.requests, "the prompt went to the plan"
    assert not re.search(r"(access|refresh)\.[0-9a-f]{8}", (find_home().config / "chatgpt.json").read_text())


async def asked(page: Any, work: Callable[[], Awaitable[None]]) -> int:
    """The port where the page, which asks and gets no answer, would lead; somebody listens there."""
    opened = await opens(page, work)
    await opened.locator("text=Allow?").wait_for(timeout=SECONDS)
    port = urlsplit(parse_qs(urlsplit(str(opened.url)).query)["redirect_uri"][0]).port or 0
    await opened.close()
    assert await is_listening(port)
    return port


async def opens(page: Any, work: Callable[[], Awaitable[None]]) -> Any:
    """The page in the browser that VS Code opens at this."""
    async with page.context.expect_page(timeout=SECONDS) as opened:
        await work()
    return await opened.value


async def arrive(route: Any) -> None:
    """The VS Code of the tests is code-server's, which sends addresses of this machine through a proxy that does not
    run here: go where it would lead."""
    proxied = re.sub(r"^http://[^/]+/proxy/", "http://127.0.0.1:", str(route.request.url))
    await route.fulfill(status=302, headers={"location": proxied})


async def hesitate(route: Any) -> None:
    """The page asks, and the user does not answer."""
    await route.fulfill(content_type="text/html", body="<h1>Allow?</h1>")


async def is_listening(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0
