"""Claude and Gemini in clouds: the same behaviours behind other paths and proofs of who asks."""

import importlib
import sys
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from pathlib import Path
from types import ModuleType

import pytest

from amanu.core.model import AuthFailed, ModelError, Overloaded, RateLimited, StreamBroken, Unreachable
from amanu.models.anthropic_clouds import BedrockModel, FoundryModel, VertexClaudeModel
from amanu.models.clouds import AwsCredentials, GoogleProject
from amanu.models.recording import Recorder, load
from amanu.models.replay import Replay
from amanu.models.session_transport import SessionTransport
from amanu.models.vertex import VertexModel
from support.google_account import service_account
from support.strict_services.clouds import Bedrock, Foundry, VertexClaude, VertexGemini, signature
from support.strict_services.http import Fault, Received, Refusal, Say, ToolUse
from support.vendors import KEY, VENDORS, Vendor, answer, deltas, request, running
from wire import test_behaviours as behaviours
from wire import test_handover as handover


def _bedrock(key: str, url: str) -> BedrockModel:
    return BedrockModel(key, f"{url}/anthropic")


def _foundry(key: str, url: str) -> FoundryModel:
    return FoundryModel(key, f"{url}/anthropic")


def _vertex(key: str, url: str, *, location: str = "global") -> VertexModel:
    return VertexModel(GoogleProject("shop-1", location, token=key), url)


CLOUDS = [
    Vendor("bedrock", Bedrock, _bedrock, "bedrock:anthropic.claude-opus-5-5", "Claude 5.5"),
    Vendor("foundry", Foundry, _foundry, "foundry:claude-sonnet-5", "Claude before"),
    Vendor("vertex-claude", VertexClaude, _vertex, "vertex:claude-haiku-4-5@20251001", "Claude before"),
    Vendor("vertex-gemini", VertexGemini, _vertex, "vertex:gemini-3.8-flash", "Gemini 3"),
]


@pytest.fixture(autouse=True, scope="module")
def warm() -> None:
    """The SDKs are there before a test counts tenths of a second."""
    for name in ("anthropic.lib.bedrock", "anthropic.lib.vertex", "google.genai", "google.auth.transport.requests"):
        importlib.import_module(name)


over_clouds = pytest.mark.parametrize("cloud", CLOUDS, ids=[cloud.name for cloud in CLOUDS])
NAMES = {
    "bedrock": "Amazon Bedrock",
    "foundry": "Microsoft Foundry",
    "vertex-claude": "Vertex AI",
    "vertex-gemini": "Vertex AI",
}


@over_clouds
@pytest.mark.parametrize(
    "behaviour",
    [
        behaviours.test_a_reply_is_thought_text_and_calls_in_order,
        behaviours.test_usage_is_counted,
        behaviours.test_a_long_tool_loop_is_accepted_and_append_only,
        behaviours.test_a_prompt_over_the_window_is_context_too_long,
        behaviours.test_the_key_is_nowhere_to_be_seen,
        behaviours.test_what_a_broken_attempt_showed_is_withdrawn_before_the_next,
        behaviours.test_what_breaks_off_twice_is_asked_for_in_one_piece,
        behaviours.test_closing_the_stream_drops_the_connection,
    ],
)
async def test_a_cloud_behaves_as_the_makers_own_service(
    cloud: Vendor, behaviour: Callable[[Vendor], Awaitable[None]]
) -> None:
    await behaviour(cloud)


@over_clouds
@pytest.mark.parametrize("other", ["anthropic", "gemini", "openai"])
async def test_a_tool_loop_goes_on_with_another_vendor_and_comes_back(cloud: Vendor, other: str) -> None:
    vendor = next(vendor for vendor in VENDORS if vendor.name == other)
    await handover.test_a_tool_loop_goes_on_with_another_vendor_and_comes_back(cloud, vendor)


@over_clouds
@pytest.mark.parametrize(
    ("fault", "error"),
    [
        (Fault("status", status=401), AuthFailed),
        (Fault("status", status=429, headers={"retry-after": "3"}), RateLimited),
        (Fault("status", status=503), Overloaded),
        (Fault("errorEvent", after=1, message="Overloaded"), Overloaded),
        (Fault("cut", after=2), StreamBroken),
        (Fault("unfinished"), StreamBroken),
    ],
)
async def test_a_fault_is_a_typed_error(cloud: Vendor, fault: Fault, error: type[ModelError]) -> None:
    async with running(cloud, [fault]) as (_, model):
        with pytest.raises(ModelError) as caught:
            await answer(model, request(cloud))
    assert type(caught.value) is error
    assert error is StreamBroken or NAMES[cloud.name] in str(caught.value)


