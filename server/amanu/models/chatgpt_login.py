"""Signing in with ChatGPT, so that requests count towards the user's plan: the user agrees in the browser, which then
sends the result to a page on this machine."""

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
    "access_denied": "access was denied in the browser, or your ChatGPT account does not allow it",
    "malformed_answer": "the response from the browser could not be read",
}


async def sign_in(tokens: ChatGPTTokens, show: Callable[[str], None], seconds: float = TIMEOUT) -> str:
    """Sign in, and store the tokens. `show` gets the address that the user must open in a browser within `seconds`.
    Returns the account's name, or "". An attempt that fails or is cancelled stores nothing. Raises `AmanuError`:
    authRequired, providerError, storageError; each says what to do."""
    stored = tokens.kept()
    host_id = stored.host_id or f"urn:uuid:{uuid.uuid4()}"
    async with CallbackListener(CALLBACK_PATH).listening() as listener:
        attempt = Authorization(listener.address)
        show(tokens.service.page(attempt, stored.client_id or FIRST_CLIENT_ID, host_id))
        try:
            callback = await listener.received(attempt.state, seconds)
        except TimeoutError:
            minutes = f"{seconds / 60:.0f} minutes"
            raise AmanuError("authRequired", f"Nobody signed in within {minutes}.", hint=_AGAIN) from None
    client_id = _client_id(callback, stored.client_id)
    try:
        grant = await tokens.service.exchange(attempt, callback.code, client_id)
        _check(grant, attempt)
        await tokens.save(grant, client_id, host_id)
    except ModelError as error:
        raise AmanuError("providerError", error.message, hint=None if _AGAIN in error.message else _AGAIN) from None
    return grant.account or ""


def _client_id(callback: Callback, stored: str) -> str:
    """The id the service issued, now or earlier. Raises `AmanuError` if the user was not signed in."""
    if callback.error:
        reason = _REASONS.get(callback.error, f"ChatGPT reported {callback.error}")
        raise AmanuError("authRequired", f"You are not signed in: {reason}.", hint=_AGAIN)
    client_id = callback.client_id or stored
    if not client_id or client_id == FIRST_CLIENT_ID:
        raise AmanuError("providerError", "OpenAI's response contained no client id.", hint=_AGAIN)
    return client_id


def _check(grant: TokenGrant, attempt: Authorization) -> None:
    """Raises `AmanuError` for tokens that belong to another attempt or cannot use the plan. If the response names no
    scopes, all that were requested are granted (RFC 6749, 5.1)."""
    if grant.nonce not in (None, attempt.nonce):
        raise AmanuError("providerError", "OpenAI's response belongs to another sign-in.", hint=_AGAIN)
    if grant.scopes is not None and PLAN_SCOPE not in grant.scopes:
        raise AmanuError(
            "authRequired",
            "ChatGPT signed you in, but did not let Amanu use your plan.",
            hint=f"{_AGAIN} and allow the use of your plan, or with another account; if ChatGPT does not offer it, "
            "use an API key: amanu auth set openai",
        )
