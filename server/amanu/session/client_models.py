"""The models that a client may use, with the keys of its environment."""

import asyncio
import contextlib
from collections.abc import Callable, Iterable
from dataclasses import replace

from amanu.core.model import TokenUsage
from amanu.models import routing
from amanu.models.listing_request import ListingAddress
from amanu.session.commit_message import commit_message
from amanu.session.events import Client
from amanu.session.services import Services
from amanu.session.settings import UserSettings
from amanu_protocol.errors import AmanuError
from amanu_protocol.items import ModelInfo
from amanu_protocol.requests import CommitMessageParams, CommitMessageResult, ModelListResult

_HOW_TO_MODEL = (
    "Set ANTHROPIC_API_KEY, GEMINI_API_KEY or OPENAI_API_KEY, or run `amanu auth set VENDOR` (anthropic, gemini, "
    "openai or openrouter). A ChatGPT plan works too, after `amanu auth login openai`, and so does a model server "
    "on this machine, after `amanu auth local ollama`."
)


class ClientModels:
    """One per process."""

    def __init__(self, services: Services, settings: UserSettings) -> None:
        self._services = services
        self._settings = settings
        self._registry = services.registry
        self._warming: set[asyncio.Task[None]] = set()

    async def list(self, client: Client) -> ModelListResult:
        await self._settings.refresh()
        models = await routing.listed(self._settings.current, self._registry, client.environment)
        return ModelListResult(
            models=models,
            default_model_id=await self._of_new_sessions(client),
            vendors={"amanu": "Automatic", **self._registry.titles},
        )

    async def choose(self, model_id: str | None, client: Client) -> str:
        """That model, or the default one, for a new session; not connected yet. Raises `AmanuError` when it cannot be
        used."""
        await self._settings.refresh()
        chosen = await self._require(model_id, client)
        vendor = chosen.partition(":")[0]
        if vendor in self._settings.current.endpoints and vendor not in self._registry.titles:  # the file has it by now
            reason = f"[endpoints.{vendor}] takes effect when Amanu is restarted."
            raise AmanuError("modelNotFound", f"Unknown model {chosen!r}: {reason}")
        await routing.check(chosen, self._settings.current, self._registry, client.environment, opens=False)
        return chosen

    async def doubt(self, model_id: str, client: Client) -> str | None:
        """A sentence that says why it is not sure that there is such a model. Raises like `choose`."""
        return None if model_id == routing.AUTO else await self._registry.doubt(model_id, client.environment)

    async def warm(self, client: Client) -> None:
        """Import the SDK of the client's likely vendor, so that the first prompt need not wait for it."""
        model_id = self._default(client)
        if model_id == routing.AUTO:
            model_id = self._registry.default(client.environment)
        if model_id is not None:
            await self._registry.warm(model_id.partition(":")[0])

    def connect(self, model_id: str | None, client: Client) -> None:
        """Connect to that model, or the default one, in the background, unless a connection is open: a prompt will
        probably follow."""
        chosen = model_id or self._default(client)
        if chosen is not None:
            connecting = asyncio.create_task(self._connect(chosen, client))
            self._warming.add(connecting)
            connecting.add_done_callback(self._warming.discard)

    async def write_commit_message(
        self, params: CommitMessageParams, client: Client, count: Callable[[ModelInfo, TokenUsage], None] | None
    ) -> CommitMessageResult:
        """`count` is told of the tokens it took. Raises `AmanuError`, see the params."""
        settings = self._settings.current
        model_id = await self._require(params.model_id or settings.routing.utility, client)
        services = replace(self._services, settings=settings)
        return await commit_message(services, params, model_id, client.environment, count)

    async def refresh_catalogue(self, clients: Iterable[Client]) -> None:
        """Ask the vendors that these clients have keys for which models there are: those that did not answer in the
        last day. What fails is in the log."""
        if not self._settings.current.catalogue.refresh:
            return
        addresses: list[ListingAddress] = []
        for client in clients:
            with contextlib.suppress(AmanuError):  # keys that others can read: the prompt will report it
                addresses += self._registry.listing_addresses(client.environment)
        await self._registry.catalogue.refresh(addresses)

    async def close(self) -> None:
        for connecting in self._warming:
            connecting.cancel()
        await self._registry.close()

    def _default(self, client: Client) -> str | None:
        return routing.default(self._settings.current, self._registry, client.environment)

    async def _of_new_sessions(self, client: Client) -> str | None:
        return self._default(client) or await self._registry.local_default(client.environment)

    async def _require(self, model_id: str | None, client: Client) -> str:
        chosen = model_id or await self._of_new_sessions(client)
        if chosen is None:
            raise AmanuError("authRequired", "No model is available: no API key is set.", hint=_HOW_TO_MODEL)
        return chosen

    async def _connect(self, model_id: str, client: Client) -> None:
        with contextlib.suppress(AmanuError):  # the prompt will report it
            await routing.check(model_id, self._settings.current, self._registry, client.environment)
