"""The pictures of a session, and the PDF documents that tools show: checked before they are recorded, stored as blobs,
and in memory as base64 while the conversation may be sent.

The limits are the narrowest of all vendors', so that a conversation can be handed to any of them at any time:
Anthropic takes 5 MiB of base64 and 8,000 pixels a side per picture, 2,000 pixels a side where a request has more than
twenty, and a hundred at most (docs "Vision"; what it refuses: `tests/support/strict_services/anthropic.py`). Gemini
takes 20 MB per request in all (docs "Image understanding"), OpenAI 50 MB and 500 pictures (docs "Images and vision").
"""

import asyncio
import base64
import binascii
import re
from collections.abc import Callable, Iterable, Sequence

from amanu.core.conversation import Conversation, Picture
from amanu.storage.journal import Journal
from amanu.system.file_kind import PDF
from amanu.system.image_info import media_type, mended, pixels, whole
from amanu_protocol.errors import AmanuError
from amanu_protocol.items import Attachment, BlobRef, ImageAttachment

MAX_BASE64 = 5 * 1024 * 1024
"""Characters of one picture."""
MAX_BYTES = MAX_BASE64 // 4 * 3
MAX_TOTAL = 12 * 1024 * 1024
"""Bytes of all pictures of a conversation: 16 MiB of base64, which leaves 4 MB for the text."""
MAX_PICTURES = 100
MAX_SIDE = 8_000
"""Pixels of the longer side."""
MANY = 20
MAX_SIDE_OF_MANY = 2_000
"""Pixels of the longer side, where a request has more than `MANY` pictures."""
MAX_NAME = 200
SHOWN_BY_TOOLS = 0.5
"""Share of the room up to which tools may show pictures: the rest is for the user's."""

_SMALLER = "Scale it down, crop it, or save it as JPEG."


class PictureLimitReached(AmanuError):
    """No further picture will ever fit into this session."""

    def __init__(
        self, message: str, location: str | None, hint: str = "Start a new session to send more pictures."
    ) -> None:
        super().__init__("invalidParams", message, hint=hint, path=location)


