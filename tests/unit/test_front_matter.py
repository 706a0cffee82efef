"""Front matter as it is written in the wild."""

from typing import Any

import pytest

from amanu.text.front_matter import parse_markdown


@pytest.mark.parametrize(
    ("text", "fields", "body", "fault"),
    [
        ("just text\n", {}, "just text", ""),
        ("---\nname: a\ndescription: b\n---\n\nbody\n", {"name": "a", "description": "b"}, "body", ""),
        ("\ufeff---\r\nname: a\r\n---\r\nbody", {"name": "a"}, "body", ""),
        ("---\nmaxTurns: 5\ntools: [Read, Grep]\n---\nx", {"maxTurns": 5, "tools": ["Read", "Grep"]}, "x", ""),
        ("---\n---\nbody", {}, "body", ""),
        ("---\nname: a\n---", {"name": "a"}, "", ""),
        ("---\nnever closed\n", {}, "---\nnever closed", ""),
        (
            "---\nname: a\ndescription: Use when: always\n---\nb",
            {"name": "a", "description": "Use when: always"},
            "b",
            "the front matter is not valid YAML",
        ),
        ("---\n- a\n- b\n---\nbody", {}, "body", "the front matter is no mapping"),
        ("---\na: !!python/object/apply:os.system [id]\n---\nb", None, "b", "the front matter is not valid YAML"),
        ("---\ndate: 2026-99-99\n---\nb", None, "b", None),
        (f"---\n{'a: b' * 20_000}\n---\nb", {}, "b", "the front matter is too long"),
    ],
)
def test_front_matter(text: str, fields: dict[str, Any] | None, body: str, fault: str | None) -> None:
    parsed = parse_markdown(text)
    assert parsed.body == body
    assert fields is None or parsed.fields == fields
    assert fault is None or parsed.fault == fault


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("Read, Grep", ["Read", "Grep"]),
        ("[Read, Grep]", ["Read", "Grep"]),
        ("", []),
        ("Bash(git *), Read", ["Bash(git *)", "Read"]),
    ],
)
def test_a_list_of_words(value: str, words: list[str]) -> None:
    assert parse_markdown(f"---\ntools: {value}\n---\n").words("tools") == words
