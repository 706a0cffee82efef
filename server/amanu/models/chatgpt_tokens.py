"""The tokens of a sign-in with ChatGPT: kept in `chatgpt.json` beside `auth.json`, and renewed.

A refresh token works once; using it again ends the sign-in. So only one process at a time renews: it holds a `flock` on
`chatgpt.lock` (beside the tokens, so that whoever shares the tokens shares the lock), rereads the file first, and saves
the new tokens before anything uses them.
"""

import asyncio
import contextlib
import fcntl
import os
import time
from collections.abc import AsyncGenerator, Callable, Generator
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from amanu.core.model import AuthFailed, ModelError, Overloaded
from amanu.models.openai_identity import ENDED, TIMEOUT, OpenAIIdentity, SignInEnded, TokenGrant
from amanu.system.private_file import PrivateFile
from amanu.text.redaction import Secrets
from amanu_protocol.errors import AmanuError

MARGIN = 300.0
"""An access token is renewed this many seconds before it expires, or at half its lifetime if that is less."""
_LOCK_TIMEOUT = 2 * TIMEOUT
_LOCK_POLL = 0.05
_NOT_SIGNED_IN = "You are not signed in with ChatGPT. Run: amanu auth login openai"


@dataclass(frozen=True)
class SignIn:
    """The content of the file. Without an access token the user is signed out, and only the ids for the next sign-in
    remain."""

    client_id: str = ""
    """Issued by the service for this installation."""
    host_id: str = ""
    access_token: str = field(default="", repr=False)
    refresh_token: str = field(default="", repr=False)
    received_at: float = 0.0
    """Of the access token, in seconds since the epoch."""
    lifetime: float = 0.0
    """Of the access token, in seconds."""
    account: str = ""
    """For display."""
    ended: bool = False
    """The refresh token was refused."""


