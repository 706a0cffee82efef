"""Replies that end with a call as text, and those that only show one."""

import pytest

from amanu.agent.written_calls import LONGEST, PROSE, written_call

TOOLS = {"read_file", "run_shell_command"}
JSON = '{"name": "read_file", "arguments": {"path": "a.txt"}}'

CASES: list[tuple[str, str | None]] = [
    # Gemini's Python for a tool it has not
    ('```tool_code\nprint(default_api.read_file(path="a.txt"))\n```', "read_file"),
    ('I will look.\n\n```tool_code\nread_file(path="a.txt")\n```\n', "read_file"),
    ("```tool_code\nprint(default_api.google_search(q=1))\n```", None),
    ("```python\nprint(default_api)\n```", None),
    # JSON of small local models
    (JSON, "read_file"),
    (f"```json\n{JSON}\n```", "read_file"),
    (f"Let me read it.\n```\n{JSON}\n```", "read_file"),
    (f"Let me read it.\n{JSON}", "read_file"),
    (f"[{JSON}]", "read_file"),
    ('{"function": {"name": "read_file", "parameters": {"path": "a"}}}', "read_file"),
    ('{"tool": "run_shell_command", "tool_input": {"command": "ls"}}', "run_shell_command"),
    ('{"functionCall": {"name": "read_file", "args": {}}}', "read_file"),
    # tags
    (f"<tool_call>\n{JSON}\n</tool_call>", "read_file"),
    ('<function=read_file>{"path": "a"}</function>', "read_file"),
    ('<function_calls>\n<invoke name="read_file">\n<x>a</x>\n</invoke>\n</function_calls>', "read_file"),
    (f"[TOOL_CALLS] [{JSON}]", "read_file"),
    # no calls
    ("", None),
    ("The file says: hello.", None),
    ('{"name": "a package", "version": "1.0"}', None),
    ('{"name": "read_file"}', None),
    ('{"name": "other_tool", "arguments": {}}', None),
    (f"```json\n{JSON}\n```\nThis is how such a call looks.", None),
    (f"```ts\n{JSON}\n```", None),
    ("x" * (PROSE + 1) + f"\n```json\n{JSON}\n```", None),
    ("Call read_file(path) to read it.", None),
    ("```python\nread_file(path)\n```", None),
    (f"Mistral writes [TOOL_CALLS] [{JSON}]", None),
    (f"[TOOL_CALLS] [{JSON}]\nis how Mistral's models write it.", None),
    (f"<|python_tag|>{JSON}", "read_file"),
    (f"The calls of Qwen's models:\n```xml\n<tool_call>{JSON}</tool_call>\n```", None),
    (f"```json\n{JSON}", "read_file"),
    ("The tags are `<tool_call>` and `</tool_call>`.", None),
    ("[" * 100_000, None),
]


LONG = [
    *("<tool_call>", "<tool_call> x\n", "<|tool_call", "[TOOL_CALLS] ", "</function>", '{"a":', "\n[ "),
    *("```\ncode\n", "```py\nprint(1)\n```\ntext\n", "\n```", "print(default_api."),
]


@pytest.mark.timeout(10)
@pytest.mark.parametrize("piece", LONG)
@pytest.mark.parametrize("end", ["", "x", "\n```", "</tool_call>", "]"])
def test_a_long_reply_holds_nobody_up(piece: str, end: str) -> None:
    """A fraction of a second each, where a pattern that tries all beginnings took up to two minutes."""
    for beginning in ("", "```tool_code\n", "```tool_code\n" + "\n" * LONGEST + "x", "```" + " " * LONGEST + "x"):
        assert written_call(beginning + piece * (LONGEST // len(piece)) + end, TOOLS) is None


@pytest.mark.parametrize(("text", "tool"), CASES, ids=[text[:40] for text, _ in CASES])
def test_a_call_as_text(text: str, tool: str | None) -> None:
    assert written_call(text, TOOLS) == tool
