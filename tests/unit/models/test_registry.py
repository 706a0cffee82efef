"""`vendor:model` → model: keys, addresses, consent for local servers, nearest names."""

import asyncio
import gc
import importlib
import subprocess
import sys
import threading
import time
from collections.abc import AsyncGenerator, Iterator
from pathlib import Path

import pytest

from amanu.config import EndpointSettings, Settings
from amanu.models.catalogue import Catalogue
from amanu.models.credentials import Credentials
from amanu.models.registry import ModelRegistry
from amanu.system.private_file import write_private
from amanu_protocol.errors import AmanuError, ErrorKind
from support.strict_services.http import Fault, Received, Refusal, Say, Service
from support.strict_services.listing import KEY, ListingService

ALL = {"ANTHROPIC_API_KEY": "k1", "GEMINI_API_KEY": "k2", "OPENAI_API_KEY": "k3", "OPENROUTER_API_KEY": "k4"}


def registry(tmp_path: Path, **settings: object) -> ModelRegistry:
    return ModelRegistry(
        Settings.model_validate(settings),
        Credentials(tmp_path / "auth.json"),
        tmp_path / "local.json",
        Catalogue(tmp_path / "catalogue"),
    )


GOOGLE = {"GOOGLE_CLOUD_PROJECT": "shop-1", "GOOGLE_CLOUD_LOCATION": "global", "CLOUD_ML_REGION": "europe-west1"}


RESOLVED: list[tuple[str, dict[str, str], str]] = [
    ("anthropic:claude-opus-5-5", {}, "AnthropicModel('https://api.anthropic.com')"),
    ("anthropic:not-yet-known", {}, "AnthropicModel('https://api.anthropic.com')"),
    ("anthropic:x", {"ANTHROPIC_BASE_URL": "http://127.0.0.1:1/"}, "AnthropicModel('http://127.0.0.1:1')"),
    ("gemini:gemini-2.5-pro", {}, "GeminiModel('https://generativelanguage.googleapis.com')"),
    ("gemini:x", {"GOOGLE_GEMINI_BASE_URL": "https://g.test"}, "GeminiModel('https://g.test')"),
    ("openai:gpt-6.2-sol", {}, "OpenAIModel(ResponsesModel('OpenAI', 'https://api.openai.com/v1'))"),
    (
        "openai:x",
        {"OPENAI_BASE_URL": "https://o.test/v1"},
        "OpenAIModel(ResponsesModel('OpenAI', 'https://o.test/v1'))",
    ),
    ("openrouter:a/b:free", {}, "OpenAICompatibleModel('OpenRouter', 'https://openrouter.ai/api/v1')"),
    (
        "google-openai:gemini-2.5-pro",
        {"GOOGLE_GEMINI_BASE_URL": "https://g.test"},
        "OpenAICompatibleModel('Google (OpenAI-compatible)', 'https://g.test/v1beta/openai')",
    ),
    (
        "bedrock:anthropic.claude-opus-5-5",
        {"AWS_DEFAULT_REGION": "eu-north-1", "AWS_BEARER_TOKEN_BEDROCK": "k6"},
        "BedrockModel('https://bedrock-mantle.eu-north-1.api.aws/anthropic')",
    ),
    (
        "bedrock:anthropic.claude-opus-5-5",
        {"ANTHROPIC_BEDROCK_MANTLE_BASE_URL": "https://b.test/anthropic", "AWS_BEARER_TOKEN_BEDROCK": "k6"},
        "BedrockModel('https://b.test/anthropic')",
    ),
    ("vertex:claude-sonnet-5-5", GOOGLE, "VertexModel('https://europe-west1-aiplatform.googleapis.com')"),
    ("vertex:gemini-3.8-flash", GOOGLE, "VertexModel('https://aiplatform.googleapis.com')"),
    (
        "vertex:gemini-x",
        {**GOOGLE, "GOOGLE_CLOUD_LOCATION": "eu"},
        "VertexModel('https://aiplatform.eu.rep.googleapis.com')",
    ),
    ("vertex:claude-x", {**GOOGLE, "ANTHROPIC_VERTEX_BASE_URL": "https://v.test/v1"}, "VertexModel('https://v.test')"),
    (
        "foundry:claude-opus-5-5",
        {"ANTHROPIC_FOUNDRY_RESOURCE": "Shop-1", "ANTHROPIC_FOUNDRY_API_KEY": "k7"},
        "FoundryModel('https://Shop-1.services.ai.azure.com/anthropic')",
    ),
    ("mine:m", {"MINE": "k5"}, "OpenAICompatibleModel('mine', 'https://mine.test/v1')"),
]


