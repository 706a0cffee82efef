"""Pictures as a session takes, keeps, shows and sends them."""

import json
import os
from base64 import b64decode
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from amanu.agent.turn import REFUSED
from amanu.context.images import MAX_BYTES
from amanu.core.conversation import Picture, User
from amanu.permissions import approvals as approval
from amanu.session.sessions import open_sessions
from amanu_protocol.errors import AmanuError
from amanu_protocol.events import EventMessage
from amanu_protocol.items import Attachment, FileAttachment, ImageAttachment
from amanu_protocol.requests import BlobGetParams, PromptSendParams, PromptSteerParams, SessionCreateParams
from amanu_protocol.state import SessionState
from support.sample_images import attached, base64_of, gif, jpeg, png
from support.sample_pdf import pdf
from support.scripted_session import ScriptedSession, call, conversation, scripted_session, step, without_status
from support.session_client import Client, until
from support.strict_services.anthropic import Anthropic
from support.strict_services.http import Fault, Say, Step, ToolUse

SHOT = png(40, 30)
BAD = SHOT.replace(b"IDAT", b"IDAT\xff", 1)
BLIND = '<image name="shot.png">(this model cannot see images)</image>'


@pytest.fixture(autouse=True)
def no_guard(monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction]
    monkeypatch.setattr(approval, "GUARD_SECONDS", 0.0)


async def send(d: ScriptedSession, text: str, *attachments: Attachment, prompt_id: str = "p1") -> str:
    params = PromptSendParams(session_id="s", prompt_id=prompt_id, text=text, attachments=list(attachments))
    return (await d.session.prompts.send(params, d.client)).status


def blob_of(attachment: Attachment) -> str:
    assert isinstance(attachment, ImageAttachment)
    assert attachment.data is None and attachment.blob is not None
    return attachment.blob.blob_id


def everything_written(folder: Path) -> bytes:
    """All that the daemon wrote, but for blobs."""
    files = [path for path in folder.rglob("*") if path.parent.name != "blobs" and path.name[:5] != ".tmp-"]
    assert any(path.name == "journal.sqlite" for path in files)
    return b"".join(path.read_bytes() for path in files if path.is_file())


def told(messages: list[EventMessage]) -> str:
    return "".join(message.model_dump_json() for message in messages)


async def test_a_picture_is_kept_once_and_named_by_its_blob_everywhere(tmp_path: Path) -> None:
    async with scripted_session(tmp_path, step("I see.", expect=BLIND)) as d:
        assert await send(d, "look", attached(SHOT)) == "started"
        state = await d.ended()
        said = state.items[0]
        assert said.kind == "userMessage"
        blob_id = blob_of(said.attachments[0])
        picture = Picture(name="shot.png", media_type="image/png", blob_id=blob_id, size=len(SHOT))
        told_first = conversation(d.session)[0]
        assert isinstance(told_first, User)
        assert (without_status(told_first.text), told_first.pictures) == ("look", (picture,))
        await d.session.emit.durable()
        assert base64_of(SHOT).encode() not in everything_written(Path(os.environ["AMANU_HOME"]))
        assert base64_of(SHOT) not in told(d.client.messages)
        assert base64_of(SHOT) not in d.session.view().model_dump_json()
        # the user hears that this model was not sent it, the model that there is one (`expect`)
        notices = [item for item in state.items if item.kind == "notice"]
        assert [(each.code, each.level) for each in notices] == [("pictureNotSeen", "warning")]
        assert "shot.png" in notices[0].text
        assert [item.text for item in state.items if item.kind == "answer"] == ["I see."]


async def test_a_picture_that_viewers_show_is_sent_without_what_services_refuse(tmp_path: Path) -> None:
    damaged = SHOT[:33] + b"\0\0\0\5iCCPsRGB\0\0\0\0\0" + SHOT[33:]
    async with scripted_session(tmp_path, step("I see.")) as d:
        assert await send(d, "look", attached(damaged)) == "started"
        await d.ended()
        (blob,) = Path(os.environ["AMANU_HOME"]).rglob("blobs/*")
        assert blob.read_bytes() == SHOT


