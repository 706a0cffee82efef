"""The services of three vendors at once, for sessions that go from one to another."""

import os
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager

from support.strict_services.anthropic import Anthropic
from support.strict_services.gemini import Gemini
from support.strict_services.http import Service
from support.strict_services.responses import Responses

MODELS = {
    "anthropic": "anthropic:claude-opus-5-5",
    "gemini": "gemini:gemini-3.5-flash",
    "openai": "openai:gpt-6.2-sol",
}


@asynccontextmanager
async def three_vendors() -> AsyncGenerator[tuple[Mapping[str, Service], Mapping[str, str]]]:
    """The service of each vendor, and the environment in which a client reaches them. In the end they must not have
    refused anything."""
    services: dict[str, Service] = {"anthropic": Anthropic([]), "gemini": Gemini([]), "openai": Responses([])}
    urls = {name: await service.start() for name, service in services.items()}
    environment = {
        "ANTHROPIC_API_KEY": "k",
        "ANTHROPIC_BASE_URL": urls["anthropic"],
        "GEMINI_API_KEY": "k",
        "GOOGLE_GEMINI_BASE_URL": urls["gemini"],
        "OPENAI_API_KEY": "k",
        "OPENAI_BASE_URL": f"{urls['openai']}/v1",
    }
    try:
        yield services, {**os.environ, **environment}
        for service in services.values():
            assert (service.refused, service.lint) == ([], [])
    finally:
        for service in services.values():
            await service.stop()
