"""What the service is to answer, written into the prompt itself, so that the service keeps no state of its own."""

import base64
import functools
import json
import re
from dataclasses import asdict, dataclass, field, replace
from typing import Any

_MARK = re.compile(rb"bench:([A-Za-z0-9_-]+=*):")
_EACH = re.compile(r"\{each:(.*?):each\}", re.DOTALL)


@dataclass(frozen=True)
class Plan:
    """`steps` replies that call `tool`, then one of `chunks` pieces of text, `pace` seconds apart (0: at once)."""

    steps: int = 0
    tool: str = ""
    arguments: dict[str, Any] = field(default_factory=dict[str, Any])
    """In a text, `{n}` becomes the number of the step, from 0, and the block in `{each:…:each}` is repeated `each`
    times, with `{i}` as its number: so the service makes the long text, and the prompt need not contain it."""
    each: int = 0
    chunks: int = 1
    pace: float = 0.0
    stamped: bool = False
    """A paced piece is the moment it is sent: `t` and the nanoseconds of the monotonic clock."""
    paragraph: int = 0
    """A paced text has a blank line after so many pieces; 0: it has none."""
    said: str = ""
    """The text, instead of pieces that mean nothing."""
    before: str = ""
    """Text of the user's before the plan; no part of what the prompt says of it."""

    def call(self, step: int) -> dict[str, Any]:
        """The arguments of the call of a step."""
        return {
            name: self._filled(value, step) if isinstance(value, str) else value
            for name, value in self.arguments.items()
        }

    def _filled(self, text: str, step: int) -> str:
        return _EACH.sub(lambda found: filled(found[1], self.each), text.replace("{n}", str(step)))


def filled(block: str, count: int) -> str:
    """The block so many times, `{i}` in it being its number."""
    return "".join(block.replace("{i}", str(i)) for i in range(count))


def prompt(plan: Plan) -> str:
    """The text a user would have typed."""
    coded = base64.urlsafe_b64encode(json.dumps(asdict(replace(plan, before=""))).encode()).decode()
    return f"{plan.before}Please go on with bench:{coded}:"


def find(body: bytes) -> tuple[Plan, int] | None:
    """The last plan in a request, and where it ends."""
    at = body.rfind(b"bench:")
    found = _MARK.match(body, at) if at >= 0 else None
    return (_decoded(found[1]), found.end()) if found else None


@functools.cache
def _decoded(coded: bytes) -> Plan:
    return Plan(**json.loads(base64.urlsafe_b64decode(coded)))