async def test_a_prompt_with_a_picture_sent_twice_is_one_prompt(tmp_path: Path) -> None:
    async with scripted_session(tmp_path, step("I see.")) as d:
        assert await send(d, "look", attached(SHOT)) == "started"
        assert await send(d, "look", attached(SHOT)) == "started"
        await d.ended()
        assert await send(d, "look", attached(b"by now something else")) == "started"
        assert len(d.session.state.items) == 3  # it said, it was told, the answer
        blobs = list(Path(os.environ["AMANU_HOME"]).rglob("blobs/*"))
        assert len(blobs) == 1


@pytest.mark.parametrize(
    ("attachment", "says", "path"),
    [
        (ImageAttachment(name="a", media_type="image/png", data="no base64!"), "not base64", "attachments.1.data"),
        (ImageAttachment(name="a", media_type="image/png"), "without its bytes", "attachments.1.data"),
        (attached(b"plain text"), "not a PNG, JPEG, GIF or WebP", "attachments.1"),
        (attached(b""), "not a PNG, JPEG, GIF or WebP", "attachments.1"),
        (attached(jpeg()), "is declared as image/png, but its bytes are image/jpeg", "attachments.1"),
        (attached(png()[:20]), "damaged", "attachments.1"),
        (attached(png()[:-5]), "incomplete", "attachments.1"),
        (attached(BAD), "damaged", "attachments.1"),
        (attached(png(8_001, 1)), "8001×1 pixels", "attachments.1"),
        (attached(png(bytes_at_least=MAX_BYTES + 1)), "3.8 MiB", "attachments.1"),
        (attached(bytes(16 * 2**20)), "far too big", "attachments.1.data"),
    ],
    ids=[
        "base64",
        "nothing",
        "text",
        "empty",
        "another type",
        "header",
        "cut off",
        "damaged",
        "pixels",
        "bytes",
        "far too big",
    ],
)
async def test_a_picture_no_model_takes_is_refused_before_anything_is_on_record(
    tmp_path: Path, attachment: ImageAttachment, says: str, path: str
) -> None:
    async with scripted_session(tmp_path, step("Fine.")) as d:
        with pytest.raises(AmanuError, match=says) as caught:
            await send(d, "look", FileAttachment(path="notes.txt"), attachment)
        assert (caught.value.kind, caught.value.data.path) == ("invalidParams", path)
        assert caught.value.data.hint
        assert d.session.state.items == [] and d.session.state.turn is None
        assert not list(Path(os.environ["AMANU_HOME"]).rglob("blobs/*"))
        assert await send(d, "then without") == "started"  # the same promptId is still free
        await d.ended()


@pytest.mark.parametrize(
    ("pictures", "says"),
    [
        ([png(width, 1) for width in range(1, 101)], "at most 100"),
        ([png(width, 1) for width in range(1, 20)] + [png(2_001, 1)], "more than 20"),
        ([png(width, 1, bytes_at_least=MAX_BYTES) for width in (1, 2, 3)], "exceed 12 MiB"),
    ],
    ids=["number", "pixels of many", "bytes"],
)
async def test_a_session_has_room_for_what_every_vendor_takes(tmp_path: Path, pictures: list[bytes], says: str) -> None:
    async with scripted_session(tmp_path, step("Many."), step("Enough.")) as d:
        await send(d, "all", *map(attached, pictures))
        await d.ended()
        with pytest.raises(AmanuError, match=says) as caught:
            await send(d, "one more", attached(png(9, bytes_at_least=MAX_BYTES)), prompt_id="p2")
        assert caught.value.data.hint == "Start a new session to send more pictures."
        assert await send(d, "no more", prompt_id="p2") == "started"
        await d.until(lambda state: state.last_turn and state.last_turn.turn_id == "turn-p2")


@pytest.mark.parametrize("text", ["see @shot.png", 'see @"my shots/a.gif"', "see"])
async def test_a_picture_file_goes_as_a_picture(tmp_path: Path, text: str) -> None:
    async with scripted_session(tmp_path, step("I see.")) as d:
        (d.root / "shot.png").write_bytes(SHOT)
        (d.root / "my shots").mkdir()
        (d.root / "my shots" / "a.gif").write_bytes(gif())
        files = [] if "@" in text else [FileAttachment(path="shot.png"), FileAttachment(path=str(d.root / "shot.png"))]
        await send(d, text, *files)
        await d.ended()
        said = conversation(d.session)[0]
        assert isinstance(said, User)
        assert without_status(said.text) == text
        name = "my shots/a.gif" if "gif" in text else "shot.png"
        assert [(each.name, each.media_type) for each in said.pictures] == [(name, f"image/{name[-3:]}")]
        blob = await d.session.pages.blob(
            BlobGetParams(session_id="s", blob_id=said.pictures[0].blob_id, encoding="base64")
        )
        assert b64decode(blob.text) == (d.root / name).read_bytes()


