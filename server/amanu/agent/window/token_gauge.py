"""Measures how many tokens a conversation takes: the service's own count of the last request, plus an estimate of what
was added since, calibrated on that count. Each message is weighed once."""

import json
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from amanu.core.conversation import (
    Assistant,
    Call,
    Conversation,
    Message,
    Note,
    Picture,
    Result,
    Results,
    SystemText,
    Text,
    Thinking,
    User,
)
from amanu.core.model import ToolSpec
from amanu.core.rules import MCP
from amanu.core.token_estimate import estimate

PICTURE = 1_600
"""Tokens of a picture: what Anthropic counts for 1.15 megapixels, to which larger pictures are scaled down. A page of a
PDF document is shown as one."""
MESSAGE = 4
"""Tokens of the frame around a message, a call or a result."""
RATIOS = (0.25, 4.0)
"""A service's count divided by our estimate is believed between these. Some services count only what was not cached, or
nothing."""


@dataclass(frozen=True, slots=True)
class PromptHead:
    """What precedes the conversation in every request, in uncalibrated tokens."""

    system: float = 0.0
    """The system prompt without memory."""
    memory: float = 0.0
    tools: float = 0.0
    servers: tuple[tuple[str, float], ...] = ()
    """(MCP server, what of `tools` is its), the largest first."""

    @property
    def total(self) -> float:
        return self.system + self.memory + self.tools


def measure_head(system: str, memory: str, tools: Sequence[ToolSpec]) -> PromptHead:
    """The tokens of a request's head. `memory` is a part of `system`."""
    return PromptHead(
        system=max(0.0, estimate(system) - estimate(memory)),
        memory=estimate(memory),
        tools=sum(tool.tokens for tool in tools),
        servers=_server_tokens(tools),
    )


def _server_tokens(tools: Sequence[ToolSpec]) -> tuple[tuple[str, float], ...]:
    """See `PromptHead.servers`. A tool's name says whose it is."""
    tokens: dict[str, float] = {}
    for tool in tools:
        if tool.name.startswith(MCP):
            server = tool.name.removeprefix(MCP).partition("__")[0]
            tokens[server] = tokens.get(server, 0.0) + tool.tokens
    return tuple(sorted(tokens.items(), key=lambda pair: (-pair[1], pair[0])))


@dataclass(frozen=True, slots=True)
class MessageWeight:
    """What one message takes, in uncalibrated tokens."""

    text: float
    """Everything else."""
    output: float = 0.0
    """Results of tools."""

    @property
    def total(self) -> float:
        return self.text + self.output


def weigh(message: Message) -> MessageWeight:
    """What a message takes."""
    match message:
        case User():
            return MessageWeight(_note_tokens(message.parts) + MESSAGE)
        case Assistant():
            return MessageWeight(sum(map(_part_tokens, message.parts)) + MESSAGE)
        case Results():
            output = sum(result_tokens(result) + MESSAGE for result in message.results)
            return MessageWeight(_note_tokens(message.notes), output)


def result_tokens(result: Result) -> float:
    """What a result takes, uncalibrated."""
    return estimate(result.sent_text) + sum(map(_picture_tokens, result.pictures))


def _note_tokens(notes: Sequence[Note]) -> float:
    return sum(
        _picture_tokens(note)
        if isinstance(note, Picture)
        else estimate(note.text if isinstance(note, SystemText) else note)
        for note in notes
    )


def _picture_tokens(picture: Picture) -> float:
    return 0 if picture.refused else PICTURE * picture.pages


def _part_tokens(part: Text | Thinking | Call) -> float:
    match part:
        case Text(text=text) | Thinking(text=text):
            return estimate(text)
        case Call(tool=tool, arguments=arguments):
            written = arguments if isinstance(arguments, str) else json.dumps(arguments)
            return estimate(tool) + estimate(written) + MESSAGE


class TokenGauge:
    """Measures one conversation. A step costs the weighing of its new messages."""

    def __init__(self) -> None:
        self._weighed: list[Message] = []
        self._weights: list[MessageWeight] = []
        self._rewrites = 0
        """The conversation's `rewrites` when its messages were last processed."""
        self._text = 0.0
        self._output = 0.0
        self._head = PromptHead()
        self._ratio = 1.0
        self.errors: deque[float] = deque(maxlen=1_000)
        """How far off the estimates of the last requests were: 0.02 is two per cent too much."""
        self._counted: tuple[int, float, float] | None = None
        """The service's last count, while it is valid: (number of messages, tokens counted, our estimate)."""

    def follow(self, conversation: Conversation, head: PromptHead) -> None:
        """Bring the gauge up to date with the conversation. Messages are compared by identity: they are replaced, never
        changed."""
        unchanged = conversation.unchanged(self._weighed, self._rewrites)
        self._rewrites = conversation.rewrites
        for weight in self._weights[unchanged:]:
            self._text -= weight.text
            self._output -= weight.output
        del self._weighed[unchanged:], self._weights[unchanged:]
        if self._counted is not None and (unchanged < self._counted[0] or head != self._head):
            self._counted = None
        self._head = head
        for index in range(unchanged, len(conversation)):
            weight = weigh(conversation[index])
            self._weighed.append(conversation[index])
            self._weights.append(weight)
            self._text += weight.text
            self._output += weight.output

    def count(self, tokens: int) -> None:
        """The service counted `tokens` for the conversation as followed so far. Implausible counts are ignored."""
        estimated = self._estimated
        if estimated > 0 and RATIOS[0] <= tokens / estimated <= RATIOS[1]:  # otherwise it counts something else
            self.errors.append(self.tokens / tokens - 1)
            self._ratio = tokens / estimated
            self._counted = (len(self._weighed), float(tokens), estimated)

    def recalibrate(self) -> None:
        """Forget the service's counts: another model counts differently."""
        self._ratio = 1.0
        self._counted = None

    @property
    def tokens(self) -> int:
        """Tokens of everything that would be sent now."""
        if self._counted is None:
            return round(self._estimated * self._ratio)
        _, counted, estimated = self._counted
        return round(counted + (self._estimated - estimated) * self._ratio)

    @property
    def weights(self) -> list[float]:
        """Calibrated tokens of each message."""
        return [weight.total * self._ratio for weight in self._weights]

    def calibrated(self, estimated: float) -> int:
        """An estimate in tokens as the service counts them."""
        return round(estimated * self._ratio)

    def shares(self) -> tuple[int, int, int, int, int]:
        """`tokens`, split into (system, tools, memory, conversation, tool output)."""
        whole = self.tokens
        scale = whole / self._estimated if self._estimated else 0.0
        system = round(self._head.system * scale)
        tools = round(self._head.tools * scale)
        memory = round(self._head.memory * scale)
        output = round(self._output * scale)
        return system, tools, memory, max(0, whole - system - tools - memory - output), output

    def server_tokens(self) -> list[tuple[str, int]]:
        """`PromptHead.servers`, in proportion to `tokens`."""
        scale = self.tokens / self._estimated if self._estimated else 0.0
        return [(name, round(count * scale)) for name, count in self._head.servers]

    @property
    def _estimated(self) -> float:
        return self._head.total + self._text + self._output
