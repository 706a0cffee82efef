"""Whatever a conversation has been through, no service refuses it: any replies of any models, any results, notes and
rewrites, in any order. Without the sockets and SDKs in between, which other tests have: this one is about thousands of
requests."""

import asyncio
import itertools
import json
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from amanu.core.conversation import Assistant, Conversation, Masked, Picture, Result, Results, SystemText, User
from amanu.core.model import ReplyCompleted, Request
from amanu.models import anthropic_reply, gemini_reply, openai_reply, responses_reply
from amanu.models.anthropic_request import RequestBodies
from amanu.models.gemini import GeminiModel
from amanu.models.openai import OpenAIModel
from amanu.models.openai_compatible import OpenAICompatibleModel
from amanu.models.openai_responses import ResponsesModel
from amanu.models.vscode import VSCodeModel
from support.sample_images import base64_of, png
from support.strict_services.http import Received, Say, ToolUse
from support.strict_services.vscode import VSCode
from support.sweeps import examples
from support.vendors import KEY, TOOLS, VENDORS, Vendor, answer, request

PICTURE = Picture(name="shot.png", media_type="image/png", blob_id="p", size=len(png()))


@dataclass
class Talk:
    """A conversation among all models."""

    conversation: Conversation
    besides: dict[str, Any] = field(default_factory=dict[str, Any])
    numbers: Iterator[int] = field(default_factory=itertools.count)
    """For the texts of replies: after a compaction a service knows a reply of its own by its text only."""

    @property
    def messages(self) -> list[Any]:
        """To be rewritten."""
        self.conversation.rewrites += 1
        return self.conversation._messages  # pyright: ignore[reportPrivateUsage]


@dataclass(frozen=True)
class Reply:
    """One of the models answers; results follow its calls."""

    vendor: int
    say: Say
    results: tuple[str, ...]
    """Of each call: "well", "error", "blank", "fields", "picture"; "cut" for all if it is the first."""


Happening = tuple[str, Any]


def happen(talk: Talk, name: str, what: Any) -> None:
    """What is no reply."""
    conversation = talk.conversation
    match name:
        case "prompt":
            conversation.append(User(text=what, pictures=(PICTURE,) if what == "Look." else ()))
        case "status":
            conversation.append(User(text=what, status="Mode: plan."))
        case "statusNote":
            conversation.add_notes(SystemText(text="Mode: ask.", status=True), what)
        case "userCall":
            conversation.append(User(text="! git status"))
            conversation.add_notes(SystemText(text=what))
        case "note":
            conversation.add_notes(*([PICTURE, what] if what == "Look." else [what]))
        case "mask":
            at = what % len(talk.messages)
            if isinstance(old := talk.messages[at], Results):
                conversation.mask(Masked(texts={each.call_id: "(masked)" for each in old.results}))
        case "compact":
            first = what % (len(talk.messages) + 1)
            if first == len(talk.messages) or not isinstance(talk.messages[first], Results):
                talk.messages[:first] = [User(text="What happened so far: much.")]
        case "resume":
            talk.conversation = Conversation(
                [type(each).model_validate_json(each.model_dump_json()) for each in conversation]
            )
            talk.conversation.pictures = {"p": base64_of(png())} if what else {}
        case _:
            talk.besides = {"system": what} if name == "system" else {"tools": TOOLS[::what]}


CALL = st.sampled_from([ToolUse("read_file", {"path": "a"}), ToolUse("grep", {"pattern": "ü"}), ToolUse("made_up", {})])


@st.composite
def replies(draw: st.DrawFn) -> Reply:
    calls = draw(st.lists(CALL, max_size=3))
    text = draw(st.sampled_from(["", "So.", " \n", "Another."]))
    stop = draw(st.sampled_from([None, None, None, "outputLimit"]))
    say = Say(
        thought=draw(st.sampled_from(["", "Hm."])),
        redacted=draw(st.sampled_from([(), ("SECRET",)])),
        text=text if text.strip() or calls or stop else "So.",
        calls=calls,
        stop=stop,
    )
    kinds = st.sampled_from(["well", "error", "blank", "fields", "picture", "cut"])
    return Reply(draw(st.integers(0, len(VENDORS) - 1)), say, tuple(draw(st.tuples(kinds, kinds, kinds))))


HAPPENINGS = st.one_of(
    st.tuples(st.just("reply"), replies()),
    st.tuples(st.just("reply"), replies()),
    st.tuples(
        st.sampled_from(["prompt", "note", "status", "statusNote", "userCall"]),
        st.sampled_from(["Go on.", "Look.", " "]),
    ),
    st.tuples(st.sampled_from(["mask", "compact"]), st.integers(0, 9)),
    st.tuples(st.just("resume"), st.booleans()),
    st.tuples(st.just("system"), st.sampled_from(["You help.", "You help much."])),
    st.tuples(st.just("tools"), st.sampled_from([1, -1])),
)