@pytest.mark.parametrize(
    ("path", "data", "says"),
    [
        ("big.png", png(bytes_at_least=MAX_BYTES + 1), "not attached: big.png is 3.8 MiB"),
        ("cut.png", png()[:20], "not attached: cut.png is damaged"),
        ("bad.png", BAD, "not attached: bad.png is damaged"),
        ("../out.png", SHOT, "not attached:"),
    ],
)
async def test_a_picture_file_that_cannot_go_is_said_to_be_so(
    tmp_path: Path, path: str, data: bytes, says: str
) -> None:
    async with scripted_session(tmp_path, step("I see.")) as d:
        (d.root / path).write_bytes(data)
        await send(d, "see", FileAttachment(path=path))
        await d.ended()
        said = conversation(d.session)[0]
        assert isinstance(said, User)
        assert said.pictures == ()
        assert says in said.text


@pytest.mark.parametrize("limit", [1, 2, 3, 10, 100, 1_000_000])
async def test_a_picture_is_fetched_in_pages(tmp_path: Path, limit: int) -> None:
    async with scripted_session(tmp_path, step("I see.")) as d:
        await send(d, "look", attached(SHOT))
        state = await d.ended()
        said = state.items[0]
        assert said.kind == "userMessage"
        texts: list[str] = []
        offset: int | None = 0
        while offset is not None:
            params = BlobGetParams(
                session_id="s", blob_id=blob_of(said.attachments[0]), offset=offset, limit=limit, encoding="base64"
            )
            page = await d.session.pages.blob(params)
            assert len(b64decode(page.text)) <= limit + 2
            texts.append(page.text)
            offset = page.next_offset
        assert "".join(texts) == base64_of(SHOT)


async def test_a_queued_picture_survives_a_restart(tmp_path: Path) -> None:
    asks = step("", call("run_shell_command", command="touch -c it", network=True))
    async with scripted_session(tmp_path, asks, step("Two.", expect=BLIND), step("Three.")) as d:
        await send(d, "first")
        await d.until(lambda state: state.approvals)
        assert await send(d, "second", attached(SHOT), prompt_id="p2") == "queued"
        blob_of(d.session.state.queue[0].attachments[0])
        await d.sessions.close("s")
        d.session = await d.sessions.get("s")
        d.client.state = d.session.attach(d.client, None, None).state
        blob_id = blob_of(d.session.state.queue[0].attachments[0])
        await send(d, "go on", prompt_id="p3")
        await d.until(lambda state: state.last_turn and state.last_turn.turn_id == "turn-p3")
        said = [message for message in conversation(d.session) if isinstance(message, User)][-2]
        assert [each.blob_id for each in said.pictures] == [blob_id]


async def test_the_queue_takes_no_more_pictures_than_there_is_room_for(tmp_path: Path) -> None:
    asks = step("", call("run_shell_command", command="touch -c it", network=True))
    async with scripted_session(tmp_path, asks, step("One."), step("Two.", expect=BLIND)) as d:
        await send(d, "first")
        await d.until(lambda state: state.approvals)
        big = [attached(png(width, bytes_at_least=MAX_BYTES)) for width in (1, 2, 3, 4)]
        assert await send(d, "second", *big[:2], prompt_id="p2") == "queued"
        with pytest.raises(AmanuError, match="exceed 12 MiB"):
            await send(d, "third", *big[2:], prompt_id="p3")
        assert await send(d, "third", attached(SHOT), prompt_id="p3") == "queued"
        await d.session.prompts.unqueue("p3")
        await d.answer("allow")
        await d.over("p2")


