"""Access to Google's cloud: found and renewed by Google's own library, in a thread, as it asks services by itself
(not over the session's line, so that a recording has none of it)."""

import asyncio
import warnings
from typing import Any

from amanu.core.model import AuthFailed, ModelError, Unreachable
from amanu.models.clouds import GoogleProject
from amanu.models.errors import mask, sentence

TITLE = "Vertex AI"
_SCOPES = ["https://www.googleapis.com/auth/cloud-platform"]
_ADVICE = (
    "Run `gcloud auth application-default login`, or let GOOGLE_APPLICATION_CREDENTIALS name a file with credentials."
)


class GoogleCredentials:
    """The credentials of one project's user, which both SDKs take."""

    def __init__(self, project: GoogleProject) -> None:
        self._project = project
        self._loaded: Any = None
        self._renewing = asyncio.Lock()

    def load(self) -> Any:
        """`google.auth.credentials.Credentials`. Blocks. Raises `AuthFailed`."""
        if self._loaded is None:
            try:
                self._loaded = self._find()
            except Exception as error:
                raise _explained(error) from None
        return self._loaded

    async def token(self) -> str:
        """An access token that is valid for some minutes; renewed if need be. Raises `ModelError`."""
        async with self._renewing:
            credentials = self._loaded or await asyncio.to_thread(self.load)
            if credentials.expired or not credentials.token:
                await asyncio.to_thread(_renew, credentials)
            return str(credentials.token)

    def _find(self) -> Any:
        import google.auth
        from google.oauth2.credentials import Credentials

        auth: Any = google.auth
        if self._project.token is not None:
            made: Any = Credentials
            return made(self._project.token)
        if self._project.credentials_file is None:
            return auth.default(scopes=_SCOPES)[0]
        with warnings.catch_warnings():  # about files from strangers; this one the user names, as `default` takes it
            warnings.simplefilter("ignore", DeprecationWarning)
            return auth.load_credentials_from_file(self._project.credentials_file, scopes=_SCOPES)[0]


def _renew(credentials: Any) -> None:
    try:
        from google.auth.transport.requests import Request

        credentials.refresh(Request())
    except Exception as error:
        raise _explained(error) from None


def _explained(error: Exception) -> ModelError:
    from google.auth.exceptions import TransportError

    words = mask(str(error), None)
    if isinstance(error, TransportError):
        return Unreachable(f"Google's sign-in service cannot be reached: {sentence(words)}", TITLE, details=words)
    return AuthFailed(f"Google gives no access to {TITLE}: {sentence(words)} {_ADVICE}", TITLE, details=words)