class Line:
    """What goes between one vendor's model and its strict service."""

    def __init__(self, vendor: Vendor) -> None:
        self.vendor = vendor
        self.service = vendor.service([])
        self.model: Any = vendor.model(KEY, "http://127.0.0.1:9")
        self.bodies = RequestBodies()

    def exchange(self, asked: Request, say: Say) -> ReplyCompleted:
        """The service must take the request, and says it."""
        if isinstance(self.service, VSCode):
            return asyncio.run(_run_in_vscode(self.service, asked, say))
        name = asked.model.model_id.partition(":")[2]
        authorization = {} if "key" in self.vendor.lacks else {"authorization": f"Bearer {KEY}"}
        headers = {**authorization, "content-type": "application/json", "x-goog-api-key": KEY, "anthropic-version": "1"}
        path, query, prefix = "/v1/chat/completions", "", ""
        if isinstance(self.model, GeminiModel):
            path, query = f"/v1beta/models/{name}:streamGenerateContent", "alt=sse"
            body = self.model._body(asked)  # pyright: ignore[reportPrivateUsage]
        elif isinstance(self.model, OpenAICompatibleModel):
            body = self.model._body(asked, True)  # pyright: ignore[reportPrivateUsage]
        elif isinstance(self.model, OpenAIModel | ResponsesModel):
            path = "/v1/responses"
            responses = self.model if isinstance(self.model, ResponsesModel) else self.model._models[0]  # pyright: ignore[reportPrivateUsage]
            body = responses._body(asked)  # pyright: ignore[reportPrivateUsage]
        else:
            path = "/v1/messages"
            body, prefix = self.bodies.body(asked)
        sent = Received("POST", path, query, headers, body, 0.0)
        refusal = self.service.check(sent)
        assert refusal is None, refusal
        assert self.service.lint == []
        data = [event.partition(b"data: ")[2] for event in self.service.events(say, sent)]
        chunks = [json.loads(each) for each in data if not each.startswith(b"[DONE]")]
        if isinstance(self.model, GeminiModel):
            gemini = gemini_reply.GeminiReply(asked)
            for chunk in chunks:
                list(gemini.add(chunk))
            return gemini.done()
        if isinstance(self.model, OpenAICompatibleModel):
            compatible = openai_reply.OpenAIReply(asked, "test")
            for chunk in chunks:
                list(compatible.add(chunk))
            return compatible.done()
        if isinstance(self.model, OpenAIModel | ResponsesModel):
            responses = responses_reply.ResponsesReply(asked, "test")
            for chunk in chunks:
                list(responses.add(chunk))
            return responses.done()
        anthropic = anthropic_reply.AnthropicReply(name, prefix)
        for chunk in chunks:
            anthropic.add(chunk)
        return anthropic.done()


async def _run_in_vscode(service: VSCode, asked: Request, say: Say) -> ReplyCompleted:
    await service.start()
    service.script([say])
    done = await answer(VSCodeModel(service.offered), asked)
    await service.stop()
    assert (service.refused, service.lint) == ([], [])
    return done


@settings(max_examples=examples(150, 25), deadline=None)
@given(happenings=st.lists(HAPPENINGS, max_size=12))
def test_no_service_refuses_what_a_conversation_became(happenings: list[Happening]) -> None:
    lines = [Line(vendor) for vendor in VENDORS]
    talk = Talk(Conversation([User(text="Hello.", pictures=(PICTURE,))]))
    talk.conversation.pictures = {"p": base64_of(png())}
    everyone = [("reply", Reply(at, Say(text="End."), ())) for at in range(len(VENDORS))]
    for name, what in [*happenings, *everyone]:
        if name == "reply":
            _reply(talk, lines[what.vendor], what)
        else:
            happen(talk, name, what)


def _reply(talk: Talk, line: Line, reply: Reply) -> None:
    talk.conversation.check()
    text = reply.say.text
    assert isinstance(text, str)
    say = replace(reply.say, text=f"{text} {next(talk.numbers)}" if text.strip() else text)
    said = line.exchange(request(line.vendor, conversation=talk.conversation, **talk.besides), say).message
    if not said.parts:
        return
    talk.conversation.append(said)
    if said.calls and (said.cut or reply.results[0] == "cut"):
        talk.conversation.close_calls("Not run: the reply was cut.")
    elif said.calls:
        talk.conversation.append(_results(said, reply.results))


def _results(said: Assistant, kinds: tuple[str, ...]) -> Results:
    texts = {"error": "No such file.", "blank": " ", "cut": "Not run."}
    made = (
        Result(
            call_id=call.call_id,
            tool=call.tool,
            text=texts.get(kind, "text"),
            is_error=kind in ("error", "cut"),
            fields={"exit_code": 0, "stdout": "ü"} if kind == "fields" else {},
            pictures=(PICTURE,) if kind == "picture" else (),
        )
        for call, kind in zip(said.calls, itertools.cycle(kinds), strict=False)
    )
    return Results(results=tuple(made))
