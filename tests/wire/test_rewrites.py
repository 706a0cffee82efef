"""What earlier messages become (masked, compacted, moved to other models and back) and what that costs of the thinking
after them: nothing before the change, all behind it where thinking is bound to what it came after."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, cast

from amanu.core.conversation import Conversation, Picture, Results, User
from amanu.core.model import Model
from amanu.core.model_families import model_info
from support.sample_images import base64_of, png
from support.strict_services.http import Say, Service, ToolUse
from support.vendor_sweeps import over_cases, over_vendors
from support.vendors import TOOLS, Vendor, answer, request, results, running

READ = ToolUse("read_file", {"path": "a.py"})
GREP = ToolUse("grep", {"pattern": "x"})
PICTURE = Picture(name="shot.png", media_type="image/png", blob_id="p", size=len(png()))


@dataclass
class Talk:
    """A conversation with one model, and what its requests have besides."""

    vendor: Vendor
    service: Service
    model: Model
    conversation: Conversation
    besides: dict[str, Any] = field(default_factory=dict[str, Any])

    async def say(self, say: Say, model: str | None = None) -> None:
        self.service.script([say])
        asked = request(self.vendor, conversation=self.conversation, **self.besides)
        done = await answer(self.model, replace(asked, model=model_info(model)) if model else asked)
        self.conversation.append(done.message)
        if done.message.calls:
            self.conversation.append(results(done.message, "a long text", "another"))


# The conversation when it is rewritten: 0 user (a picture) · 1 calls · 2 results · 3 answer · 4 user · 5 calls ·
# 6 results · 7 calls · 8 results. All replies (1, 3, 5, 7) think.

Rewrite = Callable[[Talk], Any]


def _messages(talk: Talk) -> list[Any]:
    """To be rewritten."""
    talk.conversation.rewrites += 1
    return talk.conversation._messages  # pyright: ignore[reportPrivateUsage]


def _mask(at: int) -> Rewrite:
    def rewrite(talk: Talk) -> None:
        old = cast("Results", talk.conversation[at])
        masked = tuple(each.model_copy(update={"text": "(masked)"}) for each in old.results)
        _messages(talk)[at] = Results(results=masked, notes=old.notes)

    return rewrite


def _compact(first: int) -> Rewrite:
    """All before message `first` becomes one of the user."""

    def rewrite(talk: Talk) -> None:
        _messages(talk)[:first] = [User(text="What happened so far: much.")]

    return rewrite


def _besides(**changed: Any) -> Rewrite:
    return lambda talk: talk.besides.update(changed)


def _resume(talk: Talk) -> None:
    old = talk.conversation
    talk.conversation = Conversation([type(each).model_validate_json(each.model_dump_json()) for each in old])
    talk.conversation.pictures = dict(old.pictures)


def _lose_the_picture(talk: Talk) -> None:
    _resume(talk)
    talk.conversation.pictures.clear()


async def _elsewhere(talk: Talk) -> None:
    """Another model of the vendor says something in between."""
    other = {
        "anthropic": "claude-sonnet-4-6",
        "gemini": "gemini-3.8-flash",
        "google-openai": "gemini-3.8-flash",
        "openai": "gpt-6.1-terra",
        "deepseek": "deepseek-v4-pro",
        "moonshot": "kimi-k2.7-code",
        "vscode": "copilot/claude-sonnet-4.5",
    }
    vendor = talk.vendor.model_id.partition(":")[0]
    await talk.say(Say(thought="I, too.", calls=[GREP]), model=f"{vendor}:{other.get(vendor, 'another')}")


REWRITES: dict[str, tuple[Rewrite, list[int]]] = {
    # What is done to it → the replies that keep their thinking where it is bound; what is gone counts as not kept.
    "nothing": (lambda talk: None, [1, 3, 5, 7]),
    "resumed": (_resume, [1, 3, 5, 7]),
    "a note after the last results": (lambda talk: talk.conversation.add_notes("Hurry."), [1, 3, 5, 7]),
    "an old result masked": (_mask(2), [1]),
    "a result of this loop masked": (_mask(6), [1, 3, 5]),
    "the last result masked": (_mask(8), [1, 3, 5, 7]),
    "compacted, the rest begins with calls": (_compact(5), []),
    "compacted, the rest begins with the last calls": (_compact(7), []),
    "compacted, the rest begins with the user": (_compact(4), []),
    "compacted, the rest begins with an answer": (_compact(3), []),
    "all compacted": (_compact(9), []),
    "another system prompt": (_besides(system="You help, and know the time."), []),
    "another tool list": (_besides(tools=TOOLS[::-1]), []),
    "another model in between": (_elsewhere, [1, 3, 5, 7]),
    "the picture lost": (_lose_the_picture, []),
}


@over_cases("rewrite, kept", REWRITES)
async def test_a_conversation_can_be_rewritten_between_steps(vendor: Vendor, rewrite: Rewrite, kept: list[int]) -> None:
    async with running(vendor, []) as (service, model):
        talk = await _begun(vendor, service, model)
        replies = {at: talk.conversation[at] for at in (1, 3, 5, 7)}
        if (more := rewrite(talk)) is not None:
            await more
        await talk.say(Say(thought="On.", text="I go on.", calls=[READ, GREP]))
        await talk.say(Say(thought="Done.", text="Done."))
        if vendor.column.startswith("Claude"):
            unbound = "binding" in vendor.lacks
            there = [at for at, reply in replies.items() if _place(talk, reply) is not None]
            thinking = [at for at in there if _opens_with_thinking(service, talk, replies[at])]
            assert thinking == (there if unbound else kept)
            if vendor.name == "anthropic" or rewrite is not _elsewhere:  # whoever budgets does not think there
                assert service.requests[-1].json["messages"][-2]["content"][0]["type"] == "thinking"


async def _begun(vendor: Vendor, service: Service, model: Model) -> Talk:
    conversation = Conversation([User(text="Hello.", pictures=(PICTURE,))])
    conversation.pictures = {"p": base64_of(png())}
    talk = Talk(vendor, service, model, conversation)
    await talk.say(Say(thought="Hm.", text="I look.", calls=[READ, GREP]))
    await talk.say(Say(thought="Aha.", text="This."))
    conversation.append(User(text="More."))
    await talk.say(Say(thought="More?", calls=[READ]))
    await talk.say(Say(thought="More!", calls=[READ, GREP]))
    return talk


def _place(talk: Talk, reply: Any) -> int | None:
    """Where the reply is among those of the conversation; it may have been resumed."""
    replies = [each for each in talk.conversation if each.role == "assistant"]
    return next((at for at, each in enumerate(replies) if each == reply), None)


def _opens_with_thinking(service: Service, talk: Talk, reply: Any) -> bool:
    """In the last request."""
    sent = [each for each in service.requests[-1].json["messages"] if each["role"] == "assistant"]
    at = _place(talk, reply)
    assert at is not None
    return sent[at]["content"][0]["type"] == "thinking"


@over_vendors("binding")
async def test_thinking_that_is_bound_is_kept_before_a_rewrite_and_made_anew_after(vendor: Vendor) -> None:
    """Of each reply: does it think, in the request after."""
    async with running(vendor, []) as (service, model):
        talk = await _begun(vendor, service, model)
        seen: list[str] = []
        for masked in (6, 2, 2):
            _mask(masked)(talk)
            await talk.say(Say(thought="On.", calls=[READ]))
            replies = [each for each in service.requests[-1].json["messages"] if each["role"] == "assistant"]
            seen.append("".join("T" if each["content"][0]["type"] == "thinking" else "-" for each in replies))
    assert seen == ["TTT-", "T----", "T----T"]  # the last rewrite changes nothing
