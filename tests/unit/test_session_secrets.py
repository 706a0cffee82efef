"""A key among the user's words goes nowhere: not to the model, and into nothing that is kept."""

import os
from pathlib import Path

import pytest

from amanu.permissions import approvals as approval
from amanu.text.redaction import MASK
from amanu_protocol.requests import PromptSteerParams
from support.scripted_session import call, scripted_session, step

KEY = "ghp_" + "0123456789abcdefghijABCDEFGHIJ"


async def test_a_key_typed_into_a_prompt_is_kept_nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(approval, "GUARD_SECONDS", 0.0)
    asks = step("", call("run_shell_command", command="touch it"))
    async with scripted_session(tmp_path, asks, step("I see."), step("And now?")) as d:
        turn_id = await d.prompt(f"use {KEY}, please")
        await d.until(lambda state: state.approvals)
        steer = PromptSteerParams(
            session_id="s", turn_id=turn_id or "", prompt_id="s1", text=f"or {KEY}", attachments=[]
        )
        await d.session.prompts.steer(steer, d.client)
        await d.prompt(f"then {KEY}", "p2")
        await d.answer("reject")
        await d.over("p2")
        assert d.session.state.title == f"use {MASK}, please"
        notices = [each for each in d.session.state.items if each.kind == "notice" and each.code == "secretHidden"]
        assert len(notices) == 3
        assert KEY not in d.told() and f"use {MASK}, please" in d.told()
        await d.reopen()
        assert f"use {MASK}, please" in d.told()
    kept = [path for path in Path(os.environ["AMANU_HOME"]).rglob("*") if path.is_file()]
    assert kept and [path for path in kept if KEY.encode() in path.read_bytes()] == []
