"""Calls that models write as text: read in every template, and told from all that only looks like one."""

import itertools
import json
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amanu.agent.markup.reading import read_calls
from amanu.agent.markup.shapes import CLOSING, NotACall, Unreadable
from amanu.agent.markup.templates import (
    ANSWER_CLOSES,
    ANSWER_OPENS,
    LONE_CLOSES,
    NOISE,
    TEMPLATES,
    THOUGHTS,
    WRAPPERS,
    Template,
)
from amanu.agent.markup.text_stream import TextStream
from amanu.core.conversation import Call, Conversation, Picture, User
from support.markup import TOOLS, read
from support.markup_corpus import ASKED, NEGATIVE, POSITIVE, A, Calls, J

SIZES = (1, 2, 7, 1_000_000)
BY_FAMILY = [pytest.param(each, id=each.family) for each in TEMPLATES]

AROUND = {
    # The example may stand anywhere in these, but for calls without a mark.
    "a fence": "So:\n\n```xml\n{}\n```",
    "an unclosed fence": "So:\n\n~~~\n{}",
    "code": "It is ``{}``.",
    "a diff": "@@ -1 +1 @@\n+{}",
    "a quotation": "> {}",
    "a log": "2026-11-30 12:00:01 INFO {}",
    "words behind it": "{}\n\nThat is how it is written.",
    "an example": "It is easy to see. For example:\n{}",
}


@pytest.mark.parametrize("template", BY_FAMILY)
@pytest.mark.parametrize("size", SIZES)
async def test_every_template_is_read(template: Template, size: int) -> None:
    before = "" if template.alone else "I look.\n\n"
    seen = await read(before + template.example, size=size)
    assert (seen.calls, seen.answer, seen.end.stop) == (A, before, "calls")
    assert seen.end.message.text == before and seen.end.message.native is None
    assert all(before.startswith(step) for step in seen.steps)  # nothing of it is ever drawn
    assert len(seen.steps) >= len(before + template.example) / size  # a model that writes is not silent
    assert template.source


@pytest.mark.parametrize(("text", "calls"), POSITIVE, ids=[repr(text[:50]) for text, _ in POSITIVE])
async def test_calls_are_read(text: str, calls: Calls) -> None:
    for size in SIZES:
        seen = await read(text, size=size)
        assert (seen.calls, seen.end.unmade_call) == (calls, "")
        assert seen.answer == seen.end.message.text and text.find("<", len(seen.answer)) >= -1


@pytest.mark.parametrize("text", NEGATIVE, ids=[repr(text[:50]) for text in NEGATIVE])
async def test_what_only_looks_like_a_call_is_left_alone(text: str) -> None:
    for size in SIZES:
        seen = await read(text, size=size)
        assert (seen.answer, seen.thought, seen.calls) == (text, "", [])


@pytest.mark.parametrize("template", BY_FAMILY)
@pytest.mark.parametrize("around", AROUND)
async def test_a_shown_call_is_not_made(template: Template, around: str) -> None:
    example = template.example if around != "code" else template.example.replace("`", "")
    text = AROUND[around].format(example)
    for size in SIZES:
        seen = await read(text, size=size)
        assert seen.calls == []


@pytest.mark.parametrize(("text", "reason"), ASKED, ids=[repr(text[:50]) for text, _ in ASKED])
async def test_the_model_is_told_what_is_wrong(text: str, reason: str) -> None:
    for size in SIZES:
        seen = await read(text, size=size)
        assert (seen.answer, seen.calls) == (text, [])
        assert reason in seen.end.unmade_call


def test_the_corpus_is_large() -> None:
    assert len(POSITIVE) + len(NEGATIVE) + len(ASKED) >= 200
    assert len({*NEGATIVE}) == len(NEGATIVE)


WORDS = [
    *("I ", "read", "_file ", "run", "\n", "\n\n", " ", "`", "```", "\n```\n", "> ", "- ", ". ", ": ", "x"),
    *("{", "[", "(", '"', *LONE_CLOSES, NOISE, *WRAPPERS, *CLOSING, *ANSWER_OPENS, *ANSWER_CLOSES),
    *(mark for each in TEMPLATES for mark in each.opens), *(each.example for each in TEMPLATES),
    *(each.opens for each in THOUGHTS), *(mark for each in THOUGHTS for mark in each.closes),
]  # fmt: skip


@given(st.lists(st.sampled_from(WORDS), max_size=14).map("".join), st.data())
def test_how_a_reply_is_cut_makes_no_difference(text: str, data: st.DataObject) -> None:
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=8)))
    whole = told_apart([text])
    for pieces in ([text[a:b] for a, b in itertools.pairwise([0, *cuts, len(text)])], list(text)):
        assert told_apart(pieces) == whole


def told_apart(pieces: Sequence[str]) -> tuple[str, list[tuple[str, str]]]:
    stream = TextStream(TOOLS)
    for piece in pieces:
        for _ in stream.feed(piece):
            pass
    for _ in stream.finish():
        pass
    try:
        calls = str(read_calls(stream.held, TOOLS))
        for _ in () if calls else stream.release():
            pass
    except (NotACall, Unreadable) as fault:
        calls = repr(fault)
        for _ in stream.release():
            pass
    return calls, [(kind, "".join(pieces).strip()) for kind, pieces in stream.segments]


async def test_only_the_end_of_a_reply_is_a_call() -> None:
    text = f"<tool_call>{J}</tool_call>"
    native = Call(call_id="n", tool="run", arguments={"command": "ls"})
    assert (await read(text, native=[native])).calls == [("run", {"command": "ls"})]
    assert (await read(text, stop="refused")).calls == (await read(text, stop="paused")).calls == []
    assert (await read(text, tools={})).calls == []


