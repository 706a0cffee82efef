"""The conversation as Markdown and JSON."""

import json
from pathlib import Path
from typing import Any

import pytest

from amanu.permissions import approvals as approval
from amanu.session import export
from amanu.session.export import file_name, markdown
from amanu.text.redaction import MASK
from amanu_protocol.items import Answer, Item, Notice, Question, Thought, ToolCall, UserMessage
from amanu_protocol.requests import SessionExportParams
from support.scripted_session import TWO_HUNKS, ScriptedSession, scripted_session, step
from support.scripted_session import call as call_of
from unit.cli.test_notifications import state

HEAD = "# Fix it\n\nscripted:demo · /w"


def said(text: str, *, steer: bool = False) -> Item:
    return UserMessage(turn_id="t", item_id="u", text=text, attachments=[], steer=steer)


def call(state: str, *, effect: str = "run", output: str = "", error: str | None = None) -> Item:
    fields: dict[str, Any] = {"title": "Run make", "state": state, "effect": effect, "output": output, "error": error}
    return ToolCall.model_construct(item_id="c", turn_id="t", agent_id=None, warns=False, **fields)


@pytest.mark.parametrize(
    ("item", "blocks"),
    [
        (said("do it"), "\n\n## › do it"),
        (said("do it", steer=True), "\n\n## ↪ do it"),
        (said("do\nit"), "\n\n## › do it\n\ndo\nit"),
        (Answer(turn_id="t", item_id="a", text="\n**So** it\x1b[31m is.\n"), "\n\n**So** it is."),
        (Answer(turn_id="t", item_id="a", text="For the model.", agent_id="agent-1"), ""),
        (Thought(turn_id="t", item_id="t", subject="", text="Hm."), ""),
        (call("succeeded"), "\n\n- ✓ Run make"),
        (call("succeeded", output="a\n```\nb\n"), "\n\n- ✓ Run make\n\n````\na\n```\nb\n````"),
        (call("succeeded", effect="read", output="a file\n"), "\n\n- ✓ Run make"),
        (call("failed", effect="read", error="No such file"), "\n\n- ✗ Run make\n\n```\nNo such file\n```"),
        (Notice(turn_id="t", item_id="n", level="warning", code="x", text="Slow"), "\n\n> ! Slow"),
        (Question(turn_id="t", item_id="q", asker="Amanu", title="Which?", fields=[]), "\n\n- ? Which?"),
    ],
)
def test_markdown(item: Item, blocks: str) -> None:
    assert markdown(state(), [item]) == f"{HEAD}{blocks}\n"


@pytest.mark.parametrize(
    ("title", "name"),
    [
        ("Mend the till,", "mend-the-till"),
        ("../x/y", "x-y"),
        ("", "conversation"),
        ("税 99%", "税-99"),
        ("a" * 99, "a" * 60),
    ],
)
def test_the_name_of_the_file(title: str, name: str) -> None:
    assert file_name(title) == name


async def exported(d: ScriptedSession, format: Any = "markdown") -> str:
    return (await d.session.export.text(SessionExportParams(session_id="s", format=format))).text


EXPORTED = """\
- ✓ Edit notes.txt ({decided})

```diff
--- {root}/notes.txt
+++ {root}/notes.txt
@@ -2 +2 @@ applied
-line 2
+line two
@@ -11 +11 @@ rejected: not now
-line 11
+line eleven
```

Quantities count now. {MASK}
"""


async def test_decisions_and_diffs_are_in_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(approval, "GUARD_SECONDS", 0.0)
    edit = call_of("write_file", path="notes.txt", content=TWO_HUNKS)
    async with scripted_session(tmp_path, step("", edit), step("Quantities count now. pass-the-salt-9")) as d:
        await d.prompt("Mend it")
        await d.until(lambda state: state.approvals)
        await d.decide("accept", "reject not now")
        await d.ended()
        d.sessions.services.secrets.learn(["pass-the-salt-9"])
        text = await exported(d)
        (asked,) = [item for item in d.session.state.items if isinstance(item, ToolCall)]
        assert asked.decision is not None
        assert text.endswith(EXPORTED.format(root=d.root, decided=asked.decision.summary, MASK=MASK))
        assert "\n\n## › Mend it\n\n" in text
        whole = json.loads(await exported(d, "json"))
        assert [item["kind"] for item in whole["items"]] == ["userMessage", "toolCall", "answer"]
        assert [hunk["state"] for hunk in whole["proposals"][0]["files"][0]["hunks"]] == ["applied", "rejected"]
        assert whole["roots"] == [str(d.root)]
        assert whole["items"][-1]["text"] == f"Quantities count now. {MASK}"


async def test_all_of_a_long_session_is_in_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(export, "PAGE", 2)
    async with scripted_session(tmp_path, *(step(f"Answer {number}.") for number in range(4))) as d:
        for number in range(4):
            await d.prompt(f"Prompt {number}", f"p{number}")
            await d.over(f"p{number}")
        lines = [line for line in (await exported(d)).splitlines() if line.startswith(("## ", "Answer"))]
        assert lines == [line for number in range(4) for line in (f"## › Prompt {number}", f"Answer {number}.")]
