"""Claude on Amazon Bedrock, Microsoft Foundry and Google's Vertex AI, through the clients that Anthropic's SDK has for
them: the same request bodies and events, at different addresses and with different credentials."""

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from amanu.core.model import AuthFailed, Request
from amanu.models.anthropic import AnthropicModel
from amanu.models.anthropic_request import RequestBodies
from amanu.models.clouds import AwsCredentials, GoogleProject
from amanu.models.errors import mask, sentence
from amanu.models.google_credentials import TITLE, GoogleCredentials

if TYPE_CHECKING:
    from anthropic._base_client import AsyncAPIClient

_VERSION = "2026-10-21"
"""Of the API, as the SDK puts it into bodies for Vertex AI; ours pass it ready."""


class BedrockModel(AnthropicModel):
    """`base_url` with `/anthropic`. Signing imports boto3, which is an extra."""

    title = "Amazon Bedrock"
    searches = False

    def __init__(self, credential: str | AwsCredentials, base_url: str) -> None:
        super().__init__(credential if isinstance(credential, str) else credential.secret_key or "", base_url)
        self._bodies.left_out.add("updates")  # a beta of Anthropic's own API
        self._credential = credential
        if not isinstance(credential, str):
            self._headers["accept-encoding"] = "identity"  # what `Transport` says; it is signed

    def _client(self, options: dict[str, Any]) -> "AsyncAPIClient":
        from anthropic.lib.bedrock import AsyncAnthropicBedrockMantle

        if isinstance(self._credential, str):
            return AsyncAnthropicBedrockMantle(api_key=self._credential, base_url=self._base_url, **options)
        return AsyncAnthropicBedrockMantle(
            aws_region=self._credential.region,
            aws_access_key=self._credential.access_key,
            aws_secret_key=self._credential.secret_key,
            aws_session_token=self._credential.session_token,
            aws_profile=self._credential.profile,
            base_url=self._base_url,
            **options,
        )

    def _error(self, error: Exception, *, started: bool) -> Exception:
        # The SDK itself raises RuntimeError where the chain finds nothing.
        if isinstance(error, RuntimeError) or type(error).__module__.startswith("botocore."):
            words = mask(str(error), self._key)
            return AuthFailed(
                f"AWS gives no access to {self.title}: {sentence(words)} "
                "Check AWS_PROFILE or sign in again with `aws sso login`, or set AWS_BEARER_TOKEN_BEDROCK.",
                self.title,
                details=words,
            )
        return super()._error(error, started=started)


class FoundryModel(AnthropicModel):
    """`base_url` with `/anthropic`; models go by the names of their deployments."""

    title = "Microsoft Foundry"
    searches = False

    def __init__(self, key: str, base_url: str) -> None:
        super().__init__(key, base_url)
        self._bodies.left_out.add("updates")

    def _client(self, options: dict[str, Any]) -> "AsyncAPIClient":
        from anthropic import AsyncAnthropicFoundry

        return AsyncAnthropicFoundry(api_key=self._key, base_url=self._base_url, **options)


class VertexClaudeModel(AnthropicModel):
    """`base_url` without the version. The model is named in the path."""

    title = TITLE

    def __init__(self, project: GoogleProject, base_url: str) -> None:
        super().__init__("", base_url)
        self._bodies = RequestBodies(_VERSION)
        self._bodies.left_out.add("updates")
        self._project = project
        self._credentials = GoogleCredentials(project)

    async def _authorize(self) -> None:
        self._key = await self._credentials.token()

    def _path(self, request: Request) -> str:
        project, location = quote(self._project.project, safe=":"), quote(self._project.location)
        model = quote(request.model.model_id.partition(":")[2], safe="@")
        method = "rawPredict" if request.whole else "streamRawPredict"
        return f"/projects/{project}/locations/{location}/publishers/anthropic/models/{model}:{method}"

    def _client(self, options: dict[str, Any]) -> "AsyncAPIClient":
        from anthropic.lib.vertex import AsyncAnthropicVertex

        return AsyncAnthropicVertex(
            project_id=self._project.project,
            region=self._project.location,
            credentials=self._credentials.load(),
            base_url=f"{self._base_url}/v1",
            **options,
        )
