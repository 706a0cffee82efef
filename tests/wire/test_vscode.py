"""What only models of VS Code's have: offers that come and go, its errors, estimated counts, the system prompt as a
message. What they share with all others is in the tests over vendors."""

from dataclasses import replace
from typing import Any

import pytest

from amanu.core.conversation import Conversation, Picture, User
from amanu.core.model import (
    AuthFailed,
    ContextTooLong,
    ModelError,
    ModelNotFound,
    Overloaded,
    QuotaExhausted,
    StreamBroken,
    Unreachable,
)
from amanu.frontends.lsp.jsonrpc import ClientError
from amanu.frontends.lsp.model_host import EditorModelHost
from amanu.models.offered import OfferedModels
from amanu.models.vscode import VSCodeModel
from amanu_protocol.errors import AmanuError
from amanu_protocol.requests import ModelPartParams, ModelRunParams, RunTextPart
from support.sample_images import base64_of, png
from support.strict_services.http import Say, ToolUse
from support.strict_services.vscode import MODELS, failed
from support.vendors import VENDORS, Vendor, answer, request, results, running

GPT = "vscode:copilot/gpt-5"


@pytest.fixture
def vendor() -> Vendor:
    return next(vendor for vendor in VENDORS if vendor.name == "vscode")


def offered(answered: Any) -> VSCodeModel:
    """A model whose editor answers every request so, or raises it."""

    async def ask(method: str, params: Any) -> Any:
        if isinstance(answered, Exception):
            raise answered
        return answered

    models = OfferedModels()
    models.put(EditorModelHost(ask), MODELS)
    return VSCodeModel(models)


ERRORS: list[tuple[dict[str, str], type[ModelError], str]] = [
    (failed("Language model cannot be used.", "notAllowed"), AuthFailed, "choose Allow when VS Code asks"),
    (failed("Your premium requests are used up.", "blocked"), QuotaExhausted, "Your premium requests are used up"),
    (failed("", "notFound"), ModelNotFound, "GitHub Copilot no longer has GPT-5"),
    (failed("Request Failed: 400 model_not_supported"), ModelNotFound, "model_not_supported"),
    (failed("Request Failed: 403 not in your plan"), AuthFailed, "does not let you use GPT-5: .*not in your plan"),
    (failed("Request Failed: 500 Internal"), Overloaded, "cannot answer right now"),
    (failed("Message exceeds token limit."), ContextTooLong, "does not fit"),
    (failed("Something else"), Overloaded, "Something else"),
    ({"error": "new in a later version"}, Overloaded, "answer is invalid"),
]


@pytest.mark.parametrize(("answered", "error", "words"), ERRORS, ids=[row[0].get("message") or "-" for row in ERRORS])
async def test_what_vs_code_says_went_wrong_is_a_typed_error(
    vendor: Vendor, answered: dict[str, str], error: type[ModelError], words: str
) -> None:
    with pytest.raises(error, match=words):
        await answer(offered(answered), request(vendor))


async def test_nobody_offers_it_any_more(vendor: Vendor) -> None:
    with pytest.raises(Unreachable, match=r"no open VS Code window offers it\. Open the folder in VS Code"):
        await answer(VSCodeModel(OfferedModels()), request(vendor))


async def test_the_window_is_closed_in_the_middle_of_a_reply(vendor: Vendor) -> None:
    with pytest.raises(StreamBroken, match=r"was closed, or is reloading\. Open the folder"):
        await answer(offered(ClientError("The client has disconnected.")), request(vendor))