async def test_a_cut_call_is_known_as_one_and_not_read() -> None:
    cut = f"I look.\n<tool_call>{J[:40]}"
    seen = await read(cut, stop="outputLimit")
    assert seen.calls == [("read_file", cut[8:])] and (seen.answer, seen.end.stop) == ("I look.\n", "outputLimit")


async def test_a_picture_may_show_any_call() -> None:
    picture = Picture(name="a.png", media_type="image/png", blob_id="b", size=1)
    seen = await read(f"<tool_call>{J}</tool_call>", Conversation([User(text="See.", pictures=(picture,))]))
    assert seen.calls == [] and "picture" in seen.end.unmade_call


async def test_what_is_no_call_is_shown_soon() -> None:
    """Text that began like a call is shown again after a few hundred characters, not at the end."""
    for beginning in ("<tool_call> is a tag. ", "[", "{", "```tool_call\n", f"<tool_call>{J}</tool_call> is it. "):
        seen = await read(beginning + "word " * 400, size=1)
        assert max(len(beginning) + at - len(step) for at, step in enumerate(seen.steps)) < 500
        assert len(seen.steps) > 1000


PIECES = [
    *("<tool_call>", "<tool_call> x\n", "<|tool_call", "[TOOL_CALLS] ", "</function>", '{"a":', "\n[ "),
    *("```\ncode\n", "```py\nprint(1)\n```\ntext\n", "\n```", "print(default_api.", "[run(", "<invoke name="),
    *("<function=run><parameter=command>", '<tool_call>{"name": "run", "arguments": {"command": "', "</think>"),
    *("<tool_call>run<arg_key>a</arg_key><arg_value>", "<|tool_call>call:run{a:", "to=functions.run {", "<think>"),
    *("[run()]", "<tool_call>run ", "\n", " ", "[", "`", "<"),
]  # fmt: skip


@pytest.mark.timeout(20)
@pytest.mark.parametrize("piece", PIECES)
@pytest.mark.parametrize("end", ["", "x\n```", "</tool_call>"])
async def test_a_long_reply_holds_nobody_up(piece: str, end: str) -> None:
    """A fraction of a second each, where a pattern that tries all beginnings took up to two minutes."""
    text = piece * (50_000 // len(piece)) + end
    for size in (50, 1_000_000):
        assert (await read(text, size=size)).calls in ([], [("run", {})])


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ('{"path": "\\ud800"}', [("read_file", {"path": "?"})]),
        ('{"path": %s}' % ("1" * 5_000), []),
        ("{'path': %s}" % ("1" * 5_000), []),
        ('{"path": "a", "x": %s}' % ("[" * 200 + "]" * 200), []),
        ('{"path": "a", "x": %s}' % ("[" * 900 + "]" * 900), []),
        (json.dumps('{"path": "a", "x": %s}' % ("[" * 900 + "]" * 900)), []),
    ],
    ids=["half a character", "digits", "digits, loosely", "deep", "deeper", "deeper in a string"],
)
async def test_arguments_that_nothing_could_keep(arguments: str, expected: Calls) -> None:
    """They end no turn, and what is run can be written to the journal."""
    for text in (
        f'<tool_call>{{"name": "read_file", "arguments": {arguments}}}</tool_call>',
        f'{{"name": "read_file", "arguments": {arguments}}}',
        f"[TOOL_CALLS]read_file[ARGS]{arguments}",
    ):
        seen = await read(text)
        assert seen.calls == expected
        assert seen.end.message.model_dump_json()


@pytest.mark.parametrize("before", ["", "For example:\n"])
async def test_an_announced_call_that_is_not_made_was_not_lost(before: str) -> None:
    """Else the whole reply would be asked for again (`models/retry.py`), and be the same."""
    call = '<tool_call>\n{"name": "read_file", "arguments": {"path": "a.txt"}}\n</tool_call>'
    seen = await read(f"{before}{call}", Conversation([User(text="Hello." if before else f"Say {call}")]), stop="calls")
    assert (seen.calls, seen.end.stop) == ([], "end")
    assert seen.end.unmade_call or seen.end.quoted_call
    assert (await read("I call it.", stop="calls")).end.stop == "calls"


@pytest.mark.parametrize(
    "words",
    [
        "Hermes models write calls this way:",
        "The model then emits",
        "Qwen schreibt Aufrufe so:",
        "So sieht ein Aufruf aus:",
        "Voici à quoi ressemble un appel :",
        "Una llamada se escribe así:",
        "Una chiamata si scrive così:",
        "Uma chamada é escrita assim:",
        "Вызов выглядит так:",
        "模型这样调用工具：",
        "モデルは次のように呼び出します：",
        "모델은 이렇게 호출합니다:",
        "Een aanroep ziet er zo uit:",
        "Wywołanie wygląda tak:",
        "Bir çağrı şöyle görünür:",
    ],
)
async def test_a_call_that_words_only_describe_is_not_run(words: str) -> None:
    call = '<tool_call>\n{"name": "read_file", "arguments": {"path": "a.txt"}}\n</tool_call>'
    seen = await read(f"{words}\n\n{call}")
    assert (seen.calls, bool(seen.end.unmade_call)) == ([], True)


@pytest.mark.parametrize(
    "words",
    [
        "I call the tool this time:",
        "Ich lese die Datei so aus:",
        "Appel de l'outil :",
        "Вызов инструмента:",
        "Je lis le fichier :",
        "让我调用工具：",
    ],
)
async def test_a_call_that_words_announce_is_run(words: str) -> None:
    call = '<tool_call>\n{"name": "read_file", "arguments": {"path": "a.txt"}}\n</tool_call>'
    assert (await read(f"{words}\n\n{call}")).calls == [("read_file", {"path": "a.txt"})]
