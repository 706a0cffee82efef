"""Which lines of a plan are its steps."""

import time

import pytest

from amanu.session.plan_steps import plan_steps


@pytest.mark.parametrize(
    ("plan", "steps"),
    [
        ("", []),
        ("Just do it.", []),
        (
            "# Goal\n\n- fast\n\n## Steps\n\n1. Read `a.py`\n2. **Edit** it\n   - carefully\n\n## Risks\n\n1. None",
            ["Read a.py", "Edit it"],
        ),
        ("## Implementation\n- [ ] one\n- [x] two\n\n- three", ["one", "two", "three"]),
        ("## Steps\n### 1. Parse\n- detail\n### Step 2: Write\n1. more\n## Tests\n### 3. no", ["Parse", "Write"]),
        ("Intro\n1. one\n2) two\n- not numbered", ["one", "two"]),
        ("## Steps\n```sh\n1. not a step\n```\n1. a step", ["a step"]),
        ("## Files\n- a.py\n", []),
        ("## Steps ##  \n1. a step", ["a step"]),
        ("## Steps\n" + "1. x\n" * 80, ["x"] * 50),
        ("## Steps\n1. " + "y" * 500, ["y" * 199 + "…"]),
    ],
)
def test_the_steps_of_a_plan(plan: str, steps: list[str]) -> None:
    assert plan_steps(plan) == steps


def test_time_is_linear_whatever_the_plan() -> None:
    start = time.process_time()
    plan_steps("## a" + " " * 60_000 + "b")
    assert time.process_time() - start < 1