class ChatGPTTokens:
    """`path` is the file; `secrets` learns every token; `wall` counts seconds since the epoch.

    The wall clock is used only for the age of a token that another process received, and only once per token: a clock
    that is wrong or was changed costs one renewal.
    """

    def __init__(
        self,
        path: Path,
        secrets: Secrets,
        service: OpenAIIdentity | None = None,
        wall: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.service = service or OpenAIIdentity()
        self._file = PrivateFile(path)
        self._secrets = secrets
        self._wall = wall
        self._monotonic = monotonic
        self._read: dict[str, Any] | None = None
        self._kept = SignIn()
        self._deadline = 0.0
        """Of the access token in `_kept`, by the monotonic clock."""
        self._unsaved: tuple[str, SignIn] | None = None
        """The refresh token that was used up, and the new tokens that could not be saved."""
        self._renewing: asyncio.Task[str] | None = None

    def __repr__(self) -> str:
        return f"ChatGPTTokens({str(self._file.path)!r})"

    def kept(self) -> SignIn:
        """The current content of the file. Raises `AmanuError`."""
        read = self._file.read()
        if read is not self._read:
            kept = _sign_in(read)
            self._secrets.learn_current("chatgpt", [kept.access_token, kept.refresh_token])
            if kept.access_token != self._kept.access_token:
                age = self._wall() - kept.received_at
                self._deadline = self._monotonic() + (kept.lifetime - age if age >= 0 else 0)
            self._read, self._kept = read, kept
        return self._kept

    @property
    def signed_in(self) -> bool:
        """Whether there is a sign-in, even one that has ended. Raises `AmanuError`."""
        return bool(self.kept().access_token)

    async def current(self) -> str:
        """An access token that lasts for a while. Raises `ModelError`."""
        kept = self._usable()
        if self._left() > min(MARGIN, kept.lifetime / 2):
            return kept.access_token
        try:
            return await self._renewed(kept.access_token)
        except SignInEnded:
            raise
        except ModelError:
            if self._left() <= 0:
                raise
            return self._kept.access_token

    async def renewed(self, refused: str) -> str:
        """An access token to replace the one that a service refused. Raises `ModelError`."""
        kept = self._usable()
        return kept.access_token if kept.access_token != refused else await self._renewed(refused)

    async def save(self, grant: TokenGrant, client_id: str, host_id: str) -> None:
        """The user signed in. Raises `AmanuError`."""
        async with self._alone():
            await self._write(self._received(SignIn(client_id, host_id), grant), grant.lifetime)

    async def forget(self) -> bool:
        """Sign out on this machine; the ids for a later sign-in stay. Returns whether there was a sign-in. Raises
        `AmanuError`."""
        async with self._alone():
            kept = self.kept()
            if kept.access_token:
                await self._write(SignIn(kept.client_id, kept.host_id))
        return bool(kept.access_token)

    async def settle(self) -> None:
        """Wait for a renewal in progress: interrupting it could lose the sign-in."""
        if self._renewing is not None:
            await asyncio.wait([self._renewing])

    # ---------------------------------------------------------------------------------------------------

    def _usable(self) -> SignIn:
        with _as_model_error():
            kept = self.kept()
        if not kept.access_token:
            raise AuthFailed(_NOT_SIGNED_IN, "openai")
        if kept.ended:
            raise SignInEnded(ENDED, "openai")
        return kept

    def _left(self) -> float:
        """Seconds that the access token in `_kept` still lasts."""
        return self._deadline - self._monotonic()

    async def _renewed(self, stale: str) -> str:
        """Concurrent callers share one renewal; cancelling a caller does not cancel it."""
        if self._renewing is None or self._renewing.done():
            self._renewing = asyncio.create_task(self._renew(stale))
            self._renewing.add_done_callback(lambda task: task.cancelled() or task.exception())
        return await asyncio.shield(self._renewing)

    async def _renew(self, stale: str) -> str:
        with _as_model_error():
            async with self._alone():
                kept = self._usable()
                if kept.access_token != stale:
                    return kept.access_token  # another process was first
                if self._unsaved is None or self._unsaved[0] != kept.refresh_token:
                    self._unsaved = (kept.refresh_token, await self._granted(kept))
                renewed = self._unsaved[1]
                await self._write(renewed, renewed.lifetime)
                self._unsaved = None
                return renewed.access_token

    async def _granted(self, kept: SignIn) -> SignIn:
        try:
            grant = await self.service.renew(kept.refresh_token, kept.client_id)
        except SignInEnded:
            await self._write(replace(kept, ended=True))
            raise
        return self._received(kept, grant)

    def _received(self, kept: SignIn, grant: TokenGrant) -> SignIn:
        received = replace(
            kept,
            access_token=grant.access_token,
            refresh_token=grant.refresh_token or kept.refresh_token,
            received_at=self._wall(),
            lifetime=grant.lifetime,
            account=grant.account or kept.account,
            ended=False,
        )
        self._secrets.learn_current("chatgpt", [received.access_token, received.refresh_token])
        return received

    async def _write(self, kept: SignIn, left: float = 0) -> None:
        """`left`: seconds the access token lasts from now."""
        deadline = self._monotonic() + left
        await asyncio.to_thread(self._file.write, asdict(kept))
        if self.kept().access_token == kept.access_token and left:
            self._deadline = deadline

    @contextlib.asynccontextmanager
    async def _alone(self) -> AsyncGenerator[None]:
        """Holds the lock, so that no other process renews. It polls: a waiting thread could not be cancelled."""
        path = self._file.path.with_suffix(".lock")
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise AmanuError("storageError", f"{path} cannot be written: {error.strerror}.") from error
        try:
            await _lock(descriptor)
            yield
        finally:
            os.close(descriptor)


async def _lock(descriptor: int) -> None:
    deadline = time.monotonic() + _LOCK_TIMEOUT
    while True:
        try:
            return fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise Overloaded("Another Amanu process is still renewing the ChatGPT sign-in.", "openai") from None
        except OSError as error:
            raise AmanuError("storageError", f"The ChatGPT sign-in cannot be locked: {error.strerror}.") from error
        await asyncio.sleep(_LOCK_POLL)


def _sign_in(read: dict[str, Any]) -> SignIn:
    """From the content of the file; a field of the wrong type counts as missing."""
    known = {name: read[name] for name, blank in asdict(SignIn()).items() if type(read.get(name)) is type(blank)}
    return SignIn(**known)


@contextlib.contextmanager
def _as_model_error() -> Generator[None]:
    try:
        yield
    except AmanuError as error:
        raise AuthFailed(f"{error} {error.data.hint or ''}".rstrip(), "openai") from error
