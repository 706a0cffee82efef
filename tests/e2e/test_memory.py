"""A fact through the real process: proposed, agreed to, told to the next session, struck."""

import asyncio
import os
from pathlib import Path

from e2e.test_prompt_to_edit import editor, service, start
from support.strict_services.http import Say, ToolUse

FACT = "Answer in French."
SAVE = ToolUse("save_memory", {"fact": FACT, "scope": "user"})


async def test_what_is_remembered_in_one_session_is_told_in_the_next_until_it_is_struck(tmp_path: Path) -> None:
    own = Path(os.environ["AMANU_HOME"]) / "config" / "AGENTS.md"
    script = [Say(text="I note it.", calls=[SAVE]), Say(text="Noted."), Say(text="Bonjour."), Say(text="Hello.")]
    async with service("anthropic", script) as (served, model_id, keys), editor(keys, "--alone") as client:
        await start(client, tmp_path, model_id, "remember that", mode="auto")
        state = await client.until(lambda state: state.approvals)
        assert not own.exists()
        await asyncio.sleep(0.55)
        asked = state.approvals[0]
        await client.ask(
            "approval/resolve", sessionId="s1", toolCallId=asked.tool_call_id, decision="allow", digest=asked.digest
        )
        await client.until(lambda state: state.last_turn)
        assert own.read_text() == f"## Remembered\n\n- {FACT}\n"
        for session_id in ("s2", "s3"):
            await client.ask("session/create", sessionId=session_id, roots=[str(tmp_path)], modelId=model_id)
            sent = await client.ask("prompt/send", sessionId=session_id, promptId="p1", text="hello")
            assert sent["status"] == "started"
            async with asyncio.timeout(50):
                while len(served.requests) < {"s2": 3, "s3": 4}[session_id]:
                    await asyncio.sleep(0.02)
            assert (FACT.encode() in served.requests[-1].body) == (session_id == "s2")
            listed = await client.ask("memory/list", sessionId=session_id)
            for fact in listed["facts"]:
                await client.ask("memory/strike", sessionId=session_id, number=fact["number"], text=fact["text"])
        assert own.read_text() == "## Remembered\n\n"
        assert not served.refused and not served.lint
        assert await client.raw.leave() == 0