async def test_a_queued_prompt_that_never_can_start_is_given_back_and_blocks_nothing(tmp_path: Path) -> None:
    asks = step("", call("run_shell_command", command="touch -c it", network=True))
    async with scripted_session(tmp_path, asks, step("One."), step("Four."), step("Five.")) as d:
        turn_id = await d.prompt("first") or ""
        await d.until(lambda state: state.approvals)
        big = [attached(png(width, bytes_at_least=MAX_BYTES), f"{width}.png") for width in (1, 2, 3, 4)]
        await send(d, "second words", *big[:2], FileAttachment(path="notes.txt"), prompt_id="p2")
        await send(d, "third", prompt_id="p3")
        for each in big[2:]:  # files of the workspace: what they are is known only now
            (d.root / each.name).write_bytes(b64decode(each.data or ""))
        steer = PromptSteerParams(session_id="s", prompt_id="s1", turn_id=turn_id, text="see @3.png and @4.png")
        await d.session.prompts.steer(steer, d.client)
        await d.answer("allow")
        state = await d.over("p3")
        assert state.queue == []
        (notice,) = [item for item in state.items if item.kind == "notice" and item.level == "error"]
        assert notice.code == "invalidParams"
        assert "exceed 12 MiB" in notice.text and "second words\nAttached: 1.png, 2.png, notes.txt" in notice.text
        assert "second words" not in d.told()


async def test_a_prompt_taken_back_can_be_sent_again_by_its_blob(tmp_path: Path) -> None:
    asks = step("", call("run_shell_command", command="touch -c it", network=True))
    async with scripted_session(tmp_path, asks, step("One."), step("Two.", expect=BLIND)) as d:
        await send(d, "first")
        await d.until(lambda state: state.approvals)
        await send(d, "second", attached(SHOT), prompt_id="p2")
        queued = d.session.state.queue[0].attachments[0]
        await d.session.prompts.unqueue("p2")
        assert await send(d, "second, better", queued, prompt_id="p3") == "queued"
        strange = queued.model_copy(update={"blob": queued.blob.model_copy(update={"blob_id": "0" * 64})})  # pyright: ignore
        with pytest.raises(AmanuError, match="not stored in this session"):
            await send(d, "third", strange, prompt_id="p4")
        await d.answer("allow")
        await d.until(lambda state: state.last_turn and state.last_turn.turn_id == "turn-p3")
        await d.until(lambda state: state.turn is None)


async def test_a_picture_said_into_the_turn_reaches_the_model_after_the_results(tmp_path: Path) -> None:
    asks = step("", call("run_shell_command", command="touch -c it", network=True))
    async with scripted_session(tmp_path, asks, step("As shown.", expect=BLIND)) as d:
        turn_id = await d.prompt("do it") or ""
        await d.until(lambda state: state.approvals)
        params = PromptSteerParams(
            session_id="s", prompt_id="s1", turn_id=turn_id, text="like this", attachments=[attached(SHOT)]
        )
        await d.session.prompts.steer(params, d.client)
        await d.session.prompts.steer(params, d.client)  # a repeat is harmless
        await d.answer("allow")
        state = await d.ended()
        results = conversation(d.session)[2]
        assert results.role == "results"
        assert [note.name if isinstance(note, Picture) else note for note in results.notes] == ["shot.png", "like this"]
        assert [item.code for item in state.items if item.kind == "notice"] == ["pictureNotSeen"]
        assert base64_of(SHOT) not in told(d.client.messages)


async def test_a_picture_said_just_before_a_crash_is_not_lost(tmp_path: Path) -> None:
    asks = step("", call("run_shell_command", command="touch -c it", network=True))
    async with scripted_session(tmp_path, asks, step("As shown.")) as d:
        turn_id = await d.prompt("do it") or ""
        await d.until(lambda state: state.approvals)
        attachments: list[Attachment] = [attached(SHOT)]
        params = PromptSteerParams(session_id="s", prompt_id="s1", turn_id=turn_id, text="so", attachments=attachments)
        await d.session.prompts.steer(params, d.client)
        await d.sessions.close("s")
        d.session = await d.sessions.get("s")
        d.client.state = d.session.attach(d.client, None, None).state
        await d.prompt("go on", "p2")
        await d.until(lambda state: state.last_turn and state.last_turn.turn_id == "turn-p2")
        shown = conversation(d.session).iter_pictures()
        assert [each.name for each in shown] == ["shot.png"]


NOTEBOOK = json.dumps(
    {
        "cells": [
            {
                "cell_type": "code",
                "source": "1",
                "outputs": [{"output_type": "display_data", "data": {"image/png": base64_of(BAD)}}],
            }
        ],
        "nbformat": 4,
    }
).encode()


