"""`vendor:model` → something to stream from. The vendors are a table; their files are imported on first use."""

import asyncio
import importlib
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from amanu.config import Settings
from amanu.core.model import Model, RemoteModel
from amanu.core.model_families import in_window
from amanu.models import clouds
from amanu.models.catalogue import PRICE_LIST, Catalogue, is_shipped
from amanu.models.chatgpt_tokens import ChatGPTTokens
from amanu.models.clouds import AwsCredentials, CloudModel, GoogleProject
from amanu.models.credentials import Credentials
from amanu.models.key_services import check_key, untested
from amanu.models.listing_request import LISTING_VENDORS, ListingAddress
from amanu.models.local import LocalServers, models_of
from amanu.models.offered import PREFIX as _OFFERED
from amanu.models.offered import OfferedModels
from amanu.models.openai_identity import RESOURCE, tested_address
from amanu.models.request_fields import ExtendedModel, fields_for
from amanu.system.gc import quick_imports
from amanu_protocol.errors import AmanuError
from amanu_protocol.items import ModelInfo
from amanu_protocol.requests import AuthCheckResult

_SCRIPTED = "scripted:"
_LOOPBACK = {"127.0.0.1", "::1", "localhost"}


Credential = str | ChatGPTTokens | AwsCredentials | GoogleProject | None


def _anthropic(_: str, base_url: str, key: Credential) -> RemoteModel:
    from amanu.models.anthropic import AnthropicModel

    return AnthropicModel(_plain(key) or "", base_url)


def _gemini(_: str, base_url: str, key: Credential) -> RemoteModel:
    from amanu.models.gemini import GeminiModel

    return GeminiModel(_plain(key) or "", base_url)


def _openai(title: str, base_url: str, key: Credential) -> RemoteModel:
    from amanu.models.openai import OpenAIModel
    from amanu.models.openai_responses import ResponsesModel

    if isinstance(key, ChatGPTTokens):
        return ResponsesModel(title, base_url, key, on_plan=True, searches=True)
    return OpenAIModel(title, base_url, _plain(key))


def _responses(title: str, base_url: str, key: Credential) -> RemoteModel:
    from amanu.models.openai_responses import ResponsesModel

    return ResponsesModel(title, base_url, _plain(key))


def _compatible(title: str, base_url: str, key: Credential) -> RemoteModel:
    from amanu.models.openai_compatible import OpenAICompatibleModel

    return OpenAICompatibleModel(title, base_url, _plain(key))


def _openrouter(title: str, base_url: str, key: Credential) -> RemoteModel:
    from amanu.models.openai_compatible import EndpointQuirks, OpenAICompatibleModel

    return OpenAICompatibleModel(title, base_url, _plain(key), EndpointQuirks(searches=True))


def _bedrock(_: str, base_url: str, key: Credential) -> RemoteModel:
    from amanu.models.anthropic_clouds import BedrockModel

    return BedrockModel(key if isinstance(key, AwsCredentials) else _plain(key) or "", base_url)


def _foundry(_: str, base_url: str, key: Credential) -> RemoteModel:
    from amanu.models.anthropic_clouds import FoundryModel

    return FoundryModel(_plain(key) or "", base_url)


def _vertex(_: str, base_url: str, key: Credential) -> RemoteModel:
    from amanu.models.vertex import VertexModel

    assert isinstance(key, GoogleProject)
    return VertexModel(key, base_url)


def _plain(key: Credential) -> str | None:
    assert key is None or isinstance(key, str), "others are for the service that they come from"
    return key


