"""Which tests `make test-quick` runs for a change."""

from collections.abc import Sequence

import pytest

from support.touched_tests import touched_tests

CASES: Sequence[tuple[str, Sequence[str], Sequence[str]]] = [
    # changed, among what is run, not among it
    (
        "server/amanu/proposals/reanchor.py",
        ["tests/unit/workspace/test_reanchor.py", "tests/unit/test_layers.py"],
        ["tests/unit/shell/test_harmless.py"],
    ),
    ("server/amanu/shell/git.py", ["tests/unit/shell/test_harmless.py"], ["tests/unit/web/test_traps.py"]),
    ("server/amanu/tools/shell/blocked.py", ["tests/unit/tools/test_blocked.py"], ["tests/unit/hooks/test_files.py"]),
    ("tests/support/draft_session.py", ["tests/unit/test_session_drafting.py"], ["tests/unit/test_home.py"]),
    ("tests/e2e/test_acp.py", ["tests/e2e/test_acp.py"], ["tests/e2e/test_acp_wire.py"]),
    ("protocol/amanu_protocol/items.py", ["tests/unit/test_generated.py"], ["tests/unit/test_home.py"]),
]


@pytest.mark.parametrize(("changed", "run", "left_out"), CASES, ids=[changed for changed, _, _ in CASES])
def test_a_change_touches(changed: str, run: Sequence[str], left_out: Sequence[str]) -> None:
    tests = touched_tests([changed])
    assert set(run) <= set(tests) and not set(left_out) & set(tests)


def test_a_document_touches_no_test() -> None:
    assert touched_tests(["docs/cli.md"]) == []
