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
    """The credentials of one project's user. When Google no longer takes them, they are looked for again, as the user
    may have signed in anew."""

    def __init__(self, project: GoogleProject) -> None:
        self._project = project
        self._credentials: Any = None
        self._renewing = asyncio.Lock()

    def load(self) -> Any:
        """`google.auth.credentials.Credentials`, as far as SDKs ask: always those found last. Blocks. Raises
        `ModelError`."""
        if self._credentials is None:
            self._credentials = self._load_credentials()
        return _Latest(self)

    async def token(self) -> str:
        """An access token that is valid for some minutes; renewed if need be. Raises `ModelError`."""
        async with self._renewing:
            await asyncio.to_thread(self.load)
            if self._credentials.expired or not self._credentials.token:
                try:
                    await asyncio.to_thread(_renew, self._credentials)
                except AuthFailed:
                    self._credentials = await asyncio.to_thread(self._load_credentials)
                    await asyncio.to_thread(_renew, self._credentials)
            return str(self._credentials.token)

    @property
    def found(self) -> Any:
        """The credentials found last."""
        return self._credentials

    def _load_credentials(self) -> Any:
        try:
            return self._find()
        except Exception as error:
            raise _explained(error) from None

    def _find(self) -> Any:
        import google.auth
        from google.oauth2.credentials import Credentials

        auth: Any = google.auth
        if self._project.token is not None:
            made: Any = Credentials
            return made(self._project.token)
        if self._project.credentials_file is None:
            return auth.default(scopes=_SCOPES)[0]
        with warnings.catch_warnings():  # it warns of untrusted files; the user chose this one
            warnings.simplefilter("ignore", DeprecationWarning)
            return auth.load_credentials_from_file(self._project.credentials_file, scopes=_SCOPES)[0]


class _Latest:
    """Stands for whatever credentials were found last: an SDK keeps the object it is given for good."""

    def __init__(self, credentials: GoogleCredentials) -> None:
        self._credentials = credentials

    def __getattr__(self, name: str) -> Any:
        return getattr(self._credentials.found, name)


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
