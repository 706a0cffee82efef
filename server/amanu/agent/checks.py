"""Is it going round in circles? Pure functions of what was said and done."""

import json
import re
from collections import deque
from itertools import islice

from amanu.conversation import Assistant, Conversation, Results

SAME_STEPS = 5
"""Equal steps in a row (calls *and* results) that count as a loop. Polling that changes is none."""
SAME_SENTENCES = 10
"""Rounds of up to `LONGEST_ROUND` sentences that count as a loop."""
LONGEST_ROUND = 3
SHORTEST_SENTENCE = 12
"""Characters; shorter ones ("Yes.", "| - |") repeat in honest text."""
LONGEST_SENTENCE = 1000
"""Characters that are compared."""

_END = re.compile(r"[.!?\n]")

REPEATED_STEP = (
    "You have made the same calls with the same results several times now. Stop repeating them: do something else, "
    "or tell the person what blocks you."
)
REPEATED_TEXT = "You are repeating yourself. Stop, say once what matters, and go on with the task."


def repeats_steps(conversation: Conversation) -> bool:
    """The last `SAME_STEPS` steps made equal calls and got equal results. Looks at the end only."""
    steps: list[str] = []
    at = len(conversation) - 1
    while at > 0 and len(steps) < SAME_STEPS:
        reply, answers = conversation[at - 1], conversation[at]
        if not (isinstance(reply, Assistant) and isinstance(answers, Results)):
            return False
        steps.append(_step(reply, answers))
        at -= 2
    return len(steps) == SAME_STEPS and len(set(steps)) == 1


def _step(reply: Assistant, answers: Results) -> str:
    calls = [(call.tool, call.arguments) for call in reply.calls]
    return json.dumps([calls, [result.text for result in answers.results]], sort_keys=True)


class Repetition:
    """Watches text as it streams, whatever the size of its pieces. Code blocks may repeat what they like."""

    def __init__(self) -> None:
        self._sentences: deque[str] = deque(maxlen=SAME_SENTENCES * LONGEST_ROUND)
        self._open = ""
        self._in_code = False

    def feed(self, text: str) -> bool:
        """True when the text has begun to repeat itself. Costs what the new text costs."""
        first, *rest = _END.split(text)
        self._open = (self._open + first)[:LONGEST_SENTENCE]
        found = False
        for piece in rest:
            found = self._ended(self._open.strip()) or found
            self._open = piece[:LONGEST_SENTENCE]
        return found

    def _ended(self, sentence: str) -> bool:
        if sentence.startswith("```"):
            self._in_code = not self._in_code
            self._sentences.clear()
        if self._in_code or len(sentence) < SHORTEST_SENTENCE:
            return False
        self._sentences.append(sentence)
        return any(self._round_repeats(length) for length in range(1, LONGEST_ROUND + 1))

    def _round_repeats(self, length: int) -> bool:
        wanted = SAME_SENTENCES * length
        if len(self._sentences) < wanted:
            return False
        last = list(islice(self._sentences, len(self._sentences) - wanted, None))
        return all(sentence == last[at % length] for at, sentence in enumerate(last))
