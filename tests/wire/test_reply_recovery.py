"""Each kind of odd reply (`agent/recovery.py`), from the bytes of each service to the end of the turn: the real
translators and the loop, against the strict services. Afterwards the conversation is one the service still takes."""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, get_args

import pytest

from amanu.agent.calls import TOO_MANY
from amanu.agent.loop import run_turn
from amanu.agent.markup.model import SHOWN
from amanu.agent.recovery import CUT_CALL, REMEDIES, ReplyFault
from amanu.core.conversation import User
from amanu.core.model import Model
from amanu.core.model_families import model_info
from amanu.models.retry import RetryPolicy
from support.loop_harness import LoopHarness
from support.strict_services.http import Fault, Raw, Say, Step, ToolUse
from support.vendor_sweeps import of_each_wire
from support.vendors import VENDORS, Vendor, answer, request, running

READ = ToolUse("read", {"path": "a.py"})
FINE = Say(text="Fine, it is done.")
FINISH = ToolUse("finish_task", {"summary": "All of it is done."})
GEMINI = ("gemini", "gemini-2.5")
CHAT = ("openrouter", "openrouter-plain", "local")
"""Without `google-openai`, whose service wants signatures on what is sent by hand."""
ANTHROPIC = ("anthropic", "anthropic-adaptive", "anthropic-budget")


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(RetryPolicy, "delay", lambda self, retry: 0.0)
    yield


def note(odd: ReplyFault) -> str:
    return REMEDIES[odd].note


def sse(*values: Any) -> Raw:
    """Events of any wire; Anthropic's have their type in front."""
    named = [(f"event: {value['type']}\n" if "type" in value else "", value) for value in values]
    return Raw([f"{name}data: {json.dumps(value)}\n\n".encode() for name, value in named])


def gemini(*parts: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
    candidate: dict[str, Any] = {"content": {"role": "model", "parts": list(parts)}, "finishReason": finish}
    return {"candidates": [{name: value for name, value in candidate.items() if value is not None}]}


def chat(finish: str | None = None, **delta: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def called(arguments: Any, **more: Any) -> dict[str, Any]:
    """A call as chat completions stream it."""
    return chat(tool_calls=[{"id": "x", "function": {"name": "read", "arguments": arguments}, **more}])


WORDS: list[dict[str, Any]] = [
    {"type": "message_start", "message": {"usage": {"input_tokens": 1}}},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "Fine, it is done."}},
    {"type": "content_block_stop", "index": 0},
]
ENDED: dict[str, Any] = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {}}


@dataclass(frozen=True)
class Case:
    """What the service says, and what comes of it."""

    odd: ReplyFault
    steps: Sequence[Step] | Callable[[Vendor], Sequence[Step]]
    answers: list[str] = field(default_factory=lambda: ["Fine, it is done."])
    """What the user sees of it in the end."""
    told: list[str] = field(default_factory=list[str])
    """What the model was told in the daemon's name."""
    results: list[str] = field(default_factory=list[str])
    """How the results of all calls begin, in order."""
    reason: str = "completed"
    message: str = ""
    finishing: str | None = None
    only: Sequence[str] = ()
    """Vendors by name; () for all."""
    lacking: str = ""
    """Left out where the wire cannot express that."""


def cut_call(vendor: Vendor) -> ToolUse:
    return ToolUse("read", {"path": "a"} if "rawArguments" in vendor.lacks else '{"path": "a')


def all_thought(vendor: Vendor) -> Say:
    return Say(thought=hm(vendor), stop="outputLimit")


def hm(vendor: Vendor) -> str:
    return "" if "thoughts" in vendor.lacks else "Hm."