@dataclass(frozen=True)
class Vendor:
    """A way to models. `base_variable` names the environment variable that moves its address."""

    name: str
    title: str
    base_url: str
    make: Callable[[str, str, Credential], RemoteModel] = _compatible
    """Makes a client from title, base URL and key."""
    base_variable: str | None = None
    path: str = ""
    """Follows an address that comes from the environment."""
    needs_key: bool = True
    sign_in: bool = False
    """Takes the tokens of a sign-in (`chatgpt_tokens.py`)."""
    cloud: Callable[[CloudModel], tuple[str, Credential]] | None = None
    """Finds address and credential, where they depend on a region, project or resource."""
    local: bool = False
    """Used only with the user's consent (`local.py`)."""
    models: tuple[str, ...] = ()
    """The models that the user named, where the service does not list them."""
    searches: bool = False
    """Its own service can search the web, as its models say of themselves (`core/model.py`)."""
    modules: tuple[str, ...] = ("httpx2",)
    """The modules that its client imports on first use."""


_GOOGLE = "https://generativelanguage.googleapis.com"
VENDORS = (
    Vendor(
        "anthropic",
        "Anthropic",
        "https://api.anthropic.com",
        _anthropic,
        "ANTHROPIC_BASE_URL",
        modules=("anthropic",),
        searches=True,
    ),
    Vendor(
        "gemini", "Google Gemini", _GOOGLE, _gemini, "GOOGLE_GEMINI_BASE_URL", modules=("google.genai",), searches=True
    ),
    Vendor("openai", "OpenAI", "https://api.openai.com/v1", _openai, "OPENAI_BASE_URL", sign_in=True, searches=True),
    Vendor(
        "bedrock",
        "Amazon Bedrock",
        "",
        _bedrock,
        "ANTHROPIC_BEDROCK_MANTLE_BASE_URL",
        cloud=clouds.bedrock,
        modules=("anthropic",),
    ),
    Vendor("vertex", "Vertex AI", "", _vertex, needs_key=False, cloud=clouds.vertex),
    Vendor(
        "foundry",
        "Microsoft Foundry",
        "",
        _foundry,
        "ANTHROPIC_FOUNDRY_BASE_URL",
        cloud=clouds.foundry,
        modules=("anthropic",),
    ),
    Vendor("openrouter", "OpenRouter", "https://openrouter.ai/api/v1", _openrouter, searches=True),
    Vendor(
        "google-openai",
        "Google (OpenAI-compatible)",
        f"{_GOOGLE}/v1beta/openai",
        _compatible,
        "GOOGLE_GEMINI_BASE_URL",
        "/v1beta/openai",
    ),
    Vendor("ollama", "Ollama", "http://127.0.0.1:11434/v1", needs_key=False, local=True),
    Vendor("llamacpp", "llama.cpp", "http://127.0.0.1:8080/v1", needs_key=False, local=True),
    Vendor("vllm", "vLLM", "http://127.0.0.1:8000/v1", needs_key=False, local=True),
)

DEFAULTS = ("anthropic:claude-sonnet-5-5", "gemini:gemini-3.8-flash", "openai:gpt-6.2-sol")
"""The model to start with, of the first vendor that has a key."""


