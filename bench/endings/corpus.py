"""Endings of replies without calls, each with who has to speak next: `endings.jsonl` and `short.jsonl`, which the rule
was made with; `held_out.jsonl` and, by another hand, `second_hand.jsonl`, which were never used to change it."""

import json
from dataclasses import dataclass
from pathlib import Path

from amanu.agent.recovery import reply_fault
from amanu.agent.reply_endings import Speaker, speaker_by_rule
from amanu.core.conversation import Assistant, Text
from amanu.core.model import ReplyCompleted, TokenUsage

HERE = Path(__file__).parent
MOST_ASKED = 0.1
"""The goal: of the endings the rule was made with, the judge is asked about no larger share; none is ruled wrongly."""


@dataclass(frozen=True)
class Ending:
    language: str
    used_tools: bool
    """Whether the turn had called tools before. The rule does not look at it."""
    next: Speaker
    text: str
    reason: str
    """Why `next` is right."""

    @property
    def ruled(self) -> Speaker | None:
        """What the loop decides without a judge, for a model that may stop midway; None: the judge is asked."""
        parts = (Text(text=self.text),) if self.text else ()
        reply = ReplyCompleted(Assistant(parts=parts), TokenUsage(), "end")
        if reply_fault(reply) is not None:
            return "model"  # an empty answer is asked for again before anybody wonders who is next
        return speaker_by_rule(self.text, may_stop_midway=True)


def load(name: str = "endings") -> list[Ending]:
    lines = (HERE / f"{name}.jsonl").read_text("utf-8").splitlines()
    return [Ending(**json.loads(line)) for line in lines]