@pytest.mark.parametrize(("model_id", "environment", "expected"), RESOLVED)
async def test_resolve(tmp_path: Path, model_id: str, environment: dict[str, str], expected: str) -> None:
    mine = EndpointSettings(base_url="https://mine.test/v1/", key_variable="MINE")
    models = registry(tmp_path, endpoints={"mine": mine})
    model, info = await models.resolve(model_id, {**ALL, **environment})
    assert repr(model) == expected
    assert (info.model_id, info.available) == (model_id, True)
    await models.close()


@pytest.mark.parametrize(
    ("model_id", "vision", "sees"),
    [
        ("openai:gpt-6.2-sol", [], True),
        ("openrouter:a/b:free", [], False),
        ("openrouter:a/b:free", ["openrouter:a/b:free"], True),
        ("openrouter:a/b", ["openrouter:a/b:free"], False),
    ],
)
async def test_a_model_sees_when_it_is_known_to_or_the_user_says_so(
    tmp_path: Path, model_id: str, vision: list[str], sees: bool
) -> None:
    models = registry(tmp_path, vision=vision)
    assert (await models.resolve(model_id, ALL))[1].images == sees
    await models.close()


REFUSED: list[tuple[str, dict[str, str], ErrorKind, str]] = [
    ("claude-opus-5-5", ALL, "modelNotFound", "Did you mean anthropic:claude-opus-5-5"),
    ("antropic:claude-opus-5-5", ALL, "modelNotFound", "anthropic:claude-opus-5-5"),
    ("zzz", ALL, "modelNotFound", "Vendors: anthropic"),
    ("anthropic:", ALL, "modelNotFound", "anthropic:claude"),
    ("anthropic:claude-opus-5-5", {}, "authRequired", "Set ANTHROPIC_API_KEY, or run: amanu auth set anthropic"),
    ("gemini:x", {}, "authRequired", "Set GEMINI_API_KEY"),
    ("mine:x", {}, "authRequired", "Set MINE"),
    ("openai:x", {**ALL, "OPENAI_BASE_URL": "http://evil.test/v1"}, "permissionDenied", "https"),
    ("openai:x", {**ALL, "OPENAI_BASE_URL": "file:///etc"}, "invalidParams", ""),
    ("ollama:x", {}, "modelUnavailable", "Start Ollama"),
    ("bedrock:x", {"AWS_REGION": "eu-north-1"}, "authRequired", 'pip install "amanu[bedrock]"'),
    ("bedrock:x", {"AWS_REGION": "evil.test/", "AWS_BEARER_TOKEN_BEDROCK": "k"}, "invalidParams", ""),
    ("foundry:x", {}, "authRequired", "under [clouds] in config.toml"),
    ("vertex:claude-x", {}, "authRequired", "under [clouds] in config.toml"),
    ("vertex:llama-x", GOOGLE, "modelNotFound", "vertex:claude-sonnet-5-5"),
]


@pytest.mark.parametrize(("model_id", "environment", "kind", "hint"), REFUSED)
async def test_refuse(tmp_path: Path, model_id: str, environment: dict[str, str], kind: ErrorKind, hint: str) -> None:
    models = registry(
        tmp_path,
        endpoints={"mine": EndpointSettings(base_url="https://mine.test/v1", key_variable="MINE")},
        base_urls={"ollama": "http://127.0.0.1:9/v1"},
    )
    with pytest.raises(AmanuError) as caught:
        await models.resolve(model_id, environment)
    assert caught.value.kind == kind
    assert hint in (caught.value.data.hint or "")
    assert str(caught.value).endswith((".", "code.", "'."))