# Who asks --------------------------------------------------------------------------------------------------


SENT: Mapping[str, tuple[str, dict[str, str | None]]] = {
    "bedrock": ("/anthropic/v1/messages", {"authorization": f"Bearer {KEY}", "x-api-key": None}),
    "foundry": ("/anthropic/v1/messages", {"authorization": None, "x-api-key": KEY}),
    "vertex-claude": (
        "/v1/projects/shop-1/locations/global/publishers/anthropic/models/claude-haiku-4-5@20251001:streamRawPredict",
        {"authorization": f"Bearer {KEY}", "x-api-key": None},
    ),
    "vertex-gemini": (
        "/v1beta1/projects/shop-1/locations/global/publishers/google/models/gemini-3.8-flash:streamGenerateContent",
        {"authorization": f"Bearer {KEY}", "x-goog-api-key": None},
    ),
}


@over_clouds
async def test_a_request_goes_where_the_cloud_wants_it(cloud: Vendor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-another-0123456789")
    monkeypatch.setenv("GOOGLE_API_KEY", "AIza-another-0123456789")
    monkeypatch.setenv("ANTHROPIC_CUSTOM_HEADERS", "authorization: Bearer another-of-a-gateway\nx-mine: another")
    seen: list[tuple[str, dict[str, str]]] = []

    async with running(cloud, [Say(text="Hi.")]) as (service, model):
        check = service.check

        def noted(received: Received) -> Refusal | None:
            seen.append((received.path, {**received.headers}))
            return check(received)

        monkeypatch.setattr(service, "check", noted)
        await answer(model, request(cloud))
    path, headers = SENT[cloud.name]
    assert seen[0][0] == path
    assert {name: seen[0][1].get(name) for name in headers} == headers
    assert "another" not in str(seen)


def _signing(monkeypatch: pytest.MonkeyPatch, *, credentials: object) -> None:
    """The parts of boto3 that the SDK uses."""

    class Session:
        def __init__(self, **options: object) -> None:
            self.region_name = options["region_name"]

        def get_credentials(self) -> object:
            return credentials

    class AWSRequest:
        def __init__(self, *, method: str, url: str, headers: dict[str, str], data: bytes) -> None:
            self.headers = headers
            self.data = data

        def prepare(self) -> "AWSRequest":
            return self

    class SigV4Auth:
        def __init__(self, *_: object) -> None: ...

        def add_auth(self, request: AWSRequest) -> None:
            names = ";".join(sorted({name.lower() for name in request.headers} - {"user-agent", "transfer-encoding"}))
            signed = signature({name.lower(): value for name, value in request.headers.items()}, names, request.data)
            scope = "AWS4-HMAC-SHA256 Credential=AKIA/eu-north-1/bedrock-mantle/aws4_request"
            request.headers["Authorization"] = f"{scope}, SignedHeaders={names}, Signature={signed}"

    for name, holds in (("boto3", Session), ("botocore.auth", SigV4Auth), ("botocore.awsrequest", AWSRequest)):
        module = ModuleType(name)
        setattr(module, holds.__name__, holds)
        monkeypatch.setitem(sys.modules, name, module)


SIGNED = AwsCredentials("eu-north-1", "AKIA0123456789012345", "wJalrXUtnFEMI0123456789", "session-0123456789")


async def test_bedrock_takes_what_aws_credentials_signed(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the transport changes of a request comes before the signature, not after."""
    _signing(monkeypatch, credentials=object())
    vendor = Vendor("signed", Bedrock, lambda _, url: BedrockModel(SIGNED, f"{url}/anthropic"), CLOUDS[0].model_id,
                    "Claude before")  # fmt: skip
    async with running(vendor, [Say(calls=[ToolUse("read_file", {"path": "a"})])]) as (service, model):
        assert (await answer(model, request(vendor))).stop == "calls"
    assert service.requests[0].headers["accept-encoding"] == "identity"


async def test_no_aws_credentials_anywhere_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    _signing(monkeypatch, credentials=None)
    model = BedrockModel(AwsCredentials("eu-north-2"), "http://127.0.0.1:9/anthropic")
    with pytest.raises(AuthFailed, match=r"AWS gives no access to Amazon Bedrock: .* AWS_BEARER_TOKEN_BEDROCK"):
        await deltas(model, request(CLOUDS[0]))
    await model.close()


@pytest.mark.parametrize("cloud", CLOUDS[2:], ids=lambda cloud: cloud.name)
async def test_vertex_is_asked_with_a_token_for_the_users_credentials(cloud: Vendor, tmp_path: Path) -> None:
    service = cloud.service([Say(text="Hi."), Say(text="Again.")])
    url = await service.start()
    file = service_account(tmp_path, url)
    model = VertexModel(GoogleProject("shop-1", "global", str(file)), url)
    for text in ("Hi.", "Again."):
        assert (await answer(model, request(cloud))).message.text == text
    await model.close()
    await service.stop()
    assert (service.refused, service.lint) == ([], [])
    paths = [request.path for request in service.requests]
    assert paths.count("/token") == 1, "it is kept"


@pytest.mark.parametrize("cloud", CLOUDS[2:], ids=lambda cloud: cloud.name)
async def test_a_user_who_signs_in_to_google_again_is_let_in(cloud: Vendor, tmp_path: Path) -> None:
    service = cloud.service([Say(text="Hi.")])
    url = await service.start()
    file = service_account(tmp_path, f"{url}/revoked")
    model = VertexModel(GoogleProject("shop-1", "global", str(file)), url)
    for _ in range(2):
        with pytest.raises(AuthFailed, match="gcloud auth application-default login"):
            await answer(model, request(cloud))
    service_account(tmp_path, url)
    assert (await answer(model, request(cloud))).message.text == "Hi."
    await model.close()
    await service.stop()


@pytest.mark.parametrize(
    ("file", "error", "said"),
    [
        ("none.json", AuthFailed, "gcloud auth application-default login"),
        ("broken.json", AuthFailed, "Google gives no access to Vertex AI"),
        ("account.json", Unreachable, "Google's sign-in service cannot be reached"),
    ],
)
@pytest.mark.parametrize("cloud", CLOUDS[2:], ids=lambda cloud: cloud.name)
async def test_credentials_that_give_no_token_are_a_typed_error(
    cloud: Vendor, file: str, error: type[ModelError], said: str, tmp_path: Path
) -> None:
    (tmp_path / "broken.json").write_text("{}")
    service_account(tmp_path, "http://127.0.0.1:9")
    model = VertexModel(GoogleProject("shop-1", "global", str(tmp_path / file)), "http://127.0.0.1:9")
    with pytest.raises(error, match=said) as caught:
        await deltas(model, request(cloud))
    await model.close()
    assert "PRIVATE KEY" not in f"{caught.value} {caught.value.details}"


@pytest.mark.parametrize("cloud", CLOUDS[2:], ids=lambda cloud: cloud.name)
async def test_a_recording_plays_in_another_project(cloud: Vendor, tmp_path: Path) -> None:
    line = SessionTransport()
    line.recorder = Recorder(tmp_path / "r", "m", lambda text: text)
    async with running(cloud, [Say(text="Hi.")]) as (_, model):
        with line.used():
            await answer(model, request(cloud))
    assert KEY not in (tmp_path / "r").read_text()
    line = SessionTransport()
    line.player = Replay(load(tmp_path / "r"))
    played = partial(_vertex, location="us")("replayed", "http://127.0.0.1:9")
    with line.used():
        assert (await answer(played, request(cloud))).message.text == "Hi."
    await played.close()


def test_the_version_for_vertex_is_the_sdks_own() -> None:
    from anthropic._constants import ANTHROPIC_API_VERSION

    from amanu.models import anthropic_clouds

    assert anthropic_clouds._VERSION == ANTHROPIC_API_VERSION  # pyright: ignore[reportPrivateUsage]


def test_no_credential_shows() -> None:
    shown = repr(
        [SIGNED, GoogleProject("p", "l", token=KEY), VertexClaudeModel(GoogleProject("p", "l", token=KEY), "u")]
    )
    assert KEY not in shown
    assert "wJalr" not in shown
    assert "session-" not in shown