class ModelRegistry:
    """All models one can name. One client per vendor, address and key is kept.

    Addresses come from the client's environment or the user's settings, never from a workspace.
    """

    def __init__(self, settings: Settings, auth: Credentials, consent: Path, catalogue: Catalogue) -> None:
        """`consent`: the file that remembers the local servers the user approved."""
        self.catalogue = catalogue
        self._auth = auth
        self.base_urls: Mapping[str, str] = settings.base_urls
        """Vendor → the address in the settings, as they are now."""
        self._seeing = frozenset(settings.vision)
        self._local = LocalServers(consent)
        self._windows = settings.context.windows
        self._request_fields = settings.request_fields
        self._asks_for_prices = settings.catalogue.prices
        self._clouds = settings.clouds.variables
        self._vendors = {vendor.name: vendor for vendor in VENDORS}
        for name, endpoint in settings.endpoints.items():
            self._vendors[name] = Vendor(
                name,
                name,
                endpoint.base_url.rstrip("/"),
                _responses if endpoint.wire == "responses" else _compatible,
                needs_key=endpoint.key_variable is not None,
                local=urlsplit(endpoint.base_url).hostname in _LOOPBACK,
                models=endpoint.models,
            )
            if endpoint.key_variable is not None:
                auth.expect(name, endpoint.key_variable)
        self.offered = OfferedModels()
        self._clients: dict[tuple[str, str, Credential], RemoteModel] = {}
        self._extended_models: dict[tuple[RemoteModel, str], ExtendedModel] = {}
        self._asking: dict[tuple[str, str | None], asyncio.Task[list[str] | None]] = {}
        """Requests in progress for the models of a server."""
        self._warming = asyncio.Lock()
        self.opening: set[asyncio.Task[None]] = set()
        """Imports and connections in progress; nobody waits for them."""
        self.replays = False
        """A recording answers, so neither key nor consent is needed."""

    async def resolve(self, model_id: str, environment: Mapping[str, str]) -> tuple[Model, ModelInfo]:
        """The model and its facts. Raises `AmanuError`: modelNotFound, authRequired, permissionDenied,
        modelUnavailable; each says what to do."""
        if model_id.startswith(_SCRIPTED) and model_id != _SCRIPTED:
            return await self._scripted(model_id.removeprefix(_SCRIPTED))
        if model_id.startswith(_OFFERED):
            return self._of_editor(model_id)
        vendor, base_url, key = await self._way(model_id, environment)
        facts = await self._facts(vendor, base_url, model_id)
        return self._extended(await self._client(vendor, base_url, key), model_id), _priced(facts, key)

    async def check(self, model_id: str, environment: Mapping[str, str], *, opens: bool = True) -> ModelInfo:
        """The facts about a model that can be used; raises as `resolve` does. If it `opens`, its modules are imported
        and its connection is opened in the background, so that the first prompt need not wait."""
        if model_id.startswith((_SCRIPTED, _OFFERED)):
            return (await self.resolve(model_id, environment))[1]
        vendor, base_url, key = await self._way(model_id, environment)
        if await asyncio.to_thread(self._listed, vendor, base_url, environment, model_id) is False:
            raise AmanuError(
                "modelNotFound",
                f"{vendor.title} has no model {model_id.partition(':')[2]!r}: it is not on its list of the last day.",
                hint=self._nearest_listed(vendor.name, model_id.partition(":")[2]),
            )
        if opens:
            opening = asyncio.create_task(self._open(vendor, base_url, key))
            self.opening.add(opening)
            opening.add_done_callback(self._opened)
        return _priced(await self._facts(vendor, base_url, model_id), key)

    def known(self, model_id: str, environment: Mapping[str, str]) -> ModelInfo:
        """The facts about a model, whether or not it can be used."""
        vendor = self._vendors.get(model_id.partition(":")[0])
        return _priced(self._known(model_id), None if vendor is None else self._credential(vendor, environment))

    async def doubt(self, model_id: str, environment: Mapping[str, str]) -> str | None:
        """A sentence that says why it is not sure that there is such a model. Raises as `resolve` does."""
        if model_id.startswith((_SCRIPTED, _OFFERED)):
            return None
        vendor, base_url, _ = await self._way(model_id, environment)
        model = model_id.partition(":")[2]
        if self.replays or is_shipped(model_id) or vendor not in VENDORS or vendor.name not in LISTING_VENDORS:
            return None
        if await asyncio.to_thread(self.catalogue.lists, vendor.name, model):
            return None
        guess = _guess(self._known(model_id))
        near = _suggestion(model, {known.partition(":")[2]: known for known in self.catalogue.ids(vendor.name)})
        if not _is_asked(vendor, base_url):
            return " ".join(filter(None, [f"Amanu knows no model {model!r} of {vendor.title}.", guess, near]))
        words = (
            f"Whether {vendor.title} has a model {model!r} is not known: its list of models is not from the last day.",
            guess,
            near,
            "To ask for it, run: amanu models --refresh",
        )
        return " ".join(filter(None, words))

    def _listed(self, vendor: Vendor, base_url: str, environment: Mapping[str, str], model_id: str) -> bool | None:
        """Whether the vendor's own list has the model. None where there is none of the last day, or where the address
        is not the vendor's own."""
        key = self._credential(vendor, environment)
        if self.replays or key is None or not _is_asked(vendor, base_url):
            return None
        if not self.catalogue.fresh(ListingAddress(vendor.name, base_url, key)):
            return None
        return self.catalogue.lists(vendor.name, model_id.partition(":")[2])

    async def _way(self, model_id: str, environment: Mapping[str, str]) -> tuple[Vendor, str, Credential]:
        """Vendor, address and key of a model that can be used. Raises as `resolve` does."""
        name, _, model = model_id.partition(":")
        vendor = self._vendors.get(name)
        if vendor is None or not model:
            raise AmanuError("modelNotFound", f"Unknown model {model_id!r}.", hint=self._nearest(model_id))
        base_url = self._base_url(vendor, environment)
        key = self._credential(vendor, environment)
        if self.replays:
            key = key if isinstance(key, str) else "replayed"
        if vendor.cloud is not None:
            base_url, key = vendor.cloud(self._asked(vendor, model, environment))
        elif vendor.needs_key and key is None:
            raise AmanuError("authRequired", f"No key for {vendor.title}.", hint=self._how_to_key(name))
        _check_address(vendor, base_url, key)
        if vendor.local and not self.replays and not self._local.allowed(name, base_url):
            await self._ask_for_consent(vendor, base_url)
        return vendor, base_url, key

    async def _facts(self, vendor: Vendor, base_url: str, model_id: str) -> ModelInfo:
        info = self._known(model_id).model_copy(update={"available": True})
        if not vendor.local or self.replays or model_id in self._windows:
            return info
        window = await self._local.window(vendor.name, base_url, model_id.partition(":")[2])
        return info if window is None else in_window(info, window).model_copy(update={"facts_from": vendor.title})

    async def _client(self, vendor: Vendor, base_url: str, key: Credential) -> RemoteModel:
        if (vendor.name, base_url, key) not in self._clients:
            await self.warm(vendor.name)  # in a thread: here it would hold up every session for a second
        client = self._clients.get((vendor.name, base_url, key))
        if client is None:
            client = self._clients[vendor.name, base_url, key] = vendor.make(vendor.title, base_url, key)
        return client

    def _extended(self, client: RemoteModel, model_id: str) -> Model:
        """The client, with the fields that the user adds to requests to the model, if there are any."""
        fields = fields_for(model_id, self._request_fields)
        if not fields:
            return client
        return self._extended_models.setdefault((client, model_id), ExtendedModel(client, fields))

    async def _open(self, vendor: Vendor, base_url: str, key: Credential) -> None:
        client = await self._client(vendor, base_url, key)
        if not self.replays:
            await client.connect()

    def _opened(self, opening: "asyncio.Task[None]") -> None:
        """A failure is ignored here: the first request to the model fails, and reports, the same way."""
        self.opening.discard(opening)
        if not opening.cancelled():
            opening.exception()

    async def list(self, environment: Mapping[str, str]) -> list[ModelInfo]:
        """All known models, then those of the servers that answer; each says whether it can be used, or why not."""
        models: list[ModelInfo] = []
        for name in LISTING_VENDORS:
            key = self._credential(self._vendors[name], environment)
            missing = None if key else self._how_to_key(name)
            state = {"available": missing is None, "unavailable": missing}
            known = await asyncio.to_thread(self.catalogue.models, name, listed=missing is None)
            offered = [_priced(self._adjusted(info).model_copy(update=state), key) for info in known]
            if isinstance(key, ChatGPTTokens):
                offered = [info if self.catalogue.is_in_plan(info.model_id) else _not_in_plan(info) for info in offered]
            models += offered
        models += [info for vendor in VENDORS for info in self._in_cloud(vendor, environment)]
        vendors = [vendor for vendor in self._vendors.values() if vendor.local or vendor.name not in _BUILT_IN]
        for offered in await asyncio.gather(*(self._offered(vendor, environment) for vendor in vendors)):
            models += offered
        return [*models, *map(self._adjusted, self.offered.list())]

    def listing_addresses(self, environment: Mapping[str, str]) -> Sequence[ListingAddress]:
        """The vendors that can be asked for their models: those with a key, at the addresses in the settings, and
        OpenRouter without one if the user wants its prices. A vendor whose address the environment changes, or whose
        name is that of the user's own endpoint, is left out: the key, and so the list, would be another service's."""
        addresses: list[ListingAddress] = []
        for name in LISTING_VENDORS:
            vendor = self._vendors[name]
            base_url = self._base_url(vendor, {})
            key = self._credential(vendor, environment)
            is_own = vendor in VENDORS and self._base_url(vendor, environment) == base_url
            if name == PRICE_LIST and key is None and self._asks_for_prices:
                key = ""
            if key is not None and not self.replays and is_own and _may_send(base_url, key):
                addresses.append(ListingAddress(name, base_url, key))
        return addresses

    @property
    def titles(self) -> Mapping[str, str]:
        """Vendor → its name for the user."""
        return {name: vendor.title for name, vendor in self._vendors.items()} | self.offered.titles

    async def check_key(self, vendor_name: str, key: str | None, environment: Mapping[str, str]) -> AuthCheckResult:
        """Whether the vendor takes the key; without one, the key that requests would use. Raises `AmanuError`:
        authRequired, permissionDenied, invalidParams."""
        key = key or self._auth.key(vendor_name, environment)
        if key is None:
            raise AmanuError(
                "authRequired",
                f"No key for {self.titles.get(vendor_name, vendor_name)}.",
                hint=self._how_to_key(vendor_name),
            )
        vendor = self._vendors.get(vendor_name)
        if vendor is None or vendor.cloud is not None:  # a search service, or one whose address depends on more
            return untested(vendor_name)
        base_url = self._base_url(vendor, environment)
        _check_address(vendor, base_url, key)
        return await check_key(vendor_name, base_url, key)

    def default(self, environment: Mapping[str, str]) -> str | None:
        """The model to start with when nobody named one; None when no vendor has a key."""
        for model_id in DEFAULTS:
            if self._credential(self._vendors[model_id.partition(":")[0]], environment):
                return model_id
        return None

    async def local_default(self, environment: Mapping[str, str]) -> str | None:
        """The first model of a local server that the user allowed and that answers, which embeds no text; else None."""
        allowed = [
            vendor
            for vendor in self._vendors.values()
            if vendor.local and self._local.allowed(vendor.name, self._base_url(vendor, environment))
        ]
        for offered in await asyncio.gather(*(self._offered(vendor, environment) for vendor in allowed)):
            for info in offered:
                if "embed" not in info.model_id:
                    return info.model_id
        return None

    async def like(self, model_id: str, environment: Mapping[str, str]) -> str:
        """The models that its service has, the most similar first, in a sentence; "" where they are not known. A server
        is asked, for two seconds at most."""
        name, _, model = model_id.partition(":")
        vendor = self._vendors.get(name)
        if vendor is None:
            return ""
        base_url, key = self._base_url(vendor, environment), self._auth.key(name, environment)
        names = [*vendor.models]
        if vendor.cloud is not None:
            names = [*clouds.models(name)]
        elif base_url == vendor.base_url and name in LISTING_VENDORS:
            names = [known.partition(":")[2] for known in await asyncio.to_thread(self.catalogue.ids, name)]
        elif vendor.make not in (_anthropic, _gemini) and not self.replays and _may_send(base_url, key):
            names = [*names, *(await self._names(base_url, key) or ())]
        near = _most_like(model, {each: f"{name}:{each}" for each in names if each != model})
        return f"{vendor.title} has {', '.join(near)}. To see all of them, run: amanu models" if near else ""

    def of_other_keys(self, model_id: str, environment: Mapping[str, str]) -> str:
        """The models of other vendors that there is a key for, in a sentence; "" if there are none."""
        vendors = {known: self._vendors[known.partition(":")[0]] for known in DEFAULTS}
        own = model_id.partition(":")[0]
        others = [
            known
            for known, vendor in vendors.items()
            if vendor.name != own and self._credential(vendor, environment) is not None
        ]
        return f"You also have a key for {' and '.join(others)}." if others else ""

    def searches(self, model_id: str) -> bool:
        """Whether the service of that model can search the web."""
        vendor = self._vendors.get(model_id.partition(":")[0])
        return vendor is not None and vendor.searches

    async def allow_local(self, vendor_name: str, environment: Mapping[str, str]) -> str:
        """The user approves a local server, which must answer now. Returns its address. Raises `AmanuError`:
        modelNotFound, modelUnavailable."""
        vendor = self._vendors.get(vendor_name)
        if vendor is None or not vendor.local:
            local = ", ".join(vendor.name for vendor in self._vendors.values() if vendor.local)
            raise AmanuError(
                "modelNotFound", f"{vendor_name!r} is not a local model server.", hint=f"Available: {local}."
            )
        base_url = self._base_url(vendor, environment)
        await _must_answer(vendor, base_url)
        self._local.allow(vendor_name, base_url)
        return base_url

    async def warm(self, vendor_name: str) -> None:
        """Import the vendor's modules, in a thread: this takes up to a second, which the first prompt then saves."""
        vendor = self._vendors.get(vendor_name)
        if vendor is not None:
            async with self._warming:
                await asyncio.to_thread(_import, vendor.modules)

    async def close(self) -> None:
        for task in (*self._asking.values(), *self.opening):
            task.cancel()
        clients = list(self._clients.values())
        self._clients.clear()
        await self._auth.chatgpt.settle()
        await asyncio.gather(*(client.close() for client in clients))

    # ---------------------------------------------------------------------------------------------------

    async def _scripted(self, script: str) -> tuple[Model, ModelInfo]:
        """A script shipped with Amanu, or the user's own, named by its absolute path."""
        from amanu.models.scripted import load, shipped

        try:
            if script.endswith(".json") and not Path(script).is_absolute():
                raise ValueError(f"{script} is not an absolute path.")
            model = await asyncio.to_thread(load, script)
        except ValueError as error:
            hint = f"Name a script by its absolute path, or one that comes with Amanu: {', '.join(shipped())}."
            raise AmanuError("modelNotFound", f"Unknown model 'scripted:{script}': {error}", hint=hint) from error
        client = self._clients.setdefault(("scripted", script, None), model)
        return client, self._sized(model.info.model_copy(update={"model_id": f"scripted:{script}"}))

    def _of_editor(self, model_id: str) -> tuple[Model, ModelInfo]:
        from amanu.models.vscode import VSCodeModel

        info = self._adjusted(self.offered.info(model_id))
        return self._clients.setdefault((_OFFERED, "", None), VSCodeModel(self.offered)), info

    def _credential(self, vendor: Vendor, environment: Mapping[str, str]) -> str | ChatGPTTokens | None:
        """The vendor's credential. Tokens of a sign-in go only to the vendor's own address, never to a gateway. (In
        tests, to a service on this machine, if the tokens are from there too.)"""
        address = self._base_url(vendor, environment)
        is_tested = urlsplit(address).hostname in _LOOPBACK and tested_address(os.environ) is not None
        if vendor.sign_in and (address == RESOURCE or is_tested):
            return self._auth.credential(vendor.name, environment)
        return self._auth.key(vendor.name, environment)

    def _asked(self, vendor: Vendor, model: str, environment: Mapping[str, str]) -> CloudModel:
        key = "replayed" if self.replays else self._auth.key(vendor.name, environment)
        settings = {**(clouds.REPLAYED if self.replays else {}), **self._clouds}
        return CloudModel(model, environment, settings, self._base_url(vendor, environment), key)

    def _base_url(self, vendor: Vendor, environment: Mapping[str, str]) -> str:
        if vendor.base_variable is not None and (moved := environment.get(vendor.base_variable, "").strip()):
            return moved.rstrip("/") + vendor.path
        return self.base_urls.get(vendor.name, vendor.base_url).rstrip("/")

    def _known(self, model_id: str) -> ModelInfo:
        return self._adjusted(self.catalogue.facts(model_id))

    def _adjusted(self, info: ModelInfo) -> ModelInfo:
        """The facts with the user's settings for the model applied."""
        info = self._sized(info)
        return info.model_copy(update={"images": True}) if info.model_id in self._seeing else info

    def _sized(self, info: ModelInfo) -> ModelInfo:
        """The facts with the window that the user set for the model."""
        window = self._windows.get(info.model_id)
        return info if window is None else in_window(info, window)

    def _how_to_key(self, vendor: str) -> str:
        variables = self._auth.variables(vendor)
        if not variables:
            return f"Run: amanu auth set {vendor}"
        takes_sign_in = vendor in self._vendors and self._vendors[vendor].sign_in
        login = f", or run: amanu auth login {vendor}" if takes_sign_in else ""
        return f"Set {variables[0]}, or run: amanu auth set {vendor}{login}"

    def _nearest(self, model_id: str) -> str:
        ids = [known_id for name in LISTING_VENDORS for known_id in self.catalogue.ids(name)]
        vendors = f"Models are named vendor:model. Vendors: {', '.join(self._vendors)}."
        return _suggestion(model_id, {known_id: known_id for known_id in ids}) or vendors

    def _nearest_listed(self, vendor: str, model: str) -> str:
        """The nearest of the models on the vendor's own list, in a sentence."""
        names = {model_id.partition(":")[2]: model_id for model_id in self.catalogue.ids(vendor)}
        listed = {name: model_id for name, model_id in names.items() if self.catalogue.lists(vendor, name)}
        return _suggestion(model, listed) or "To see all of them, run: amanu models"

    async def _ask_for_consent(self, vendor: Vendor, base_url: str) -> None:
        await _must_answer(vendor, base_url)
        raise AmanuError(
            "permissionDenied",
            f"{vendor.title} answers at {base_url}, but you have not allowed it yet. It would receive your code.",
            hint=f"Run: amanu auth local {vendor.name}",
        )

    def _in_cloud(self, vendor: Vendor, environment: Mapping[str, str]) -> Sequence[ModelInfo]:
        """The known models that the vendor, a cloud, may well offer; none unless it can be asked."""
        if vendor.cloud is None or vendor != self._vendors[vendor.name]:
            return []
        ids = [f"{vendor.name}:{model}" for model in clouds.models(vendor.name)]
        try:
            vendor.cloud(self._asked(vendor, ids[0].partition(":")[2], environment))
        except AmanuError:
            return []
        return [self._known(model_id).model_copy(update={"available": True}) for model_id in ids]

    async def _offered(self, vendor: Vendor, environment: Mapping[str, str]) -> Sequence[ModelInfo]:
        base_url = self._base_url(vendor, environment)
        key = self._auth.key(vendor.name, environment)
        missing = self._how_to_key(vendor.name) if vendor.needs_key and key is None else None
        if missing is not None or not _may_send(base_url, key):
            return []
        if vendor.local and not self.replays and not self._local.allowed(vendor.name, base_url):
            key, missing = None, f"Run: amanu auth local {vendor.name}"
        names = dict.fromkeys([*vendor.models, *(await self._names(base_url, key) or [])])
        ids = [f"{vendor.name}:{name}" for name in names]
        if missing is None:
            return await asyncio.gather(*(self._facts(vendor, base_url, model_id) for model_id in ids))
        return [self._known(model_id).model_copy(update={"unavailable": missing}) for model_id in ids]

    async def _names(self, base_url: str, key: str | None) -> Sequence[str] | None:
        """`models_of`; concurrent callers share one request."""
        asking = self._asking.get((base_url, key))
        if asking is None:
            asking = self._asking[base_url, key] = asyncio.create_task(models_of(base_url, key))
            asking.add_done_callback(lambda _: self._asking.pop((base_url, key), None))
        return await asyncio.shield(asking)


