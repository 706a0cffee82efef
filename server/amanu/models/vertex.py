"""Google's Vertex AI: Claude and Gemini, each as its own service has it, under Google's address and access."""

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

from amanu.core.model import Delta, RemoteModel, Request
from amanu.models.anthropic_clouds import VertexClaudeModel
from amanu.models.clouds import GoogleProject
from amanu.models.gemini import GeminiModel
from amanu.models.google_credentials import TITLE, GoogleCredentials

if TYPE_CHECKING:
    from google import genai
    from google.genai.types import HttpOptions


class VertexModel:
    """A `Model`: one of the two for each request, by the name of the model."""

    searches = False
    """Google's own search there has terms of its own, and Claude has none."""

    def __init__(self, project: GoogleProject, base_url: str) -> None:
        self._base_url = base_url
        self._models: tuple[RemoteModel, RemoteModel] = (
            VertexClaudeModel(project, base_url),
            VertexGeminiModel(project, base_url),
        )

    def __repr__(self) -> str:
        return f"VertexModel({self._base_url!r})"

    def stream(self, request: Request) -> AsyncIterator[Delta]:
        """See `Model.stream`."""
        return self._models[0 if request.model.model_id.startswith("vertex:claude-") else 1].stream(request)

    async def connect(self) -> None:
        """Does nothing: which of them will be asked is not known yet."""

    async def close(self) -> None:
        for model in self._models:
            await model.close()


class VertexGeminiModel(GeminiModel):
    """`base_url` without the version."""

    title = TITLE
    api_version = "v1beta1"

    def __init__(self, project: GoogleProject, base_url: str) -> None:
        super().__init__("", base_url)
        self._project = project
        self._credentials = GoogleCredentials(project)

    async def _authorize(self) -> None:
        self._key = await self._credentials.token()

    def _client(self, options: "HttpOptions") -> "genai.Client":
        from google import genai

        credentials: Any = self._credentials.load()
        return genai.Client(
            vertexai=True,
            project=self._project.project,
            location=self._project.location,
            credentials=credentials,
            http_options=options,
        )
