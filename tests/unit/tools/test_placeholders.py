"""Placeholders are told from text that only looks like them."""

import pytest

from amanu.core.tool import ToolError
from amanu.tools.edits.placeholders import refuse_placeholders


@pytest.mark.parametrize(
    ("line", "old", "refused"),
    [
        ("// rest of code", "", True),
        ("# ... rest of the file", "", True),
        ("    // ... existing code ...", "", True),
        ("<!-- rest of the content -->", "", True),
        ("/* … unchanged methods … */", "", True),
        ("(rest of methods ...)", "", True),
        ("... existing code ...", "", True),
        ("# ... existing code ...", "x\n# ... existing code ...\n", False),
        ("...", "", False),
        ("    ...", "", False),
        ("print('the rest of the code')", "", False),
        ("# The rest is history.", "", False),
        ("// the existing code path handles nulls", "", False),
        ("def rest(*args): ...", "", False),
        ("other = [...previous, next]", "", False),
        ("return {...rest};", "", False),
        ("Loading remaining items...", "", False),
    ],
)
def test_refuse(line: str, old: str, refused: bool) -> None:
    if refused:
        with pytest.raises(ToolError, match="Line 2"):
            refuse_placeholders(f"a\n{line}\nb\n", old)
    else:
        refuse_placeholders(f"a\n{line}\nb\n", old)