CLOUDS: list[tuple[str, str]] = [
    ("bedrock:x", "Amazon Bedrock needs AWS_REGION and AWS_BEARER_TOKEN_BEDROCK."),
    ("foundry:x", "Microsoft Foundry needs ANTHROPIC_FOUNDRY_RESOURCE and ANTHROPIC_FOUNDRY_API_KEY."),
    ("vertex:claude-x", "Vertex AI needs ANTHROPIC_VERTEX_PROJECT_ID and CLOUD_ML_REGION."),
    ("vertex:gemini-x", "Vertex AI needs GOOGLE_CLOUD_PROJECT and GOOGLE_CLOUD_LOCATION."),
]


@pytest.mark.parametrize(("model_id", "said"), CLOUDS)
async def test_all_that_a_cloud_needs_is_said_at_once(
    tmp_path: Path, model_id: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("amanu.models.clouds.find_spec", lambda _: None)
    with pytest.raises(AmanuError) as caught:
        await registry(tmp_path).resolve(model_id, {})
    assert (str(caught.value), caught.value.kind) == (said, "authRequired")


async def test_where_a_cloud_is_may_stand_in_the_settings(tmp_path: Path) -> None:
    models = registry(
        tmp_path, clouds={"aws_region": "eu-north-1", "google_project": "p", "google_location": "us"}, base_urls={}
    )
    for model_id, environment, expected in (
        ("bedrock:x", {"AWS_BEARER_TOKEN_BEDROCK": "k"}, "https://bedrock-mantle.eu-north-1.api.aws/anthropic"),
        ("vertex:claude-x", {}, "https://aiplatform.us.rep.googleapis.com"),
        ("vertex:gemini-x", {"CLOUD_ML_REGION": "global"}, "https://aiplatform.googleapis.com"),
    ):
        assert expected in repr((await models.resolve(model_id, environment))[0])
    await models.close()


async def test_a_cloud_that_can_be_used_is_listed(tmp_path: Path) -> None:
    unused = "http://127.0.0.1:9/v1"
    models = registry(tmp_path, base_urls={"ollama": unused, "llamacpp": unused, "vllm": unused})
    environment = {"ANTHROPIC_FOUNDRY_RESOURCE": "shop", "ANTHROPIC_FOUNDRY_API_KEY": "k"}
    listed = {each.model_id: each.available for each in await models.list({**environment, **GOOGLE})}
    assert listed["foundry:claude-opus-5-5"]
    assert listed["vertex:gemini-3.8-flash"]
    assert not [model_id for model_id in listed if model_id.startswith("bedrock:")]


async def test_a_recording_asks_no_cloud(tmp_path: Path) -> None:
    models = registry(tmp_path)
    models.replays = True
    for model_id in ("bedrock:anthropic.claude-opus-5-5", "foundry:claude-opus-5-5", "vertex:gemini-3.8-flash"):
        assert (await models.resolve(model_id, {}))[1].model_id == model_id
    await models.close()


async def test_a_script_is_a_model_of_its_own_file(tmp_path: Path) -> None:
    script = tmp_path / "s.json"
    script.write_text('[{"text": "Hello."}]')
    models = registry(tmp_path)
    first, info = await models.resolve(f"scripted:{script}", {})
    again, _ = await models.resolve(f"scripted:{script}", {})
    assert first is again
    assert "cripted" in info.name


@pytest.mark.parametrize("name", ["no-such-script", "relative.json", "/no/such/file.json"])
async def test_a_script_that_is_not_there_is_named(tmp_path: Path, name: str) -> None:
    with pytest.raises(AmanuError, match=name) as caught:
        await registry(tmp_path).resolve(f"scripted:{name}", {})
    assert caught.value.kind == "modelNotFound"
    assert caught.value.data.hint is not None and ": demo, draft, " in caught.value.data.hint


async def test_one_client_for_one_vendor_address_and_key(tmp_path: Path) -> None:
    models = registry(tmp_path)

    async def client(model: str, **environment: str) -> object:
        return (await models.resolve(f"anthropic:{model}", {**ALL, **environment}))[0]

    assert await client("a") is await client("b")
    assert await client("a") is not await client("a", ANTHROPIC_API_KEY="other")
    assert await client("a") is not await client("a", ANTHROPIC_BASE_URL="https://a.test")
    await models.close()


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({}, None),
        (ALL, "anthropic:claude-sonnet-5-5"),
        ({"OPENAI_API_KEY": "k"}, "openai:gpt-6.2-sol"),
        ({"GOOGLE_API_KEY": "k", "OPENAI_API_KEY": "k"}, "gemini:gemini-3.8-flash"),
        ({"OPENROUTER_API_KEY": "k"}, None),
    ],
)
def test_default(tmp_path: Path, environment: dict[str, str], expected: str | None) -> None:
    assert registry(tmp_path).default(environment) == expected