_BUILT_IN = {vendor.name for vendor in VENDORS}


async def _must_answer(vendor: Vendor, base_url: str) -> None:
    """A server whose models the user named need not list them."""
    if vendor.models or await models_of(base_url) is not None:
        return
    hint = f'Start {vendor.title}, or set its address in config.toml, under [base_urls]: {vendor.name} = "http://HOST:PORT/v1".'
    if vendor not in VENDORS:
        table = f"[endpoints.{vendor.name}]"
        hint = (
            f"Start it, or correct base_url under {table} in config.toml. If it does not list its models, set models."
        )
    raise AmanuError("modelUnavailable", f"No model server answers at {base_url}.", hint=hint)


def _may_send(base_url: str, key: Credential) -> bool:
    """A key goes over TLS, or stays on this machine."""
    address = urlsplit(base_url)
    return address.scheme == "https" or (address.scheme == "http" and (not key or address.hostname in _LOOPBACK))


def _most_like(name: str, known: Mapping[str, str], score_cutoff: float = 0.0) -> list[str]:
    """The known names that are most like it, as they are to be written."""
    from rapidfuzz import process

    return [known[match[0]] for match in process.extract(name, list(known), limit=3, score_cutoff=score_cutoff)]


def _suggestion(name: str, known: Mapping[str, str]) -> str | None:
    near = _most_like(name, known, 60)
    return f"Did you mean {' or '.join(near)}?" if near else None


