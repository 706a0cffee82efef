"""Streams that may be anything (`damaged_streams.py`): recordings cut at some bytes, and recordings with their events
changed. All bytes of all recordings: `make soak`."""

import asyncio
import json
import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, cast

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from amanu.models.recording import Exchange
from amanu.models.retry import RetryPolicy
from recordings.make import WAYS, Way
from recordings.shapes import a_end, a_start, a_text, g, g_call, o, o_call
from support.damaged_streams import Outcome, Sweep, quiet
from support.sweeps import examples

SAMPLE = examples(50, 16)
"""Cuts of each way, others in each run of the tests."""
EXAMPLES = examples(25, 8)
"""Changed streams of each way."""


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction]
    monkeypatch.setattr(RetryPolicy, "delay", lambda self, retry: 0.0)


def ways() -> pytest.MarkDecorator:
    return pytest.mark.parametrize("way", WAYS, ids=[way.name for way in WAYS])


@ways()
async def test_there_are_recordings_of_every_shape(way: Way) -> None:
    sweep = Sweep(way)
    assert sweep.recordings.keys() == way.shapes.keys(), "run: python -m recordings.make"
    for name, exchange in sweep.recordings.items():
        assert await quiet(sweep.play(exchange, exchange)), name
    await sweep.close()


@ways()
async def test_a_cut_anywhere_ends_well(way: Way) -> None:
    sweep = Sweep(way)
    outcomes: Counter[Outcome] = Counter()
    for name, at, kind in random.Random().sample(list(sweep.cuts()), SAMPLE):
        try:
            outcomes[await quiet(sweep.cut(name, at, kind))] += 1
        except Exception as error:
            raise AssertionError(f"{way.name}/{name} {kind} at byte {at}") from error
    await sweep.close()
    assert outcomes["retried"] > SAMPLE // 2


# Found by the tests below, once ------------------------------------------------------------------------

FOUND: dict[str, tuple[str, list[bytes], Outcome]] = {
    "usage that cannot be": (
        "anthropic",
        [a_start().replace(b'"input_tokens": 9', b'"input_tokens": 1e30'), *a_text(0, "Fine."), *a_end()],
        "complete",
    ),
    "text in a block that is none": (
        "anthropic",
        [a_start(), *(each.replace(b'"text", "text": ""', b'7, "text": ""') for each in a_text(0, "Fine.")), *a_end()],
        "retried",
    ),
    "pieces of two blocks in turn": (
        "anthropic",
        [a_start(), *(each for pair in zip(a_text(0, "a"), a_text(1, "b"), strict=True) for each in pair), *a_end()],
        "retried",
    ),
    "a refusal after a call": ("gemini-3", [g(g_call("read_file", {})), g(finish="SAFETY")], "complete"),
    "a call beside a refusal": (
        "openai",
        [o_call("read_file", "{}", index=0, id="x"), o("content_filter")],
        "complete",
    ),
    "a part without data": ("gemini-2.5", [g({"text": "Fine."}, {"thought": True}), g(finish="STOP")], "complete"),
    "half a character": ("gemini-3", [g({"text": "?"}).replace(b"?", b"\\ud800"), g(finish="STOP")], "complete"),
    "a call without a name": ("openai", [o_call(None, "{}", index=0, id="x"), o("tool_calls")], "retried"),
    "names in another order": (
        "openai",
        [
            o_call(None, "{}", index=0, id="x"),
            o_call("grep", "{}", index=1, id="y"),
            o_call("read_file", index=0),
            o("tool_calls"),
        ],
        "complete",
    ),
}


@pytest.mark.parametrize(("name", "events", "outcome"), FOUND.values(), ids=FOUND)
async def test_what_was_found_once(name: str, events: list[bytes], outcome: Outcome) -> None:
    sweep = Sweep(next(way for way in WAYS if way.name == name))
    plain = sweep.recordings["text"]
    found, _ = await quiet(sweep.play(replace(plain, chunks=[(0.0, event) for event in events]), plain))
    await sweep.close()
    assert found == outcome


# Other events than were recorded -----------------------------------------------------------------------

Odd = st.sampled_from([None, True, -1, 1e300, 10**30, "", "x", [], [None], {}, {"a": 1}, [[["x"]]]])


@ways()
def test_events_that_are_not_what_they_were(way: Way) -> None:
    with asyncio.Runner() as runner:

        async def made() -> Sweep:
            return Sweep(way)

        sweep = runner.run(made())

        @settings(max_examples=EXAMPLES, deadline=None, phases=[Phase.generate])  # shrinking takes minutes
        @given(st.data())
        def plays(data: st.DataObject) -> None:
            name = data.draw(st.sampled_from(sorted(sweep.recordings)))
            whole = sweep.recordings[name]
            runner.run(quiet(sweep.play(_changed(whole, data), whole, damaged=True)))

        try:
            plays()
        finally:
            runner.run(sweep.close())


def _changed(whole: Exchange, data: st.DataObject) -> Exchange:
    """Events dropped, doubled, swapped; a byte flipped; a value of the JSON replaced."""
    events = [each + b"\n\n" for each in whole.data.replace(b"\r\n", b"\n").split(b"\n\n") if each]
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(events) - 1)) if events else 0
        match data.draw(st.sampled_from(["drop", "double", "swap", "flip", "value"])) if events else "":
            case "drop":
                del events[at]
            case "double":
                events.insert(at, events[at])
            case "swap":
                other = data.draw(st.integers(0, len(events) - 1))
                events[at], events[other] = events[other], events[at]
            case "flip":
                event = bytearray(events[at])
                event[data.draw(st.integers(0, len(event) - 1))] ^= 1 << data.draw(st.integers(0, 7))
                events[at] = bytes(event)
            case "value":
                events[at] = _other_value(events[at], data)
            case _:
                pass
    return replace(whole, chunks=[(0.0, event) for event in events])


def _other_value(event: bytes, data: st.DataObject) -> bytes:
    head, mark, text = event.partition(b"data: ")
    try:
        value: Any = json.loads(text)
    except ValueError:
        return event
    places = list(_places(value))
    if not places:
        return event
    holder, key = data.draw(st.sampled_from(places))
    if isinstance(holder, dict) and data.draw(st.booleans()):
        del holder[key]
    else:
        holder[key] = data.draw(Odd)
    return head + mark + json.dumps(value).encode() + b"\n\n"


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    if isinstance(value, dict | list):
        inside = cast("Any", value)
        pairs: list[tuple[Any, Any]] = list(inside.items() if isinstance(value, dict) else enumerate(inside))
        for key, each in pairs:
            yield value, key
            yield from _places(each)
