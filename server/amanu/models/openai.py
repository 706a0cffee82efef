"""OpenAI: the Responses API, or chat completions if the user has pointed `OPENAI_BASE_URL` at a server that supports
only those."""

import re
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any, cast

from amanu.core.model import Delta, ModelError, ModelNotFound, Request, RequestRefused
from amanu.models.openai_compatible import OpenAICompatibleModel
from amanu.models.openai_responses import ResponsesModel


class OpenAIModel:
    """A `Model`. Takes the arguments of `OpenAIEndpoint`."""

    def __init__(self, vendor: str, base_url: str, key: str | None = None) -> None:
        self._models = (
            ResponsesModel(vendor, base_url, key, searches=True),
            OpenAICompatibleModel(vendor, base_url, key),
        )
        self._model: ResponsesModel | OpenAICompatibleModel = self._models[0]

    @property
    def searches(self) -> bool:
        return self._model.searches

    def __repr__(self) -> str:
        return f"OpenAIModel({self._model!r})"

    async def stream(self, request: Request) -> AsyncIterator[Delta]:
        """See `Model.stream`."""
        if self._model is self._models[0]:
            try:
                async with aclosing(cast("Any", self._model.stream(request))) as deltas:
                    async for delta in deltas:
                        yield delta
                return
            except (ModelNotFound, RequestRefused) as refusal:
                if not _is_unknown_path(refusal):
                    raise
            self._model = self._models[1]
        async with aclosing(cast("Any", self._model.stream(request))) as deltas:
            async for delta in deltas:
                yield delta

    async def connect(self) -> None:
        await self._model.connect()

    async def close(self) -> None:
        for model in self._models:
            await model.close()


def _is_unknown_path(refusal: ModelError) -> bool:
    """Whether the server has no such path. OpenAI also answers 404 for an unknown model or item, but names it."""
    return refusal.status in (404, 405, 501) and not re.search(r"\bmodel\b|\bitem\b", refusal.details, re.I)