class Local(Service):
    """Answers only to what is asked of a model server before it is used."""

    vendor = "local"
    listing = b'{"object": "list", "data": [{"id": "qwen3:8b"}, {"id": ""}, 7]}'
    path = "/v1/models"
    loaded: bytes | None = None
    shown: bytes | None = None
    props: bytes | None = None

    def check(self, request: Received) -> Refusal | None:
        return Refusal(404, "not found")

    def events(self, say: Say, request: Received) -> Iterator[bytes]:
        yield b""

    def error_body(self, status: int, message: str, code: str) -> bytes:
        return b"<html>no</html>"

    def error_event(self, fault: Fault) -> bytes:
        return b""

    def other(self, request: Received) -> tuple[int, bytes] | None:
        answers = {self.path: self.listing, "/api/ps": self.loaded, "/api/show": self.shown, "/props": self.props}
        answer = answers.get(request.path)
        return None if answer is None else (200, answer)


@pytest.fixture
async def local() -> AsyncGenerator[Local]:
    service = Local()
    await service.start()
    yield service
    await service.stop()


async def test_a_local_server_is_used_once_it_answered_and_the_user_said_yes(tmp_path: Path, local: Local) -> None:
    settings = {"base_urls": {"ollama": f"http://127.0.0.1:{local.port}/v1"}}
    models = registry(tmp_path, **settings)
    with pytest.raises(AmanuError, match="you have not allowed it") as caught:
        await models.resolve("ollama:qwen3:8b", {})
    assert caught.value.kind == "permissionDenied"
    assert caught.value.data.hint == "Run: amanu auth local ollama"
    listed = {each.model_id: each for each in await models.list({})}
    assert listed["ollama:qwen3:8b"].unavailable == "Run: amanu auth local ollama"
    assert await models.allow_local("ollama", {}) == f"http://127.0.0.1:{local.port}/v1"
    again = registry(tmp_path, **settings)
    await again.resolve("ollama:qwen3:8b", {})
    assert next(each for each in await again.list({}) if each.model_id == "ollama:qwen3:8b").available
    moved = registry(tmp_path, base_urls={"ollama": f"http://localhost:{local.port}/v1"})
    with pytest.raises(AmanuError, match="you have not allowed it"):
        await moved.resolve("ollama:qwen3:8b", {})


async def test_without_a_key_the_first_model_of_an_allowed_server_is_the_default(tmp_path: Path, local: Local) -> None:
    local.listing = b'{"data": [{"id": "nomic-embed-text"}, {"id": "qwen3:8b"}, {"id": "gpt-oss:20b"}]}'
    models = registry(tmp_path, base_urls={"ollama": f"http://127.0.0.1:{local.port}/v1"})
    assert await models.local_default({}) is None
    assert not local.requests, "nothing is asked of a server that was not allowed"
    await models.allow_local("ollama", {})
    assert await models.local_default({}) == "ollama:qwen3:8b"
    await local.stop()
    assert await models.local_default({}) is None


