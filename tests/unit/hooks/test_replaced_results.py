"""A hook's text in the place of a call's result is all that the model gets of it."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from amanu.core.conversation import Result, Results
from amanu.mcp.model import CallAnswer, CallClient, Content
from support.hook_files import answer, configure_user, handler
from support.mcp_in_memory import Server, ServersInMemory
from support.sample_images import base64_of, png
from support.sample_pdf import pdf
from support.scripted_session import ScriptedSession, call, conversation, scripted_session, step

NOTEBOOK: Mapping[str, Any] = {
    "cells": [
        {
            "cell_type": "code",
            "source": "plot()",
            "metadata": {},
            "execution_count": 1,
            "outputs": [
                {
                    "output_type": "display_data",
                    "metadata": {},
                    "data": {"image/png": base64_of(png(5, 5)), "text/plain": ["the plotted secret"]},
                }
            ],
        }
    ],
    "metadata": {},
    "nbformat": 4,
    "nbformat_minor": 5,
}


async def show_picture(arguments: Mapping[str, Any], client: CallClient) -> CallAnswer:
    return CallAnswer([Content("text", "the secret"), Content("image", data=png(4, 4), media_type="image/png")])


def results(d: ScriptedSession) -> list[Result]:
    return [each for message in conversation(d.session) if isinstance(message, Results) for each in message.results]


@pytest.mark.parametrize("replaced", [False, True])
@pytest.mark.parametrize(
    ("wanted", "shows"),
    [
        (call("mcp__demo__echo", text="x"), 1),
        (call("read_file", path="shot.png"), 1),
        (call("read_file", path="paper.pdf"), 1),
        (call("read_file", path="plot.ipynb"), 1),
        (call("read_file", path="notes.txt"), 0),
        (call("run_shell_command", command="cat notes.txt"), 0),
    ],
    ids=lambda value: str(value["arguments"]) if isinstance(value, dict) else str(value),
)
async def test_a_replaced_result_leaves_nothing_of_the_original(
    tmp_path: Path, wanted: dict[str, Any], shows: int, replaced: bool
) -> None:
    servers = ServersInMemory(Server("demo", answer=show_picture))
    async with scripted_session(tmp_path, step("", wanted), step("Done."), mcp=servers) as d:
        (d.root / "shot.png").write_bytes(png())
        (d.root / "paper.pdf").write_bytes(pdf("the printed secret"))
        (d.root / "plot.ipynb").write_text(json.dumps(NOTEBOOK))
        d.session.allow("mcp__demo__*")
        if replaced:
            says = {"hookEventName": "PostToolUse", "updatedToolOutput": "REDACTED"}
            configure_user(PostToolUse=[handler(answer(says))])
        await d.prompt("look")
        await d.ended()
        [result] = results(d)
        assert len(result.pictures) == (0 if replaced else shows), result
        assert not replaced or (result.sent_text, result.is_error) == ("REDACTED", False)
