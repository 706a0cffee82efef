"""How many tokens a conversation takes: the service's own count of the last request, and an estimate of what came
since, calibrated on that count. Each message is weighed once."""

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
    Results,
    SystemText,
    Text,
    Thinking,
    User,
)
from amanu.core.model import ToolSpec

ASCII = 0.25
"""Tokens of one ASCII character, and of any other: the rule of Gemini CLI, as good as any without a tokenizer."""
OTHER = 1.5
PICTURE = 1_600
"""Tokens of a picture: what Anthropic counts for one of 1.15 megapixels, to which larger ones are scaled down."""
MESSAGE = 4
"""Tokens of the frame around a message, a call or a result."""
RATIOS = (0.25, 4.0)
"""Between these a count is one of the prompt. Some services count only what their cache had not, or nothing."""


def estimate(text: str) -> float:
    """Tokens of a text, uncalibrated."""
    if text.isascii():
        return len(text) * ASCII
    plain = len(text.encode("ascii", "ignore"))
    return plain * ASCII + (len(text) - plain) * OTHER


@dataclass(frozen=True, slots=True)
class PromptHead:
    """What stands before every conversation, uncalibrated tokens."""

    system: float = 0.0
    """Without memory."""
    memory: float = 0.0
    tools: float = 0.0

    @property
    def total(self) -> float:
        return self.system + self.memory + self.tools


def measure_head(system: str, memory: str, tools: Sequence[ToolSpec]) -> PromptHead:
    """`memory` is a part of `system`."""
    return PromptHead(
        system=max(0.0, estimate(system) - estimate(memory)),
        memory=estimate(memory),
        tools=sum(estimate(f"{tool.name}{tool.description}{json.dumps(tool.parameters)}") for tool in tools),
    )


@dataclass(frozen=True, slots=True)
class MessageWeight:
    """Of one message, uncalibrated tokens."""

    text: float
    output: float = 0.0
    """Of it, results of tools."""

    @property
    def total(self) -> float:
        return self.text + self.output


def weigh(message: Message) -> MessageWeight:
    match message:
        case User():
            return MessageWeight(_said(message.parts) + MESSAGE)
        case Assistant():
            return MessageWeight(sum(map(_part, message.parts)) + MESSAGE)
        case Results():
            output = sum(estimate(result.text) + MESSAGE for result in message.results)
            return MessageWeight(_said(message.notes), output)


def _said(notes: Sequence[Note]) -> float:
    return sum(
        PICTURE if isinstance(note, Picture) else estimate(note.text if isinstance(note, SystemText) else note)
        for note in notes
    )


def _part(part: Text | Thinking | Call) -> float:
    match part:
        case Text(text=text) | Thinking(text=text):
            return estimate(text)
        case Call(tool=tool, arguments=arguments):
            written = arguments if isinstance(arguments, str) else json.dumps(arguments)
            return estimate(tool) + estimate(written) + MESSAGE


class TokenGauge:
    """Of one conversation. What a step costs here is what its new messages cost, and one look at each old one."""

    def __init__(self) -> None:
        self._weighed: list[tuple[Message, MessageWeight]] = []
        self._said = 0.0
        self._output = 0.0
        self._head = PromptHead()
        self._ratio = 1.0
        self.errors: deque[float] = deque(maxlen=1_000)
        """How far off what was foretold of the last requests was: 0.02 is two per cent too much."""
        self._counted: tuple[int, float, float] | None = None
        """The last count of the service that still holds: of how many messages, tokens, our estimate of them."""

    def follow(self, conversation: Conversation, head: PromptHead) -> None:
        """Take in what is new. By identity: results grow, and rewriting works, by replacement."""
        same = 0
        for (weighed, _), message in zip(self._weighed, conversation, strict=False):
            if weighed is not message:
                break
            same += 1
        for _, weight in self._weighed[same:]:
            self._said -= weight.text
            self._output -= weight.output
        del self._weighed[same:]
        if self._counted is not None and (same < self._counted[0] or head != self._head):
            self._counted = None
        self._head = head
        for index in range(same, len(conversation)):
            weight = weigh(conversation[index])
            self._weighed.append((conversation[index], weight))
            self._said += weight.text
            self._output += weight.output

    def count(self, tokens: int) -> None:
        """The service counted `tokens` for what is known now. Not believed when it cannot be."""
        estimated = self._estimated
        if estimated > 0 and RATIOS[0] <= tokens / estimated <= RATIOS[1]:  # else it counts something else
            self.errors.append(self.tokens / tokens - 1)
            self._ratio = tokens / estimated
            self._counted = (len(self._weighed), float(tokens), estimated)

    def recalibrate(self) -> None:
        """Another model counts from here on."""
        self._ratio = 1.0
        self._counted = None

    @property
    def tokens(self) -> int:
        """All that would be sent now."""
        if self._counted is None:
            return round(self._estimated * self._ratio)
        _, counted, estimated = self._counted
        return round(counted + (self._estimated - estimated) * self._ratio)

    @property
    def weights(self) -> list[float]:
        """Calibrated tokens of each message."""
        return [weight.total * self._ratio for _, weight in self._weighed]

    def calibrated(self, estimated: float) -> int:
        return round(estimated * self._ratio)

    def shares(self) -> tuple[int, int, int, int, int]:
        """`tokens`, as: system, tools, memory, conversation, tool output."""
        whole = self.tokens
        scale = whole / self._estimated if self._estimated else 0.0
        system = round(self._head.system * scale)
        tools = round(self._head.tools * scale)
        memory = round(self._head.memory * scale)
        output = round(self._output * scale)
        return system, tools, memory, max(0, whole - system - tools - memory - output), output

    @property
    def _estimated(self) -> float:
        return self._head.total + self._said + self._output