TOOL_CODE = """```tool_code\nprint(default_api.read(path="a.py"))\n```"""
WRITTEN = '{"name": "read", "arguments": {"path": "a.py"}}'
TAGGED = f"<tool_call>{WRITTEN}</tool_call>"
FENCED = f"I read it.\n\n```json\n{WRITTEN}\n```"
WRONG = '<tool_call>{"name": "read", "arguments": {"path": {"file": 1}}}</tool_call>'
UNREADABLE = '<tool_call>{"name": "read", "arguments": {"path": "a.py}}'
OK = "read a.py for the model"
MALFORMED = ToolUse("read", '{"path": ')
NO_OBJECT = "The arguments of read are not a JSON object."
REMINDED = [note("unfinished")] * 10
CASES: dict[str, Case] = {
    "cut in a string": Case("broken", [Fault("cut", after=3), FINE]),
    "cut inside a call": Case("broken", [Say(calls=[READ], fault=Fault("reset", after=3)), FINE]),
    "not JSON": Case("broken", [Fault("malformed", after=2), FINE]),
    "nothing at all": Case("broken", [Fault("empty"), FINE]),
    "no finish marker": Case("noFinish", [Say(text="Half", fault=Fault("unfinished")), FINE]),
    "no finish marker after results": Case(
        "noFinish", [Say(calls=[READ]), Say(text="Half", fault=Fault("unfinished")), FINE], results=[OK]
    ),
    "broken for good": Case(
        "broken",
        [Say(text=["Most of ", "it."], fault=Fault("unfinished"))] * 4,
        answers=["Most of it."],
        reason="failed",
        message="Gave up after 4 attempts.",
    ),
    "error after 200": Case("errorEvent", [Fault("errorEvent", after=2, message="No."), FINE], lacking="errorEvent"),
    "thoughts only": Case("thinkingOnly", [Say(thought="Hm."), FINE], told=[note("thinkingOnly")], lacking="thoughts"),
    "thoughts only after results": Case(
        "thinkingOnly",
        [Say(calls=[READ]), Say(thought="Hm."), FINE],
        told=[note("thinkingOnly")],
        results=[OK],
        lacking="thoughts",
    ),
    "thoughts only for good": Case(
        "thinkingOnly",
        [Say(thought="Hm.")] * 3,
        answers=[],
        told=[note("thinkingOnly")],
        reason="failed",
        message="Gave up after 3 attempts.",
        lacking="thoughts",
    ),
    "empty": Case("empty", [Say(), FINE], told=[note("empty")]),
    "blank": Case("empty", [Say(text=" \n"), FINE], told=[note("empty")]),
    "malformed, by the service": Case(
        "malformedCall", [Say(stop="MALFORMED_FUNCTION_CALL"), FINE], told=[note("malformedCall")], only=GEMINI
    ),
    "malformed, by the model": Case(
        "malformedCall", [Say(calls=[MALFORMED]), FINE], results=[NO_OBJECT], lacking="rawArguments"
    ),
    "unexpected, by the service": Case(
        "unexpectedCall", [Say(stop="UNEXPECTED_TOOL_CALL"), FINE], told=[note("unexpectedCall")], only=GEMINI
    ),
    "unexpected, by the model": Case(
        "unexpectedCall",
        [Say(calls=[ToolUse("rad", {})]), FINE],
        results=["Unknown tool 'rad'."],
    ),
    "refused": Case(
        "refused", [Say(text="I begin", stop="refused")], answers=["I begin"], reason="refused", message="*"
    ),
    "refused at once": Case("refused", [Say(stop="refused")], answers=[], reason="refused", message="*"),
    "refused while thinking": Case(
        "refused", [Say(thought="Hm.", stop="refused")], answers=[], reason="refused", message="*", lacking="thoughts"
    ),
    "refused with a call": Case(
        "refused",
        [Say(text="I begin", calls=[READ], stop="refused")],
        answers=["I begin"],
        results=["Not run: the reply was cut off."],
        reason="refused",
        message="*",
    ),
    "cut in text": Case(
        "cutText",
        [Say(text="Half a sen", stop="outputLimit"), Say(text="tence, and it is done.")],
        answers=["Half a sen", "tence, and it is done."],
        told=[note("cutText")],
    ),
    "cut in text again and again": Case(
        "cutText",
        [Say(text=word, stop="outputLimit") for word in "abcd"],
        answers=[*"abcd"],
        told=[note("cutText")] * 3,
        reason="failed",
        message="output limit",
    ),
    "cut in a call": Case(
        "cutCall",
        lambda vendor: [Say(text="So", calls=[cut_call(vendor)], stop="outputLimit"), Say(calls=[READ]), FINE],
        answers=["So", "Fine, it is done."],
        results=[CUT_CALL, OK],
    ),
    "cut in a call again and again": Case(
        "cutCall",
        lambda vendor: [Say(calls=[cut_call(vendor)], stop="outputLimit")] * 3,
        answers=[],
        results=[CUT_CALL] * 3,
        reason="failed",
        message="output limit",
    ),
    "nothing after results": Case(
        "emptyAfterResults", [Say(calls=[READ]), Say(), FINE], told=[note("emptyAfterResults")], results=[OK]
    ),
    "nothing again and again after results": Case(
        "emptyAfterResults",
        [Say(calls=[READ]), Say(), Say(), Say(), Say()],
        answers=[],
        told=[note("emptyAfterResults")] * 3,
        results=[OK],
        reason="failed",
        message="The model finished its calls but then sent 4 empty replies in a row.",
    ),
    "more calls than are run": Case(
        "manyCalls",
        [Say(calls=[ToolUse("read", {"path": f"{n}.py"}) for n in range(130)]), FINE],
        results=[*(f"read {n}.py for the model" for n in range(128)), TOO_MANY, TOO_MANY],
    ),
    "a call as text": Case("writtenCall", [Say(text=TOOL_CODE), FINE], results=[OK]),
    "calls as text after words": Case(
        "writtenCall",
        [Say(text=f"I read both.\n\n{TAGGED}\n{TAGGED}"), FINE],
        answers=["I read both.\n\n", "Fine, it is done."],
        results=[OK, OK],
    ),
    "a call as text in a cut reply": Case(
        "cutCall", [Say(text=TAGGED[:50], stop="outputLimit"), Say(text=TAGGED), FINE], results=[CUT_CALL, OK]
    ),
    "a call shown as text": Case(
        "writtenCall",
        [Say(text=FENCED), Say(calls=[READ]), FINE],
        answers=[FENCED, "Fine, it is done."],
        told=[f"{note('writtenCall')} It was of read. {SHOWN}"],
        results=[OK],
    ),
    "a call as text with wrong arguments": Case(
        "writtenCall",
        [Say(text=WRONG), Say(calls=[READ]), FINE],
        answers=[WRONG, "Fine, it is done."],
        told=["*Wrong arguments for read: path: Input should be a valid string."],
        results=[OK],
    ),
    "a call as text that cannot be read": Case(
        "writtenCall",
        [Say(text=UNREADABLE), Say(calls=[READ]), FINE],
        answers=[UNREADABLE, "Fine, it is done."],
        told=["*It could not be read at line 1, column 58: expected the closing"],
        results=[OK],
    ),
    "calls shown as text again": Case(
        "writtenCall",
        [Say(text=FENCED), Say(text=FENCED)],
        answers=[FENCED, FENCED],
        told=[f"{note('writtenCall')} It was of read. {SHOWN}"],
        reason="failed",
        message="The model keeps writing tool calls as text, which runs nothing.",
    ),
    "announced, by rule": Case(
        "stoppedMidway",
        [Say(text="I will now read it."), Say(calls=[READ]), FINE],
        answers=["I will now read it.", "Fine, it is done."],
        told=[note("stoppedMidway")],
        results=[OK],
    ),
    "announced, by judgement": Case(
        "stoppedMidway",
        [
            Say(text="Teraz czytam plik."),
            Say(text='```json\n{"next_speaker": "model"}\n```'),
            Say(calls=[READ]),
            FINE,
        ],
        answers=["Teraz czytam plik.", "Fine, it is done."],
        told=[note("stoppedMidway")],
        results=[OK],
        only=("gemini-2.5", "gemini", "google-openai"),
    ),
    "no judge for those who do not stop midway": Case(
        "stoppedMidway",
        [Say(text="Teraz czytam plik.")],
        answers=["Teraz czytam plik."],
        only=(*ANTHROPIC, *CHAT),
    ),
    "announced again and again": Case(
        "stoppedMidway",
        [Say(text="I will now read it.")] * 4,
        answers=["I will now read it."] * 4,
        told=[note("stoppedMidway")] * 3,
    ),
    "finished": Case(
        "unfinished",
        [Say(text="Looking."), Say(calls=[READ]), Say(text="What now?"), Say(calls=[FINISH])],
        answers=["Looking.", "What now?", "All of it is done."],
        told=[note("unfinished")] * 2,
        results=[OK, "All of it is done."],
        finishing="finish_task",
    ),
    "never finished": Case(
        "unfinished",
        [Say(text="Well."), Say(calls=[READ]), *([Say(text="Well.")] * 11)],
        answers=["Well."] * 12,
        told=[note("unfinished"), *REMINDED],
        results=[OK],
        finishing="finish_task",
    ),
    "no candidates": Case(
        "noCandidates",
        [sse({"usageMetadata": {}}, gemini({"text": "Fine, it is done."}), {}, gemini(finish="STOP"))],
        only=GEMINI,
    ),
    "no choices": Case(
        "noCandidates",
        [sse({"choices": None}, chat(content="Fine, it is done."), chat("stop"), {"choices": [], "usage": None})],
        only=CHAT,
    ),
    "no parts": Case(
        "noParts",
        [
            sse(
                {"candidates": [{"content": {"role": "model"}}]},
                gemini({"text": "Fine, it is done."}),
                {"candidates": [{"finishReason": "STOP"}]},
            )
        ],
        only=GEMINI,
    ),
    "several STOPs": Case(
        "severalFinishes",
        [
            sse(
                gemini({"functionCall": {"name": "read", "args": {}}}, finish="STOP"),
                gemini({"text": "I read"}, finish="STOP"),
            ),
            FINE,
        ],
        answers=["I read", "Fine, it is done."],
        results=[OK],
        only=GEMINI,
    ),
    "several finish reasons": Case(
        "severalFinishes",
        [sse(called("{}", index=0), chat("tool_calls"), chat("stop")), FINE],
        results=[OK],
        only=CHAT,
    ),
    "several message deltas": Case(
        "severalFinishes", [sse(*WORDS, ENDED, ENDED, {"type": "message_stop"})], only=ANTHROPIC
    ),
    "calls announced, none sent": Case(
        "missingCalls",
        [Say(text="I read it.", stop="calls"), Say(calls=[READ]), FINE],
        results=[OK],
        only=(*CHAT, *ANTHROPIC),
    ),
    "calls announced twice, none sent": Case(
        "missingCalls", [Say(text="Fine, it is done.", stop="calls")] * 2, only=(*CHAT, *ANTHROPIC)
    ),
    "no index": Case("missingIndex", [sse(called("{}"), chat("tool_calls")), FINE], results=[OK], only=CHAT),
    "an event without its index": Case(
        "missingIndex",
        [sse(WORDS[0], {name: value for name, value in WORDS[1].items() if name != "index"}, ENDED), FINE],
        only=ANTHROPIC,
    ),
    "arguments as an object": Case(
        "objectArguments", [sse(called({"path": "a.py"}, index=0), chat("stop")), FINE], results=[OK], only=CHAT
    ),
    "one id for two calls": Case(
        "duplicateIds",
        [Say(calls=[ToolUse("read", {"path": path}, "same") for path in ("a.py", "b.py")]), FINE],
        results=[OK, "read b.py for the model"],
    ),
    "the same ids in each reply": Case(
        "duplicateIds",
        lambda vendor: [
            *(
                Say(thought=hm(vendor), calls=[ToolUse("read", {"path": path}, "same")])
                for path in ("a.py", "b.py", "c.py")
            ),
            FINE,
        ],
        results=[OK, "read b.py for the model", "read c.py for the model"],
    ),
    "eleven calls": Case(
        "manyCalls",
        [Say(calls=[ToolUse("read", {"path": f"{n}.py"}) for n in range(11)]), FINE],
        results=[f"read {n}.py for the model" for n in range(11)],
    ),
}