# With a model that sees ----------------------------------------------------------------------------------


class Seeing:
    """One daemon's sessions after the other, over a service that sees."""

    def __init__(self, service: Anthropic, client: Client, root: Path) -> None:
        self.service = service
        self.client = client
        self.sessions = open_sessions()
        self._made = SessionCreateParams(session_id="s", roots=[str(root)], model_id="anthropic:claude-opus-5-5")

    async def say(self, prompt_id: str, text: str, *attachments: Attachment) -> SessionState:
        """Say something, as a turn of its own; the state at its end."""
        await self.sessions.create(self._made, self.client)
        session = await self.sessions.get("s")
        params = PromptSendParams(session_id="s", prompt_id=prompt_id, text=text, attachments=list(attachments))
        await session.prompts.send(params, self.client)
        return await until(session, lambda state: state.last_turn and state.last_turn.turn_id == f"turn-{prompt_id}")

    async def restart(self) -> None:
        await self.sessions.shutdown()
        self.sessions = open_sessions()


@asynccontextmanager
async def seeing(root: Path, *script: Step) -> AsyncGenerator[Seeing]:
    service = Anthropic(script)
    environment = {**os.environ, "ANTHROPIC_API_KEY": "sk-ant-test", "ANTHROPIC_BASE_URL": await service.start()}
    s = Seeing(service, Client(environment), root)
    try:
        yield s
    finally:
        await s.sessions.shutdown()
        await service.stop()
    assert service.refused == [] and service.lint == []


def pictures_in(body: dict[str, Any]) -> list[str]:
    blocks = [block for message in body["messages"] for block in message["content"]]
    blocks += [inner for block in blocks if isinstance(block.get("content"), list) for inner in block["content"]]
    return [block["source"]["data"] for block in blocks if block["type"] in ("image", "document")]