async def test_an_endpoint_that_lists_no_models_has_those_the_user_named(tmp_path: Path, local: Local) -> None:
    local.path = "/nothing"
    address = f"http://127.0.0.1:{local.port}/v1"
    unnamed = registry(tmp_path, endpoints={"mine": EndpointSettings(base_url=address)})
    with pytest.raises(AmanuError, match="No model server answers") as caught:
        await unnamed.resolve("mine:big", {})
    hint = caught.value.data.hint or ""
    assert "[endpoints.mine]" in hint and "set models" in hint and "base_urls" not in hint
    settings = {"mine": EndpointSettings(base_url=address, models=("big", "small"))}
    models = registry(tmp_path, endpoints=settings)
    with pytest.raises(AmanuError, match="you have not allowed it"):
        await models.resolve("mine:big", {})
    assert await models.allow_local("mine", {}) == address
    assert (await models.resolve("mine:big", {}))[1].available
    assert [each.model_id for each in await models.list({}) if each.available] == ["mine:big", "mine:small"]
    assert await models.like("mine:smal", {}) == "mine has mine:small, mine:big. To see all of them, run: amanu models"


async def test_a_server_that_does_not_answer_is_one_of_base_urls(tmp_path: Path) -> None:
    models = registry(tmp_path, base_urls={"ollama": "http://127.0.0.1:9/v1"})
    with pytest.raises(AmanuError) as caught:
        await models.resolve("ollama:qwen3", {})
    assert "[base_urls]" in (caught.value.data.hint or "")


NONE_LOADED = b'{"models": []}'
NUM_CTX = b'{"parameters": "stop   \\"<|end|>\\"\\nnum_ctx                        65536\\ntemperature 1"}'