def test_every_kind_has_its_case() -> None:
    """`spentThinking` has a test of its own below."""
    assert set(get_args(ReplyFault)) == set(REMEDIES) == {case.odd for case in CASES.values()} | {"spentThinking"}


def over(case: Case) -> list[Vendor]:
    able = [
        vendor
        for vendor in VENDORS
        if case.lacking not in vendor.lacks and not ("stop" in vendor.lacks and tells_why(case, vendor))
    ]
    return [vendor for vendor in able if not case.only or vendor.name in case.only]


def tells_why(case: Case, vendor: Vendor) -> bool:
    """Whether a reply of it ends for a reason of its own."""
    steps = case.steps(vendor) if callable(case.steps) else case.steps
    return any(isinstance(step, Say) and step.stop is not None for step in steps)


def on_stage(vendor: Vendor, model: Model, finishing: str | None = None) -> LoopHarness:
    harness = LoopHarness((), info=model_info(vendor.model_id), finishing=finishing)
    harness.turn.candidate = replace(harness.turn.candidate, model=model)
    return harness


@pytest.mark.parametrize(
    ("vendor", "case"),
    [
        pytest.param(vendor, case, id=f"{name}-{vendor.name}")
        for at, (name, case) in enumerate(CASES.items())
        for vendor in of_each_wire(over(case), at)
    ],
)
async def test_an_odd_reply_is_answered_and_leaves_a_conversation_that_can_go_on(vendor: Vendor, case: Case) -> None:
    steps = case.steps(vendor) if callable(case.steps) else case.steps
    async with running(vendor, [*steps, Say(text="Yes.")]) as (service, model):
        harness = on_stage(vendor, model, case.finishing)
        ending = await run_turn(harness.turn)
        assert (ending.reason, harness.shown("answer")) == (case.reason, case.answers)
        assert case.message.strip("*") in ending.message and bool(ending.message) == bool(case.message)
        assert ending.can_continue == (case.reason == "failed")
        assert len(harness.told()) == len(case.told)
        for told, expected in zip(harness.told(), case.told, strict=True):
            assert told == expected or (expected[0] == "*" and expected[1:] in told)
        answers = [
            each.text for message in harness.conversation if message.role == "results" for each in message.results
        ]
        assert [text[: len(start)] for text, start in zip(answers, case.results, strict=True)] == case.results
        assert len(service.requests) == len(steps)
        harness.conversation.append(User(text="And?"))
        harness.conversation.check()
        done = await answer(model, request(vendor, conversation=harness.conversation, tools=harness.turn.specs))
        assert done.message.text == "Yes."


