"""Clouds that offer the models of other vendors: the address and the credential for a model, from what the client's
environment and the user's settings say of region, project and resource."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec

from amanu.core.model_families import MODELS
from amanu_protocol.errors import AmanuError


@dataclass(frozen=True)
class AwsCredentials:
    """What signs requests to Amazon. What is None is for AWS's own chain to find: profiles, SSO, the machine's role."""

    region: str
    access_key: str | None = None
    secret_key: str | None = field(default=None, repr=False)
    session_token: str | None = field(default=None, repr=False)
    profile: str | None = None


@dataclass(frozen=True)
class GoogleProject:
    """Where in Google's cloud, and who asks."""

    project: str
    location: str
    credentials_file: str | None = None
    """None: Google's application default credentials."""
    token: str | None = field(default=None, repr=False)
    """An access token to be used as it is, instead of credentials."""


@dataclass(frozen=True)
class CloudModel:
    """A model in a cloud, and what is known of the way to it."""

    model: str
    """Without the vendor."""
    environment: Mapping[str, str]
    settings: Mapping[str, str]
    """Values from the user's settings, indexed by the environment variable that overrides each."""
    base_url: str
    """From the environment or the settings; "" for the cloud's own."""
    key: str | None = field(repr=False)


REPLAYED: Mapping[str, str] = {
    "AWS_REGION": "replayed",
    "GOOGLE_CLOUD_PROJECT": "replayed",
    "GOOGLE_CLOUD_LOCATION": "replayed",
    "ANTHROPIC_FOUNDRY_RESOURCE": "replayed",
}
"""Settings for a recording, which asks no cloud."""


def bedrock(cloud_model: CloudModel) -> tuple[str, str | AwsCredentials]:
    """Amazon Bedrock's Messages API, with a Bedrock API key or signed by AWS credentials. Raises `AmanuError`
    (authRequired, invalidParams)."""
    needs = _Needs("Amazon Bedrock", cloud_model)
    region = needs.name("AWS_REGION", "AWS_DEFAULT_REGION") if not (cloud_model.base_url and cloud_model.key) else ""
    if cloud_model.key is None and find_spec("boto3") is None:
        needs.missing.append("AWS_BEARER_TOKEN_BEDROCK")
        needs.advice = (
            " The key can be stored instead. Run: amanu auth set bedrock. "
            'To sign with your AWS credentials instead: pip install "amanu[bedrock]"'
        )
    needs.check()
    base_url = cloud_model.base_url or f"https://bedrock-mantle.{region}.api.aws/anthropic"
    if cloud_model.key is not None:
        return base_url, cloud_model.key
    variables = {name: cloud_model.environment.get(name, "").strip() or None for name in _AWS}
    access_key, secret_key = variables["AWS_ACCESS_KEY_ID"], variables["AWS_SECRET_ACCESS_KEY"]
    if access_key is None or secret_key is None:
        return base_url, AwsCredentials(region, profile=variables["AWS_PROFILE"])
    return base_url, AwsCredentials(region, access_key, secret_key, variables["AWS_SESSION_TOKEN"])


_AWS = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE")


def foundry(cloud_model: CloudModel) -> tuple[str, str]:
    """Claude on Microsoft Foundry, with the key of a resource. Raises `AmanuError` (authRequired, invalidParams)."""
    needs = _Needs("Microsoft Foundry", cloud_model)
    resource = needs.name("ANTHROPIC_FOUNDRY_RESOURCE") if not cloud_model.base_url else ""
    if cloud_model.key is None:
        needs.missing.append("ANTHROPIC_FOUNDRY_API_KEY")
        needs.advice = " The key can be stored instead. Run: amanu auth set foundry"
    needs.check()
    return cloud_model.base_url or f"https://{resource}.services.ai.azure.com/anthropic", cloud_model.key or ""


def vertex(cloud_model: CloudModel) -> tuple[str, GoogleProject]:
    """Claude and Gemini on Google's Vertex AI. Raises `AmanuError` (authRequired, invalidParams, modelNotFound)."""
    claude = cloud_model.model.startswith("claude-")
    if not claude and not cloud_model.model.startswith("gemini-"):
        raise AmanuError(
            "modelNotFound",
            f"Amanu knows no model {cloud_model.model!r} on Vertex AI.",
            hint="Name a Claude or a Gemini, such as vertex:claude-sonnet-5-5 or vertex:gemini-3.8-flash.",
        )
    projects, locations = ["GOOGLE_CLOUD_PROJECT", "ANTHROPIC_VERTEX_PROJECT_ID"], _LOCATIONS
    if claude:
        projects, locations = projects[::-1], locations[::-1]
    needs = _Needs("Vertex AI", cloud_model)
    project, location = needs.name(*projects), needs.name(*locations)
    needs.check()
    variable = "ANTHROPIC_VERTEX_BASE_URL" if claude else "GOOGLE_VERTEX_BASE_URL"
    moved = re.sub(r"/v1(beta1)?$", "", cloud_model.environment.get(variable, "").strip().rstrip("/"))
    credentials_file = cloud_model.environment.get("GOOGLE_APPLICATION_CREDENTIALS", "").strip() or None
    base_url = moved or cloud_model.base_url or f"https://{_vertex_host(location)}"
    return base_url, GoogleProject(project, location, credentials_file, cloud_model.key)


_LOCATIONS = ["GOOGLE_CLOUD_LOCATION", "CLOUD_ML_REGION"]


def _vertex_host(location: str) -> str:
    match location:
        case "global":
            return "aiplatform.googleapis.com"
        case "us" | "eu":
            return f"aiplatform.{location}.rep.googleapis.com"
        case _:
            return f"{location}-aiplatform.googleapis.com"


def models(vendor: str) -> list[str]:
    """The names of models we know, as that cloud would have them."""
    makers = {"bedrock": ("anthropic",), "vertex": ("anthropic", "gemini"), "foundry": ("anthropic",)}[vendor]
    prefix = "anthropic." if vendor == "bedrock" else ""
    known = (info.model_id.partition(":") for info in MODELS)
    return [f"{prefix}{model}" for maker, _, model in known if maker in makers]


_LABEL = re.compile(r"[A-Za-z0-9-]+")
_PROJECT = re.compile(r"[A-Za-z0-9][A-Za-z0-9:._-]*")


class _Needs:
    """Takes names from environment and settings, and remembers which are missing, to tell of all at once."""

    def __init__(self, title: str, cloud_model: CloudModel) -> None:
        self._title = title
        self._known = (cloud_model.environment, cloud_model.settings)
        self.missing: list[str] = []
        self.advice = ""

    def name(self, *variables: str) -> str:
        """The value of the first variable that is set, which becomes a part of an address. Raises `AmanuError`
        (invalidParams) for one that would lead elsewhere."""
        for variable, known in ((variable, known) for known in self._known for variable in variables):
            value = known.get(variable, "").strip()
            if value and (_PROJECT if "PROJECT" in variable else _LABEL).fullmatch(value) is None:
                raise AmanuError("invalidParams", f"{variable} is not a name: {value!r}.", path=variable)
            if value:
                return value
        self.missing.append(variables[0])
        return ""

    def check(self) -> None:
        """Raises `AmanuError` (authRequired) if anything is missing."""
        if self.missing:
            message = f"{self._title} needs {' and '.join(self.missing)}."
            advice = f"Set what is missing in the environment, or under [clouds] in config.toml.{self.advice}"
            raise AmanuError("authRequired", message, hint=advice)
