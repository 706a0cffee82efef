"""What goes into a prompt besides words, in a real VS Code: a pasted picture, a command, an untitled text."""

import base64
import json
import struct
from pathlib import Path

from support.sample_images import png
from support.strict_services.http import Say
from support.vscode import IN_VSCODE, SECONDS, answered, command, open_chat, send, service, workbench

pytestmark = IN_VSCODE

PASTE = """(box, data) => {
  const bytes = Uint8Array.from(atob(data), each => each.charCodeAt(0));
  const transfer = new DataTransfer();
  transfer.items.add(new File([bytes], 'screen.png', {type: 'image/png'}));
  box.dispatchEvent(new ClipboardEvent('paste', {clipboardData: transfer, bubbles: true, cancelable: true}));
}"""

DROP = """(box, uri) => {
  const transfer = new DataTransfer();
  transfer.setData('text/uri-list', uri);
  box.dispatchEvent(new DragEvent('drop', {dataTransfer: transfer, bubbles: true, cancelable: true}));
}"""


async def test_what_goes_along(lived_in: Path) -> None:
    script = [Say(text="A black wall."), Say(text="A list for shopping.")]
    async with service("anthropic", script) as (served, environment), workbench(lived_in, environment) as page:
        chat = await open_chat(page)
        box = chat.locator("textarea")

        # larger than models take: made smaller, sent, and shown again after a reload, from the daemon
        await box.evaluate(PASTE, base64.b64encode(png(3000, 1500)).decode())
        await chat.locator(".chip img").wait_for(timeout=SECONDS)
        await send(chat, "What is this?")
        await answered(chat, "A black wall")
        content = json.loads(served.requests[0].body)["messages"][0]["content"]
        [picture] = [block["source"] for block in content if block["type"] == "image"]
        assert struct.unpack(">II", base64.b64decode(picture["data"])[16:24]) == (2000, 1000)
        await page.reload()
        await chat.locator(".user img[src^='data:image/png']").wait_for(timeout=SECONDS)
        assert await chat.locator(".user img").evaluate("each => each.decode().then(() => each.naturalWidth)") == 2000

        # dropped from elsewhere: a picture goes along, a text is refused in words
        (lived_in / "shot.png").write_bytes(png(30, 20))
        (lived_in / "diary.txt").write_text("private")
        for name in ("shot.png", "diary.txt"):
            await box.evaluate(DROP, (lived_in / name).as_uri())
        await chat.locator(".chip", has_text="shot.png").wait_for(timeout=SECONDS)
        await chat.locator(".told", has_text="diary.txt is outside the workspace").wait_for(timeout=SECONDS)

        # what is on no disk goes along as its text
        await command(page, "File: New Untitled Text File")
        await page.keyboard.type("milk and bread")
        await command(page, "Amanu: Attach Selection to Prompt")
        await chat.locator(".chip", has_text="Untitled-1").wait_for(timeout=SECONDS)
        await send(chat, "What is that?")
        await answered(chat, "A list for shopping")
        assert "milk and bread" in served.requests[1].body.decode()
        messages = json.loads(served.requests[1].body)["messages"]
        said = [each for each in messages if each["role"] == "user"][-1]["content"]
        assert [block["type"] for block in said].count("image") == 1

        # a command of the view's own
        await box.fill("/ne")
        await chat.locator(".completion li", has_text="a new session").wait_for(timeout=SECONDS)
        await box.press("Enter")
        await chat.locator("h2.title", has_text="New session").wait_for(timeout=SECONDS)
        assert len(served.requests) == 2
        assert not served.refused