@pytest.mark.parametrize(
    ("loaded", "shown", "window"),
    [
        (b'{"models": [{"name": "qwen3:8b", "context_length": 262144}]}', NUM_CTX, 262_144),
        (b'{"models": [7, {"name": "other"}, {"model": "qwen3:8b", "context_length": 4096}]}', NUM_CTX, 4_096),
        (b'{"models": [{"name": "other:8b", "context_length": 262144}]}', NUM_CTX, 65_536),
        (NONE_LOADED, NUM_CTX, 65_536),
        (NONE_LOADED, b'{"parameters": "temperature 1"}', 32_768),
        (NONE_LOADED, b'{"parameters": "num_ctx 7"}', 32_768),
        (NONE_LOADED, b'{"parameters": "num_ctx 99999999999"}', 32_768),
        (NONE_LOADED, b"[]", 32_768),
        (NONE_LOADED, None, 32_768),
        (b'{"models": [{"name": "qwen3:8b", "context_length": "many"}]}', NUM_CTX, 65_536),
        (b'{"models": 7}', b'{"parameters": 7}', 32_768),
        (b'{"models": [{"name": [], "context_length": 4096}]}', NUM_CTX, 65_536),
        (b"<html>", NUM_CTX, 32_768),
        (None, None, 32_768),
    ],
)
async def test_the_window_in_which_ollama_runs_a_model(
    tmp_path: Path, local: Local, loaded: bytes | None, shown: bytes | None, window: int
) -> None:
    local.loaded, local.shown = loaded, shown
    models = registry(tmp_path, base_urls={"ollama": f"http://127.0.0.1:{local.port}/v1"})
    await models.list({})
    assert not any(request.path == "/api/show" for request in local.requests), "not before the user said yes"
    await models.allow_local("ollama", {})
    info = (await models.resolve("ollama:qwen3:8b", {}))[1]
    assert (info.context_window, info.max_output) == (window, min(8_192, window // 4))
    assert info.facts_from == ("Ollama" if window != 32_768 else "assumed")
    assert info == next(each for each in await models.list({}) if each.model_id == "ollama:qwen3:8b")
    asked = [request.path for request in local.requests].count("/api/ps")
    assert asked == 1, "not for each step"
    await models.close()


LISTED_BY_VLLM = b'{"data": [{"id": "other", "max_model_len": 1024}, {"id": "qwen3:8b", "max_model_len": 40960}]}'


@pytest.mark.parametrize(
    ("vendor", "props", "listing", "window", "source"),
    [
        ("llamacpp", b'{"default_generation_settings": {"n_ctx": 16384}}', None, 16_384, "llama.cpp"),
        ("llamacpp", b'{"default_generation_settings": {"n_ctx": "all"}}', None, 32_768, "assumed"),
        ("llamacpp", b'{"default_generation_settings": 7}', None, 32_768, "assumed"),
        ("llamacpp", None, None, 32_768, "assumed"),
        ("vllm", None, LISTED_BY_VLLM, 40_960, "vLLM"),
        ("vllm", None, b'{"data": [{"id": "qwen3:8b", "max_model_len": 0}]}', 32_768, "assumed"),
        ("vllm", None, None, 32_768, "assumed"),
    ],
)
async def test_the_window_in_which_other_servers_run_a_model(
    tmp_path: Path, local: Local, vendor: str, props: bytes | None, listing: bytes | None, window: int, source: str
) -> None:
    local.props, local.listing = props, listing or local.listing
    models = registry(tmp_path, base_urls={vendor: f"http://127.0.0.1:{local.port}/v1"})
    await models.allow_local(vendor, {})
    info = (await models.resolve(f"{vendor}:qwen3:8b", {}))[1]
    assert (info.context_window, info.facts_from) == (window, source)


async def test_the_window_the_user_says_goes_before_ollamas(tmp_path: Path, local: Local) -> None:
    windows = {"windows": {"ollama:qwen3:8b": 16_000}}
    models = registry(tmp_path, base_urls={"ollama": f"http://127.0.0.1:{local.port}/v1"}, context=windows)
    await models.allow_local("ollama", {})
    assert (await models.resolve("ollama:qwen3:8b", {}))[1].context_window == 16_000
    assert not any(request.path.startswith("/api/") for request in local.requests)
    await models.close()


async def test_an_endpoint_of_ones_own_on_this_machine_needs_the_yes_too(tmp_path: Path, local: Local) -> None:
    mine = EndpointSettings(base_url=f"http://127.0.0.1:{local.port}/v1")
    models = registry(tmp_path, endpoints={"mine": mine})
    with pytest.raises(AmanuError, match="you have not allowed it"):
        await models.resolve("mine:m", {})
    await models.allow_local("mine", {})
    await models.resolve("mine:m", {})


@pytest.mark.parametrize(
    ("path", "listing", "answers"),
    [
        ("/v1/models", b'{"data": []}', True),
        ("/api/tags", b'{"models": [{"name": "m"}]}', True),
        ("/v1/models", b"<html>a router</html>", False),
        ("/v1/models", b"[]", False),
        ("/v1/models", b'{"data": "x"}', False),
        ("/other", b'{"data": []}', False),
    ],
)
async def test_what_answers_as_a_model_server(
    tmp_path: Path, local: Local, path: str, listing: bytes, answers: bool
) -> None:
    local.path, local.listing = path, listing
    models = registry(tmp_path, base_urls={"vllm": f"http://127.0.0.1:{local.port}/v1"})
    if answers:
        await models.allow_local("vllm", {})
    else:
        with pytest.raises(AmanuError, match="No model server answers"):
            await models.allow_local("vllm", {})


async def test_yes_is_for_local_servers_only(tmp_path: Path) -> None:
    with pytest.raises(AmanuError, match="not a local model server"):
        await registry(tmp_path).allow_local("openai", {})


async def test_the_list_says_what_is_missing(tmp_path: Path) -> None:
    unused = "http://127.0.0.1:9/v1"
    models = registry(tmp_path, base_urls={"ollama": unused, "llamacpp": unused, "vllm": unused})
    listed = {each.model_id: each for each in await models.list({"GEMINI_API_KEY": "k"})}
    assert listed["gemini:gemini-2.5-pro"].available
    assert not listed["anthropic:claude-opus-5-5"].available
    assert listed["anthropic:claude-opus-5-5"].unavailable == "Set ANTHROPIC_API_KEY, or run: amanu auth set anthropic"


@pytest.mark.parametrize(
    ("environment", "settings", "expected"),
    [
        ({}, {}, []),
        (ALL, {}, ["anthropic", "gemini", "openai", "openrouter"]),
        ({"OPENAI_API_KEY": "k"}, {}, ["openai"]),
        ({**ALL, "ANTHROPIC_BASE_URL": "https://gateway.test"}, {}, ["gemini", "openai", "openrouter"]),
        ({"OPENAI_API_KEY": "k"}, {"base_urls": {"openai": "https://o.test/v1"}}, ["openai"]),
        ({"OPENAI_API_KEY": "k"}, {"base_urls": {"openai": "http://o.test/v1"}}, []),
        ({}, {"catalogue": {"prices": True}}, ["openrouter"]),
        ({"MINE": "k"}, {"endpoints": {"mine": {"base_url": "https://mine.test/v1", "key_variable": "MINE"}}}, []),
        ({"MINE": "k"}, {"endpoints": {"openai": {"base_url": "https://mine.test/v1", "key_variable": "MINE"}}}, []),
    ],
)
def test_who_can_be_asked_for_its_models(
    tmp_path: Path, environment: dict[str, str], settings: dict[str, object], expected: list[str]
) -> None:
    addresses = registry(tmp_path, **settings).listing_addresses(environment)
    assert [address.vendor for address in addresses] == expected
    assert all(not address.key or address.key not in repr(address).split() for address in addresses)


async def test_prices_are_asked_for_without_a_key_if_the_user_wants_them(tmp_path: Path) -> None:
    said = {"id": "openai/gpt-6.4-sol", "pricing": {"prompt": "0.000003", "completion": "0.000015"}}
    async with ListingService("openrouter", {"data": [said]}).listening() as service:
        service.key = None
        models = registry(tmp_path, base_urls={"openrouter": service.base_url}, catalogue={"prices": True})
        assert await models.catalogue.refresh(models.listing_addresses({})) == {"openrouter": None}
    assert "authorization" not in service.requests[0].headers
    facts = {info.model_id: info for info in await models.list({"OPENROUTER_API_KEY": KEY})}
    assert facts["openrouter:openai/gpt-6.4-sol"].available
    assert "openrouter:openai/gpt-6.4-sol" not in {info.model_id for info in await models.list({})}
    assert models.catalogue.facts("openai:gpt-6.4-sol").input_price == 3
    await models.close()


LISTED = "openrouter:a/b"


async def test_what_a_vendor_lists_is_offered_to_who_has_a_key(tmp_path: Path) -> None:
    said = {"id": "a/b", "context_length": 64_000, "pricing": {"prompt": "0.000001", "completion": "0.000002"}}
    async with ListingService("openrouter", {"data": [said]}).listening() as service:
        models = registry(tmp_path, base_urls={"openrouter": service.base_url}, context={"windows": {LISTED: 32_000}})
        environment = {"OPENROUTER_API_KEY": KEY}
        done = await models.catalogue.refresh(models.listing_addresses(environment))
    assert done == {"openrouter": None}
    listed = {info.model_id: info for info in await models.list(environment)}
    info = (await models.resolve(LISTED, environment))[1]
    assert info == listed[LISTED]
    assert (info.context_window, info.input_price, info.available) == (32_000, 1, True)
    assert LISTED not in {info.model_id for info in await models.list({})}
    with pytest.raises(AmanuError) as caught:
        await models.resolve("openroute:a/b", environment)
    assert caught.value.data.hint == f"Did you mean {LISTED}?"
    await models.close()


async def test_whether_a_model_can_be_had_is_said_while_its_vendor_is_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    importing, go_on = threading.Event(), threading.Event()

    def slow(modules: tuple[str, ...]) -> None:
        importing.set()
        assert go_on.wait(10)

    monkeypatch.setattr("amanu.models.registry._import", slow)
    models = registry(tmp_path)
    try:
        info = await models.check("openai:gpt-6.2-sol", ALL)
        assert (info.model_id, info.available) == ("openai:gpt-6.2-sol", True)
        assert await asyncio.to_thread(importing.wait, 10), "nobody waits, but it has begun"
    finally:
        go_on.set()
    with pytest.raises(AmanuError) as caught:
        await models.check("openai:gpt-6.2-sol", {})
    assert caught.value.kind == "authRequired"


def test_no_vendor_is_imported_before_it_is_used() -> None:
    code = (
        "import sys, amanu.models.registry, amanu.models.retry, amanu.core.model_families, amanu.models.credentials\n"
        "heavy = {'anthropic', 'google.genai', 'httpx2', 'openai', 'rapidfuzz'} & sys.modules.keys()\n"
        "sys.exit(str(heavy) if heavy else 0)"
    )
    path = [each for each in sys.path if each]
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path[:0] = {path!r}\n{code}"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == ""


async def test_warming_imports_in_a_thread_with_the_collector_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[str, bool, bool]] = []

    def note(module: str) -> None:
        seen.append((module, gc.isenabled(), threading.current_thread() is threading.main_thread()))

    monkeypatch.setattr(importlib, "import_module", note)
    await registry(tmp_path).warm("anthropic")
    await registry(tmp_path).warm("no-such-vendor")
    assert seen == [("anthropic", False, False)]
    assert gc.isenabled()


ANTHROPIC = ("claude-opus-5-5", "claude-haiku-9-20270101")


@pytest.mark.parametrize(
    ("model_id", "hours", "settings", "expected"),
    [
        ("anthropic:claude-opus-5-5", 1, {}, None),
        ("anthropic:claude-haiku-9", 1, {}, None),
        ("anthropic:claude-haiku-9-latest", 1, {}, None),
        ("anthropic:claude-opsu-5-5", 1, {}, "modelNotFound: Did you mean anthropic:claude-opus-5-5"),
        ("anthropic:claude-haiku-8", 1, {}, "modelNotFound: Did you mean anthropic:claude-haiku-9-20270101"),
        ("anthropic:claude-sonnet-5-5", 1, {}, "modelNotFound: "),
        ("anthropic:zzz", 1, {}, "modelNotFound: To see all of them, run: amanu models"),
        # no list, or none of the last day
        (
            "anthropic:claude-opsu-5-5",
            25,
            {},
            "Whether Anthropic has a model 'claude-opsu-5-5' is not known: its list of models is not from the last "
            "day. Its window is assumed, and its price is not known. Did you mean anthropic:claude-opus-5-5 or ",
        ),
        ("anthropic:claude-haiku-9", 25, {}, None),
        ("anthropic:claude-sonnet-5-5", 25, {}, None),
        ("gemini:gemini-9", 1, {}, "Whether Google Gemini has a model 'gemini-9' is not known"),
        # other services than the vendor's own
        (
            "anthropic:claude-opus",
            1,
            {"base_urls": {"anthropic": "https://gateway.test"}},
            "Amanu knows no model 'claude-opus' of Anthropic. Its window and prices are guessed: those of anthropic:",
        ),
        ("anthropic:claude-opus-5-5", 25, {"base_urls": {"anthropic": "https://gateway.test"}}, None),
        ("anthropic:x", 1, {"endpoints": {"anthropic": {"base_url": "https://a.test", "key_variable": "K"}}}, None),
        (
            "mine:x",
            1,
            {"endpoints": {"mine": {"base_url": "https://a.test", "key_variable": "ANTHROPIC_API_KEY"}}},
            None,
        ),
        ("google-openai:x", 1, {}, None),
    ],
)
async def test_a_model_that_the_vendor_does_not_list(
    tmp_path: Path, model_id: str, hours: float, settings: dict[str, object], expected: str | None
) -> None:
    listing = {"fetched_at": time.time() - hours * 3600, "models": [{"id": each} for each in ANTHROPIC]}
    write_private(tmp_path / "catalogue" / "anthropic.json", listing)
    models = registry(tmp_path, **settings)
    environment = {**ALL, "K": "k"}
    try:
        await models.check(model_id, environment, opens=False)
        found = await models.doubt(model_id, environment)
    except AmanuError as error:
        found = f"{error.kind}: {error.data.hint}"
    assert found == expected or (found is not None and expected is not None and found.startswith(expected)), found
