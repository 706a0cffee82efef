"""A service that no longer knows a model: how the turn ends names what to use instead."""

import os
from pathlib import Path

import pytest

from amanu.session.sessions import open_sessions
from amanu_protocol.requests import PromptSendParams, SessionCreateParams
from support.session_client import Client, until
from support.strict_services.anthropic import Anthropic
from support.strict_services.gemini import Gemini
from support.strict_services.http import Fault, Service
from support.strict_services.responses import Responses


@pytest.mark.parametrize(
    ("make", "model_id", "variables", "said"),
    [
        (
            Anthropic,
            "anthropic:claude-sonnet-4-5-20250929",
            {"ANTHROPIC_API_KEY": "k", "ANTHROPIC_BASE_URL": "{url}"},
            "Its vendor shuts it down on 2026-11-30; choose anthropic:claude-sonnet-5-5 instead.",
        ),
        (
            Gemini,
            "gemini:gemini-2.5-pro",
            {"GEMINI_API_KEY": "k", "GOOGLE_GEMINI_BASE_URL": "{url}"},
            "Its vendor has deprecated it; choose gemini:gemini-3.8-flash instead.",
        ),
        (
            Responses,
            "openai:gpt-5",
            {"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": "{url}/v1"},
            "Its vendor shuts it down on 2026-12-11; choose openai:gpt-6.1-sol instead.",
        ),
        (
            Responses,
            "openai:gpt-6.2-sol",
            {"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": "{url}/v1"},
            "The model does not exist. OpenAI has openai:test-model. To see all of them, run: amanu models",
        ),
    ],
)
async def test_the_successor_is_named(
    tmp_path: Path, make: type[Service], model_id: str, variables: dict[str, str], said: str
) -> None:
    service = make([Fault("status", status=404, message="The model does not exist.", code="model_not_found")])
    url = await service.start()
    client = Client({**os.environ, **{name: value.format(url=url) for name, value in variables.items()}})
    sessions = open_sessions()
    try:
        created = SessionCreateParams(session_id="s", roots=[str(tmp_path)], model_id=model_id)
        client.state = (await sessions.create(created, client)).state
        session = await sessions.get("s")
        await session.prompts.send(PromptSendParams(session_id="s", prompt_id="p", text="hi"), client)
        ended = (await until(session, lambda state: state.last_turn, seconds=20)).last_turn
        assert ended is not None and ended.reason == "failed"
        assert ended.message is not None and ended.message.endswith(said)
        assert [received.method for received in service.requests].count("POST") == 1
    finally:
        await sessions.shutdown()
        await service.stop()
