"""Side queries: questions to a model outside the conversation, for a summary or a judgement. No tools, little thinking,
limited in time."""

import asyncio
from contextlib import aclosing
from typing import Protocol

from amanu.core.conversation import Conversation, User
from amanu.core.model import Model, ModelError, ReplyCompleted, Request, StreamBroken, TokenUsage
from amanu.models.retry import RetryPolicy, stream_with_retry
from amanu_protocol.items import Effort, ModelInfo

SECONDS = 120.0
"""For one query, retries included; going on without an answer is better than a longer wait."""
POLICY = RetryPolicy(
    attempts=3, broken_retries=1, empty_retries=1, first_delay=0.5, longest_delay=4.0, longest_wait=10.0
)


class SideQuery(Protocol):
    """Asks a model something outside the conversation."""

    async def __call__(self, system: str, question: str, *, max_output: int, own_model: bool = False) -> str:
        """The model's answer, of at most `max_output` tokens, thoughts included. `own_model`: ask the turn's model, not
        the utility model. Raises `ModelError`."""
        ...


async def ask(
    model: Model,
    info: ModelInfo,
    system: str,
    question: str,
    *,
    session_id: str,
    max_output: int,
    effort: Effort = "none",
) -> tuple[str, TokenUsage]:
    """The model's answer, and the tokens it took. Raises `ModelError`, also when there is no answer within
    `SECONDS`."""
    request = Request(
        model=info,
        system=system,
        tools=(),
        conversation=Conversation([User(text=question)]),
        session_id=session_id,
        effort=effort,
        max_output=max_output,
        side_query=True,
    )
    try:
        async with asyncio.timeout(SECONDS), aclosing(stream_with_retry(model, request, POLICY)) as deltas:
            async for delta in deltas:
                if isinstance(delta, ReplyCompleted):
                    return delta.message.text.strip(), delta.usage
    except TimeoutError:
        raise StreamBroken(f"The model did not answer within {SECONDS:g} seconds.") from None
    raise ModelError("The model's stream ended without an answer.")