class Pictures:
    """One session's pictures. `waiting` returns those that the next request will carry; `queued` those of queued
    prompts: they count against the limits, but their bytes are not needed yet."""

    def __init__(
        self,
        journal: Journal,
        conversation: Conversation,
        waiting: Callable[[], Iterable[Picture]] = tuple,
        queued: Callable[[], Iterable[Picture]] = tuple,
    ) -> None:
        self._journal = journal
        self._conversation = conversation
        self._waiting = waiting
        self._queued = queued
        self._sides: dict[str, int] = {}
        """Blob id → the longer side in pixels."""
        self._shown: dict[str, Picture] = {}
        """What tools showed in this turn, by blob id: it may not be in the conversation yet."""
        self._showing = asyncio.Lock()
        """From the check for room until it is in `_shown`: parallel calls must not take the same room."""

    async def keep(self, attachments: Sequence[Attachment]) -> list[Attachment]:
        """The attachments with `blob` instead of `data` in each picture; durable on return. A picture that comes with
        `blob` (in a prompt taken back from the queue) must be one of this session's.

        Raises `AmanuError`: `invalidParams` naming the field for what no model would take, `storageError`.
        """
        stored: list[Attachment] = []
        taken: list[Picture] = []
        for index, attachment in enumerate(attachments):
            if isinstance(attachment, ImageAttachment):
                location = f"attachments.{index}"
                picture = await self.take(
                    attachment.name,
                    await self._bytes(attachment, location),
                    attachment.media_type,
                    location,
                    [*self._queued(), *taken],
                )
                taken.append(picture)
                blob = BlobRef(blob_id=picture.blob_id, size=picture.size)
                attachment = ImageAttachment(name=picture.name, media_type=attachment.media_type, blob=blob)
            stored.append(attachment)
        return stored

    async def take(
        self,
        name: str,
        data: bytes,
        claimed: str | None = None,
        location: str | None = None,
        beside: Sequence[Picture] = (),
        *,
        share: float = 1.0,
    ) -> Picture:
        """Check a picture's bytes and store them. `claimed` is the media type its sender gives, `location` the field
        it is in, `beside` the pictures that come with it, `share` what it may take of the room. Raises like `keep`."""
        name = _plain(name)
        detected = media_type(data)
        if detected is None:
            raise _bad(f"{name} is not a PNG, JPEG, GIF or WebP picture.", "Save it as PNG or JPEG.", location)
        if claimed not in (None, detected):
            raise _bad(
                f"{name} is declared as {claimed}, but its bytes are {detected}.", "Send the actual type.", location
            )
        if len(data) > MAX_BYTES:
            raise _bad(f"{name} is {len(data) / 2**20:.1f} MiB; models accept at most 3.75 MiB.", _SMALLER, location)
        data, size = data if whole(data) else mended(data), pixels(data)
        if size is None or not whole(data):
            raise _bad(f"{name} is damaged or incomplete.", "Save it again.", location)
        if max(size) > MAX_SIDE:
            raise _bad(
                f"{name} is {size[0]}×{size[1]} pixels; models accept at most {MAX_SIDE} per side.", _SMALLER, location
            )
        await self.load()
        picture = Picture(name=name, media_type=detected, blob_id="", size=len(data))
        self._must_have_room(picture, max(size), beside, location, share)
        blob = await self._journal.put_blob(data)
        await self._hold(blob.blob_id, data, max(size))
        return picture.model_copy(update={"blob_id": blob.blob_id})

    async def show(self, name: str, data: bytes) -> Picture:
        """Check and store a picture that a tool shows the model. Raises `AmanuError` like `take`."""
        async with self._showing:
            picture = await self.take(name, data, share=SHOWN_BY_TOOLS)
            self._shown[picture.blob_id] = picture
            return picture

    async def show_document(self, name: str, data: bytes, pages: int) -> Picture:
        """The same for a PDF document of so many pages, whose bytes are taken as they are."""
        name = _plain(name)
        if len(data) > MAX_BYTES:
            raise _bad(f"{name} is {len(data) / 2**20:.1f} MiB; models accept at most 3.75 MiB.", "Show less.", None)
        async with self._showing:
            await self.load()
            document = Picture(name=name, media_type=PDF, blob_id="", size=len(data), pages=pages)
            self._must_have_room(document, 0, (), None, SHOWN_BY_TOOLS)
            document = document.model_copy(update={"blob_id": (await self._journal.put_blob(data)).blob_id})
            await self._hold(document.blob_id, data, 0)
            self._shown[document.blob_id] = document
            return document

    async def attached(self, attachment: ImageAttachment, beside: Sequence[Picture]) -> Picture | None:
        """A stored attachment as a part of the conversation, its bytes in memory; None when it was never stored. Raises
        `AmanuError` when there is no more room."""
        picture = reference(attachment)
        if picture is None:
            return None
        try:
            data = await self._journal.get_blob(picture.blob_id)
        except AmanuError:
            return picture  # gone from the disk: the model is told
        await self.load()
        side = max(pixels(data) or (0,))
        self._must_have_room(picture, side, beside, None)
        await self._hold(picture.blob_id, data, side)
        return picture

    async def load(self) -> None:
        """Load the bytes of the conversation's pictures, and of those the next request will carry. A picture that is
        gone from the disk stays out; the model is told."""
        for blob_id in dict.fromkeys(
            picture.blob_id for picture in (*self._conversation.iter_pictures(), *self._waiting())
        ):
            if blob_id not in self._conversation.pictures:
                try:
                    data = await self._journal.get_blob(blob_id)
                except AmanuError:
                    continue
                await self._hold(blob_id, data, max(pixels(data) or (0,)))

    def forget(self) -> None:
        """Drop bytes from memory that are neither in the conversation nor about to be. Between turns only."""
        self._shown.clear()
        referenced = {picture.blob_id for picture in (*self._conversation.iter_pictures(), *self._waiting())}
        for blob_id in self._conversation.pictures.keys() - referenced:
            del self._conversation.pictures[blob_id]

    async def _hold(self, blob_id: str, data: bytes, side: int) -> None:
        self._sides[blob_id] = side
        encoded = await asyncio.to_thread(base64.b64encode, data)
        self._conversation.pictures[blob_id] = encoded.decode("ascii")

    async def _bytes(self, attachment: ImageAttachment, location: str) -> bytes:
        name = _plain(attachment.name)
        if attachment.data is not None:
            if len(attachment.data) > 4 * MAX_BASE64:  # decoding more would only cost time
                raise _bad(f"{name} is far too big; models accept at most 3.75 MiB.", _SMALLER, f"{location}.data")
            try:
                return await asyncio.to_thread(base64.b64decode, attachment.data, validate=True)
            except (binascii.Error, ValueError):
                raise _bad(f"The data of {name} is not base64.", "Attach it again.", f"{location}.data") from None
        if attachment.blob is None:
            raise _bad(f"{name} came without its bytes.", "Attach it again.", f"{location}.data")
        try:
            return await self._journal.get_blob(attachment.blob.blob_id)
        except AmanuError:
            raise _bad(f"{name} is not stored in this session.", "Attach it again.", f"{location}.blob") from None

    def _must_have_room(
        self, picture: Picture, side: int, beside: Sequence[Picture], location: str | None, share: float = 1.0
    ) -> None:
        others = [*self._conversation.iter_pictures(), *self._waiting(), *beside]
        sent = {other_picture.blob_id for other_picture in others}
        others += [shown for blob_id, shown in self._shown.items() if blob_id not in sent]
        longest = max([side, *(self._sides.get(other_picture.blob_id, 0) for other_picture in others)])
        if share < 1 and (
            len(others) >= MAX_PICTURES * share
            or sum(other_picture.size for other_picture in others) + picture.size > MAX_TOTAL * share
            or (len(others) >= MANY and longest > MAX_SIDE_OF_MANY)
        ):
            raise PictureLimitReached(
                f"There is no room to show {picture.name} besides the other pictures of this session.",
                location,
                "Room is freed when the conversation is compacted (/compact); until then, use what text there is.",
            )
        if len(others) >= MAX_PICTURES:
            raise PictureLimitReached(f"A session can hold at most {MAX_PICTURES} pictures.", location)
        if sum(other_picture.size for other_picture in others) + picture.size > MAX_TOTAL:
            most = MAX_TOTAL // 2**20
            raise PictureLimitReached(
                f"With {picture.name}, the pictures of this session would exceed {most} MiB.", location
            )
        if len(others) >= MANY and longest > MAX_SIDE_OF_MANY:
            side = MAX_SIDE_OF_MANY
            raise PictureLimitReached(
                f"A session can hold more than {MANY} pictures only if none exceeds {side} pixels per side.", location
            )


def reference(attachment: ImageAttachment) -> Picture | None:
    """A stored attachment as a part of the conversation; None for one that was not stored."""
    if attachment.blob is None:
        return None
    return Picture(
        name=attachment.name,
        media_type=attachment.media_type,
        blob_id=attachment.blob.blob_id,
        size=attachment.blob.size,
    )


def _plain(name: str) -> str:
    """The name on one line, without characters that could pass for our markup, and valid UTF-8."""
    plain = re.sub(r'[\x00-\x1f\x7f\u2028\u2029"<>]', " ", name).encode("utf-8", "replace").decode().strip()
    return plain[:MAX_NAME] or "picture"


def _bad(message: str, hint: str, location: str | None) -> AmanuError:
    return AmanuError("invalidParams", message, hint=hint, path=location)
