"""Signing in with ChatGPT, so that requests count towards the user's plan: the browser asks the user, and brings the
answer to a page on this machine."""

import uuid
from collections.abc import Callable

from amanu.core.model import ModelError
from amanu.models.chatgpt_tokens import ChatGPTTokens
from amanu.models.oauth_callback import Callback, CallbackListener
from amanu.models.openai_identity import CALLBACK_PATH, FIRST_CLIENT_ID, PLAN_SCOPE, Authorization, TokenGrant
from amanu_protocol.errors import AmanuError

TIMEOUT = 600.0
"""Seconds the user has to answer in the browser."""

_AGAIN = "Run: amanu auth login openai"
_REASONS = {
    "access_denied": "You did not allow it in the browser, or your ChatGPT account does not",
    "malformed_answer": "the browser brought an answer that cannot be read",
}


async def sign_in(tokens: ChatGPTTokens, show: Callable[[str], None], seconds: float = TIMEOUT) -> str:
    """Sign in, and keep the tokens. `show` is given the address the user must open in a browser; how long they may take
    is `seconds`. Returns the account's name, or "". Nothing is kept of an attempt that fails or is cancelled. Raises
    `AmanuError`: authRequired, providerError, storageError; each says what to do."""
    known = tokens.kept()
    host_id = known.host_id or f"urn:uuid:{uuid.uuid4()}"
    async with CallbackListener(CALLBACK_PATH).listening() as listener:
        attempt = Authorization(listener.address)
        show(tokens.service.page(attempt, known.client_id or FIRST_CLIENT_ID, host_id))
        try:
            callback = await listener.received(attempt.state, seconds)
        except TimeoutError:
            minutes = f"{seconds / 60:.0f} minutes"
            raise AmanuError("authRequired", f"Nobody signed in within {minutes}.", hint=_AGAIN) from None
    client_id = _client_id(callback, known.client_id)
    try:
        grant = await tokens.service.exchange(attempt, callback.code, client_id)
        _check(grant, attempt)
        await tokens.save(grant, client_id, host_id)
    except ModelError as error:
        raise AmanuError("providerError", error.message, hint=None if _AGAIN in error.message else _AGAIN) from None
    return grant.account or ""


def _client_id(callback: Callback, known: str) -> str:
    """The issued one. Raises `AmanuError` for an answer that is no yes."""
    if callback.error:
        reason = _REASONS.get(callback.error, f"the answer was {callback.error}")
        raise AmanuError("authRequired", f"You are not signed in: {reason}.", hint=_AGAIN)
    client_id = callback.client_id or known
    if not client_id or client_id == FIRST_CLIENT_ID:
        raise AmanuError("providerError", "OpenAI issued no client id with its answer.", hint=_AGAIN)
    return client_id


def _check(grant: TokenGrant, attempt: Authorization) -> None:
    """Raises `AmanuError` for tokens that are of another attempt, or cannot use the plan. A service that does not say
    what it granted granted what it was asked for (RFC 6749, 5.1)."""
    if grant.nonce not in (None, attempt.nonce):
        raise AmanuError("providerError", "OpenAI's answer belongs to another sign-in.", hint=_AGAIN)
    if grant.scopes is not None and PLAN_SCOPE not in grant.scopes:
        raise AmanuError(
            "authRequired",
            "ChatGPT signed you in, but did not let Amanu use your plan.",
            hint=f"{_AGAIN} and allow the use of your plan, or with another account; if ChatGPT does not offer it, "
            "use an API key: amanu auth set openai",
        )