async def test_a_resumed_session_sends_the_same_bytes(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("text\n")
    (tmp_path / "file.jpg").write_bytes(jpeg())
    reads = Say(thought="Hm.", calls=[ToolUse("read_file", {"path": "notes.txt"})])
    async with seeing(tmp_path, reads, Say(text="One."), Say(text="Two.")) as s:
        state = await s.say("p1", "see @file.jpg", attached(SHOT))
        assert not [item for item in state.items if item.kind == "notice"]
        await s.restart()
        (tmp_path / "file.jpg").write_bytes(jpeg(9, 9))  # what was seen stays what was seen
        await s.say("p2", "and?")
    _, before, after = s.service.requests
    assert pictures_in(before.json) == pictures_in(after.json) == [base64_of(SHOT), base64_of(jpeg())]
    sent, again = (
        each.body.replace(b',"cache_control":{"type":"ephemeral","ttl":"1h"}', b"") for each in (before, after)
    )
    assert again.startswith(sent.removesuffix(b"]}"))


async def test_what_read_file_shows_is_seen_kept_and_named_to_the_user(tmp_path: Path) -> None:
    (tmp_path / "shot.png").write_bytes(SHOT)
    (tmp_path / "paper.pdf").write_bytes(pdf("One."))
    reads = Say(calls=[ToolUse("read_file", {"path": path}) for path in ("shot.png", "paper.pdf")])
    async with seeing(tmp_path, reads, Say(text="One."), Say(text="Two.")) as s:
        state = await s.say("p1", "see")
        outputs = [item.output for item in state.items if item.kind == "toolCall"]
        assert outputs == ["picture 40×30 PNG", "PDF, 1 of 1 page"]
        await s.restart()
        (tmp_path / "shot.png").write_bytes(png(9, 9))
        await s.say("p2", "and?")
    _, before, after = s.service.requests
    assert pictures_in(before.json) == pictures_in(after.json) == [base64_of(SHOT), base64_of(pdf("One."))]
    assert base64_of(SHOT).encode() not in everything_written(Path(os.environ["AMANU_HOME"]))


async def test_a_picture_that_is_gone_from_the_disk_is_told(tmp_path: Path) -> None:
    async with seeing(tmp_path, Say(text="One."), Say(text="Two.")) as s:
        await s.say("p1", "see", attached(SHOT))
        await s.restart()
        for blob in Path(os.environ["AMANU_HOME"]).rglob("blobs/*"):
            blob.unlink()
        await s.say("p2", "and?")
    assert b"this image is lost" in s.service.requests[1].body


@pytest.mark.parametrize(
    ("name", "data", "says"),
    [
        ("bad.png", BAD, "bad.png is damaged"),
        ("cut.gif", gif()[:-1], "cut.gif is damaged"),
        ("end.pdf", pdf("One.") + b"\n" * 5_000, "PDF, pages 1–1 of 1"),
        ("bad.ipynb", NOTEBOOK, "[output 1.1 is not shown: bad.ipynb output 1.1 is damaged"),
    ],
)
async def test_a_damaged_file_that_the_model_reads_ends_no_session(
    tmp_path: Path, name: str, data: bytes, says: str
) -> None:
    (tmp_path / name).write_bytes(data)
    reads = Say(calls=[ToolUse("read_file", {"path": name})])
    async with seeing(tmp_path, reads, Say(text="One."), Say(text="Two.")) as s:
        await s.say("p1", "read it")
        state = await s.say("p2", "go on")
        assert state.last_turn is not None and state.last_turn.reason == "completed"
    assert says in s.service.requests[1].body.decode()


REFUSES = Fault("status", status=400, message="Could not process image")


@pytest.mark.parametrize("name", ["file.jpg", "paper.pdf"])
@pytest.mark.parametrize("text", ["read it", "see @file.jpg"])
async def test_what_a_service_refuses_to_see_is_taken_out_and_named(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / "file.jpg").write_bytes(jpeg())
    (tmp_path / "paper.pdf").write_bytes(pdf("One."))
    reads = [Say(calls=[ToolUse("read_file", {"path": name})]), REFUSES]
    first = [REFUSES] if "@" in text else []
    async with seeing(tmp_path, *first, *reads, Say(text="One."), Say(text="Two.")) as s:
        state = await s.say("p1", text, attached(SHOT))
        assert state.last_turn is not None and state.last_turn.reason == "completed"
        notices = [(item.code, item.text) for item in state.items if item.kind == "notice"]
        sent = ["shot.png, file.jpg"] if first else []
        assert notices == [("pictureRefused", f"{REFUSED} {names}.") for names in [*sent, name]]
        await s.restart()
        state = await s.say("p2", "and?")
        assert state.last_turn is not None and state.last_turn.reason == "completed"
    *_, before, after = s.service.requests
    shown = [] if first else [base64_of(SHOT)]  # what was replied to stays: prefixes do not change
    assert pictures_in(before.json) == pictures_in(after.json) == shown
    assert f'name=\\"{name}\\">(the service refused this' in before.body.decode()
    sent_before, sent_after = (
        each.body.replace(b',"cache_control":{"type":"ephemeral","ttl":"1h"}', b"") for each in (before, after)
    )
    assert sent_after.startswith(sent_before.removesuffix(b"]}"))


@pytest.mark.parametrize(
    ("answered", "message"),
    [(True, "Could not process image"), (False, "tools.0: no such field")],
    ids=["replied to before", "about something else"],
)
async def test_what_is_not_known_to_be_refused_stays(tmp_path: Path, answered: bool, message: str) -> None:
    answer = [Say(text="I see.")] if answered else []
    async with seeing(tmp_path, *answer, Fault("status", status=400, message=message), Say(text="Two.")) as s:
        if answered:
            await s.say("p0", "look", attached(SHOT))
        state = await s.say("p1", "look", attached(SHOT))
        assert state.last_turn is not None and state.last_turn.reason == "failed"
        await s.say("p2", "again")
    assert set(pictures_in(s.service.requests[-1].json)) == {base64_of(SHOT)}


async def test_a_model_taken_later_sees_what_the_first_could_not(tmp_path: Path) -> None:
    script = tmp_path / "script.json"
    script.write_text(json.dumps([step("I hear.", expect=BLIND)]))
    blind = SessionCreateParams(session_id="s", roots=[str(tmp_path)], model_id=f"scripted:{script}")
    async with seeing(tmp_path, Say(text="I see.")) as s:
        await s.sessions.create(blind, s.client)
        state = await s.say("p1", "look", attached(SHOT))
        assert [item.text for item in state.items if item.kind == "answer"] == ["I hear."]
        await (await s.sessions.get("s")).set_model("anthropic:claude-opus-5-5", s.client)
        await s.say("p2", "and now?")
    assert pictures_in(s.service.requests[0].json) == [base64_of(SHOT)]