WIDER: dict[str, tuple[Any, Any]] = {
    # What a request says of its budget: the first one, and the one after a reply that was all thought.
    "anthropic": ((64_000, "medium"), (128_000, "medium")),
    "anthropic-adaptive": ((64_000, "medium"), (128_000, "medium")),
    "anthropic-budget": ((32_000, 8_192), (64_000, 8_192)),
    "gemini": ((65_536, "MEDIUM"), (65_536, "LOW")),
    "gemini-2.5": ((65_536, 8_192), (65_536, 2_048)),
    "openai": ((64_000, "medium"), (128_000, "medium")),
    "openai-5.4": ((64_000, "medium"), (128_000, "medium")),
    "openai-plain": ((16_384, None), (32_768, None)),
    "google-openai": ((65_536, "medium"), (65_536, "low")),
}


def budget(body: dict[str, Any]) -> tuple[Any, Any]:
    generation: dict[str, Any] = body.get("generationConfig", {})
    thinking: dict[str, Any] = generation.get("thinkingConfig", {})
    most = (
        body.get("max_tokens"),
        body.get("max_completion_tokens"),
        body.get("max_output_tokens"),
        generation.get("maxOutputTokens"),
    )
    effort = (
        body.get("thinking", {}).get("budget_tokens"),
        body.get("output_config", {}).get("effort"),
        body.get("reasoning_effort"),
        body.get("reasoning", {}).get("effort"),
        thinking.get("thinkingLevel"),
        thinking.get("thinkingBudget"),
    )
    return next(filter(None, most)), next(filter(None, effort), None)


