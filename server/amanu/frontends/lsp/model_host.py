"""The models that one connection's client offers (`amanu/model/*`): a request to run one, its reply part by part."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any

from pydantic import ValidationError

from amanu.frontends.lsp.jsonrpc import ClientError
from amanu_protocol.requests import ModelPartParams, ModelRunParams, ModelRunResult, RunCallPart, RunTextPart

Ask = Callable[[str, Any], Awaitable[Any]]


class EditorModelHost:
    """`models.offered.ModelHost`. `ask` sends a request to the client; cancelling it tells the client so."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask
        self._runs: dict[str, asyncio.Queue[RunTextPart | RunCallPart | None]] = {}

    async def run(self, params: ModelRunParams) -> AsyncGenerator[RunTextPart | RunCallPart | ModelRunResult]:
        parts = self._runs[params.run_id] = asyncio.Queue()
        asking = asyncio.ensure_future(self._ask("amanu/model/run", params))
        asking.add_done_callback(lambda _: parts.put_nowait(None))
        try:
            while (part := await parts.get()) is not None:
                yield part
            yield _result(asking)
        finally:
            del self._runs[params.run_id]
            asking.cancel()
            await asyncio.wait([asking])

    def add_part(self, params: ModelPartParams) -> None:
        """The client sends the next part of a reply. Of one that nobody waits for any more, it is dropped."""
        if (parts := self._runs.get(params.run_id)) is not None:
            parts.put_nowait(params.part)


def _result(asking: "asyncio.Future[Any]") -> ModelRunResult:
    """How it ended. Raises `ConnectionError`."""
    try:
        return ModelRunResult.model_validate(asking.result(), by_alias=True, by_name=False)
    except ClientError as error:
        raise ConnectionError(str(error)) from None
    except ValidationError:
        return ModelRunResult(error="other", message="The editor's answer is invalid.")