def _guess(info: ModelInfo) -> str:
    """The origin of the window and the prices of an unknown model."""
    relative = info.facts_from.partition(";")[0]
    if relative.startswith("like "):
        return f"Its window and prices are guessed: those of {relative.removeprefix('like ')}."
    return "Its window is assumed, and its price is not known." if info.input_price is None else ""


def _is_asked(vendor: Vendor, base_url: str) -> bool:
    """Whether that is the vendor's own service, and one that is asked for its models."""
    return vendor.name in LISTING_VENDORS and vendor in VENDORS and base_url == vendor.base_url


def _priced(info: ModelInfo, key: Credential) -> ModelInfo:
    """The model at the prices that hold for whoever has this key: a plan is paid for already."""
    if not isinstance(key, ChatGPTTokens):
        return info
    prices = ("input_price", "output_price", "cache_read_price", "cache_write_price", "search_price")
    plan = {"long_prompt": None, "other_prices": None, "facts_from": f"{info.facts_from}; price: your ChatGPT plan"}
    return info.model_copy(update={**dict.fromkeys(prices, 0.0), **plan, "service_tiers": {}})


def _not_in_plan(info: ModelInfo) -> ModelInfo:
    return info.model_copy(update={"available": False, "unavailable": "Your ChatGPT plan does not include it."})


def _check_address(vendor: Vendor, base_url: str, key: Credential) -> None:
    address = urlsplit(base_url)
    if address.scheme not in ("http", "https") or not address.hostname:
        raise AmanuError("invalidParams", f"The address of {vendor.title} is not an http(s) URL: {base_url!r}.")
    if not _may_send(base_url, key):
        raise AmanuError(
            "permissionDenied",
            f"The key of {vendor.title} would be sent to {address.hostname} unencrypted.",
            hint="Use an https:// address.",
        )


def _import(modules: tuple[str, ...]) -> None:
    with quick_imports():
        for module in modules:
            importlib.import_module(module)