@pytest.mark.parametrize("vendor", [each for each in VENDORS if each.name in WIDER], ids=WIDER)
async def test_a_reply_that_was_all_thought_is_asked_for_with_a_wider_budget(vendor: Vendor) -> None:
    thought = "" if "thoughts" in vendor.lacks else "Hm."
    async with running(vendor, [Say(thought=thought, calls=[READ]), all_thought(vendor), FINE]) as (service, model):
        harness = on_stage(vendor, model)
        assert (await run_turn(harness.turn)).reason == "completed"
        first, second, third = [budget(each.json) for each in service.requests]
    assert (first, third) == WIDER[vendor.name] and second == first
    assert (harness.shown("answer"), harness.shown("thought")) == (["Fine, it is done."], [thought] if thought else [])
    assert len(harness.conversation) == 4  # nothing of it is kept


LIMITED = [each for each in VENDORS if "limit" not in each.lacks]


@pytest.mark.parametrize("vendor", LIMITED, ids=[each.name for each in LIMITED])
async def test_it_is_never_asked_for_twice_with_the_same_budget(vendor: Vendor) -> None:
    async with running(vendor, [all_thought(vendor)] * 9) as (service, model):
        harness = on_stage(vendor, model)
        ending = await run_turn(harness.turn)
        asked = [budget(each.json) for each in service.requests]
    assert (ending.reason, ending.can_continue) == ("failed", True)
    assert len(asked) == len(set(asked)) <= 5
    at_its_limit = ("local", "deepseek", "kimi", "openrouter-plain")  # whose thinking, or largest reply, nobody knows
    assert len(asked) > 1 or vendor.name in at_its_limit


@pytest.mark.parametrize("vendor", VENDORS, ids=[each.name for each in VENDORS])
async def test_a_reply_cut_after_text_by_the_network_for_good_can_be_gone_on_from(vendor: Vendor) -> None:
    """What the user saw of the last attempt is in the conversation, and the next prompt goes on from it."""
    step = Say(text=["I looked at ", "everything and found", " this"], fault=Fault("unfinished"))
    async with running(vendor, [step] * 4 + [FINE]) as (service, model):
        harness = on_stage(vendor, model)
        assert (await run_turn(harness.turn)).can_continue
        harness.conversation.append(User(text="Go on."))
        assert (await run_turn(harness.turn)).reason == "completed"
        assert b"I looked at everything and found this" in service.requests[-1].body
    assert harness.shown("answer") == ["I looked at everything and found this", "Fine, it is done."]