async def test_the_window_that_offered_last_is_asked_and_another_when_it_is_gone(vendor: Vendor) -> None:
    models = OfferedModels()

    def host(name: str) -> EditorModelHost:
        async def ask(method: str, params: ModelRunParams) -> Any:
            hosts[name].add_part(ModelPartParams(run_id=params.run_id, part=RunTextPart(text=name)))
            return {"error": None}

        return EditorModelHost(ask)

    hosts = {name: host(name) for name in ("first", "second")}
    for each in hosts.values():
        models.put(each, MODELS)
    model = VSCodeModel(models)
    assert (await answer(model, request(vendor))).message.text == "second"
    models.remove(hosts["second"])
    assert (await answer(model, request(vendor))).message.text == "first"
    assert [info.model_id for info in models.list()] == [GPT, "vscode:copilot/claude-sonnet-4.5"]
    models.put(hosts["first"], MODELS[1:])
    with pytest.raises(AmanuError, match="no open VS Code window offers it") as refused:
        models.info(GPT)
    assert refused.value.data.hint == "Open the folder in VS Code again, or choose another model."


def test_what_is_known_of_a_model() -> None:
    models = OfferedModels()

    async def ask(method: str, params: Any) -> Any:
        raise AssertionError("nothing is asked to know it")

    models.put(EditorModelHost(ask), [MODELS[0].model_copy(update={"name": "GPT\u202e-5"})])
    info = models.info(GPT)
    assert (info.name, info.context_window, info.input_price) == ("GPT<U+202E>-5 · GitHub Copilot", 128_000, None)
    assert (info.available, info.efforts, info.facts_from) == (True, [], "billed by GitHub Copilot")
    assert models.titles == {"vscode:copilot": "GitHub Copilot"}


async def test_the_system_prompt_is_the_users_first_message(vendor: Vendor) -> None:
    async with running(vendor, [Say(text="Hi.")]) as (service, model):
        await answer(model, request(vendor))
        first, second = service.requests[0].json["messages"]
    assert (first["role"], first["parts"]) == ("user", [{"kind": "text", "text": "You help."}])
    assert (second["role"], second["parts"]) == ("user", [{"kind": "text", "text": "Hello."}])


async def test_tokens_are_estimated(vendor: Vendor) -> None:
    async with running(vendor, [Say(text="a" * 400), Say(text="Hi.")]) as (_, model):
        conversation = Conversation([User(text="b" * 4_000)])
        first = await answer(model, request(vendor, conversation=conversation))
        conversation.append(first.message)
        conversation.append(User(text="And?"))
        second = await answer(model, request(vendor, conversation=conversation))
    assert 1_000 < first.usage.input < 1_200 and first.usage.output == 100
    assert 100 <= second.usage.input - first.usage.input <= 102


async def test_ids_of_calls_go_back_as_they_came_and_are_never_used_twice(vendor: Vendor) -> None:
    call = ToolUse("read_file", {"path": "a"}, "call_0")  # some providers count anew in each reply
    async with running(vendor, [Say(calls=[call, call]), Say(calls=[call]), Say(text="Done.")]) as (service, model):
        conversation = Conversation([User(text="Hello.")])
        while (done := await answer(model, request(vendor, conversation=conversation))).message.calls:
            conversation.append(done.message)
            conversation.append(results(done.message, "text"))
        parts = [part for message in service.requests[-1].json["messages"] for part in message["parts"]]
    sent = [part["callId"] for part in parts if part["kind"] == "call"]
    assert sent[0] == "call_0" and len(set(sent)) == 3
    assert sent == [part["callId"] for part in parts if part["kind"] == "result"]


async def test_a_model_that_the_user_says_can_see_is_shown_pictures(vendor: Vendor) -> None:
    picture = Picture(name="shot.png", media_type="image/png", blob_id="p", size=len(png()))
    conversation = Conversation([User(text="Look.", pictures=(picture,))])
    conversation.pictures = {"p": base64_of(png())}
    asked = request(vendor, conversation=conversation)
    async with running(vendor, [Say(text="I see.")]) as (service, model):
        await answer(model, replace(asked, model=asked.model.model_copy(update={"images": True})))
        kinds = [part["kind"] for part in service.requests[0].json["messages"][-1]["parts"]]
    assert kinds == ["text", "image", "text", "text"]
