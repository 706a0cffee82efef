"""The conversation as the model sees it, and its one invariant.

Every tool call has exactly one result before the next request goes out, in call order (`Conversation.check`). What the
user sees of a session is another fold of the journal; this one is made of the private parts of its records (`Entry`).
"""

import json
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue, TypeAdapter


class Part(BaseModel):
    """The base of everything in a conversation."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Text(Part):
    kind: Literal["text"] = "text"
    text: str


class Thinking(Part):
    """The model's reasoning in readable form. What a vendor wants back is in `Native`."""

    kind: Literal["thinking"] = "thinking"
    text: str


class Call(Part):
    """A tool call. `call_id` is ours and unique in the session. `arguments` is what the model wrote: an object, or the
    raw text when that was no JSON object (validation then fails, and the model is told)."""

    kind: Literal["call"] = "call"
    call_id: str
    tool: str
    arguments: dict[str, JsonValue] | str


class Picture(Part):
    """A picture, or a PDF document, by reference: its bytes are in the session's blobs, and in `Conversation.pictures`
    while they are to be sent."""

    kind: Literal["picture"] = "picture"
    name: str
    """Name for the user and the model: a file's path, or "Pasted image"."""
    media_type: str
    blob_id: str
    size: int
    """Bytes."""
    pages: int = 1
    """Of a PDF document."""
    refused: bool = False
    """A service refused it: the model is told so in its place."""


class Result(Part):
    """The answer to a call, for the model."""

    kind: Literal["result"] = "result"
    call_id: str
    tool: str
    text: str
    is_error: bool = False
    fields: dict[str, JsonValue] = {}
    """The answer by name (`exit_code`, `stdout` …), sent as an object instead of `text`, in this order."""
    pictures: tuple[Picture, ...] = ()
    """What the model is shown with it."""
    known_files: dict[str, tuple[str | None, str]] = {}
    """Files the model has seen since the previous result, so that a later daemon can tell when they have changed.
    Absolute path → (digest of the text, None for no file; id of the call that showed it, or "")."""

    @property
    def sent_text(self) -> str:
        """What is sent of it as text: the fields as JSON where there are any."""
        return json.dumps(self.fields, ensure_ascii=False, separators=(",", ":")) if self.fields else self.text

    def amended(self, note: str) -> "Result":
        """With a further note for the model."""
        fields = self.fields
        if fields:
            fields = {**fields, "notes": "\n\n".join(filter(None, (str(fields.get("notes", "")), note)))}
        return self.model_copy(update={"text": "\n\n".join(filter(None, (self.text, note))), "fields": fields})


class Native(Part):
    """A reply exactly as its vendor must get it back: blocks, signatures, ids.

    It is used only when the next request goes to the same `wire` and `model`; any other translator builds the message
    from the neutral parts. `call_ids` maps the vendor's call ids to ours, in call order.
    """

    wire: str
    """Name of the translator that wrote it: "anthropic", "gemini", "openai-compatible"."""
    model: str
    blocks: JsonValue
    call_ids: dict[str, str] = {}


class SystemText(Part):
    """What the daemon says to the model in its own name: a nudge, guidance, a summary; never the user's words."""

    kind: Literal["systemText"] = "systemText"
    text: str
    status: bool = False
    """It says how the session is run, and nothing that comes from the workspace: a vendor may get it with the weight of
    the system prompt (`ModelFamily.status_role`)."""

    def __str__(self) -> str:
        return self.text


Note = str | Picture | SystemText
"""What the model is sent beside results: the user's words, their pictures, the daemon's own words."""


class User(Part):
    """A message from the user, or from the daemon in their place (`from_system`). Pictures come before the text."""

    role: Literal["user"] = "user"
    text: str
    pictures: tuple[Picture, ...] = ()
    from_system: bool = False
    status: str = ""
    """How the session is run, said by the daemon after the user's words: see `SystemText.status`."""

    @property
    def parts(self) -> tuple[Note, ...]:
        """In the order the model gets them."""
        text = "\n\n".join(filter(None, (self.text, self.status)))
        return (*self.pictures, SystemText(text=text) if self.from_system else text)


class Assistant(Part):
    """One whole reply of a model: thinking, text and calls in the order they arrived."""

    role: Literal["assistant"] = "assistant"
    parts: tuple[Annotated[Text | Thinking | Call, Field(discriminator="kind")], ...]
    native: Native | None = None
    cut: bool = False
    """The reply was cut short (cancelled, output limit); its calls were not run."""

    @property
    def calls(self) -> tuple[Call, ...]:
        return tuple(part for part in self.parts if isinstance(part, Call))

    @property
    def text(self) -> str:
        return "".join(part.text for part in self.parts if isinstance(part, Text))


class Results(Part):
    """The results of the calls of the assistant message before it, in call order, then `notes`: what else the model
    must be sent now (steering, late decisions), pictures before the text they go with. Nothing may come before the
    results: Anthropic answers 400."""

    role: Literal["results"] = "results"
    results: tuple[Result, ...]
    notes: tuple[Note, ...] = ()


class PendingSteering(Part):
    """A message that waits until it can be sent to the model (steering). It is kept as it was when the user sent it,
    because attached files may change or vanish. Not part of the conversation yet."""

    role: Literal["pendingSteering"] = "pendingSteering"
    message: User


class Masked(Part):
    """Old results that were replaced by a shorter text to make room; fields and pictures are gone with the old one.
    `texts`: call id → new text."""

    role: Literal["masked"] = "masked"
    texts: dict[str, str]


class PicturesRefused(Part):
    """A service refused these pictures and documents, which are not sent again. `blob_ids`: theirs."""

    role: Literal["picturesRefused"] = "picturesRefused"
    blob_ids: tuple[str, ...]


class Compacted(Part):
    """The first `replaced` messages were replaced by one message from the daemon, `text`. What the next compaction must
    not lose is kept in the other fields."""

    role: Literal["compacted"] = "compacted"
    replaced: int
    text: str
    snapshot: str
    """The last summary a model managed to write; "" when none ever did."""
    actions: tuple[str, ...] = ()
    """What was done since that summary, a line each, when no model could summarise it."""
    user_texts: tuple[str, ...] = ()
    """The user's words, oldest first."""
    files: dict[str, str] = {}
    """Path → "edited" or "read", the last touched last."""
    replies: int = 0
    """Number of model replies in everything that was ever replaced."""
    skills: tuple[str, ...] = ()
    """Names of the skills that were activated."""


class Memory(Part):
    """Project memory in the system prompt from here on, kept as it was read so that the prompt stays the same to the
    byte. It is no message."""

    role: Literal["memory"] = "memory"
    text: str


class Rewound(Part):
    """The user rewound the session: records from `position` on are no longer part of the conversation."""

    role: Literal["rewound"] = "rewound"
    position: int


Message = User | Assistant | Results
AnyEntry = (
    User | Assistant | Result | Results | PendingSteering | Masked | PicturesRefused | Compacted | Memory | Rewound
)

Entry = Annotated[
    Annotated[
        User | Assistant | Results | PendingSteering | Masked | PicturesRefused | Compacted | Memory | Rewound,
        Field(discriminator="role"),
    ]
    | Result,
    Field(union_mode="left_to_right"),  # trying all of them, as a plain union does, takes three times as long
]
"""The private part of a journal record: what it means for the model's view. Results are recorded one by one;
`Conversation.load` gathers them."""

INTERRUPTED = "Interrupted: the daemon stopped while this call ran. Its effect is unknown; check before repeating it."
NOT_RUN = "Not run: the turn ended before this call started."
MAY_HAVE_RUN, DID_NOT_RUN = "Interrupted: it may have taken effect.", "Interrupted before it ran."
"""The same for the user."""


class BrokenConversation(Exception):
    """Our own bug: a call without its result, or a result without its call, was about to be sent."""


class Conversation:
    """A list of messages, append-only within a turn. A translator may cache the wire form of a message by its index."""

    def __init__(self, messages: Iterable[Message] = ()) -> None:
        self._messages: list[Message] = []
        self._has_pictures = False
        self._wire_ids: set[str] = set()
        """Of its calls, as vendors named them."""
        for message in messages:
            self.append(message)
        self.rewrites = 0
        """Grows when messages before the last were replaced or removed; all else only adds, or adds to the last."""
        self.generation = 0
        """Grows when earlier messages were removed: the model may no longer know what they said."""
        self.compacted: Compacted | None = None
        """The last compaction, whose text is the first message; None if there was none."""
        self.memory = ""
        """Project memory, as it is in the system prompt (`Memory`)."""
        self.pictures: dict[str, str] = {}
        """Blob id → base64 of its pictures that can be sent. Never part of a record."""

    def __len__(self) -> int:
        return len(self._messages)

    def __iter__(self) -> Iterator[Message]:
        return iter(self._messages)

    def __getitem__(self, index: int) -> Message:
        return self._messages[index]

    @property
    def last(self) -> Message | None:
        return self._messages[-1] if self._messages else None

    def unchanged(self, seen: Sequence[Message], rewrites: int) -> int:
        """How many of `seen` are still the first messages. The caller remembers the messages it last processed (`seen`)
        and the value of `self.rewrites` at that time (`rewrites`), and so processes only new ones."""
        if rewrites != self.rewrites:
            pairs = zip(seen, self._messages, strict=False)
            return next((index for index, (old, new) in enumerate(pairs) if old is not new), min(len(seen), len(self)))
        return len(seen) - (bool(seen) and seen[-1] is not self._messages[len(seen) - 1])

    def append(self, message: Message) -> None:
        self._messages.append(message)
        self._has_pictures |= any(_pictures(message))
        self._note_wire_ids(message)

    def has_wire_id(self, wire_id: str) -> bool:
        """A reply has a call under that id of its vendor. Servers that number their calls anew in each reply exist;
        services that refuse an id they have seen do too."""
        return wire_id in self._wire_ids

    def _note_wire_ids(self, *messages: Message) -> None:
        for message in messages:
            if isinstance(message, Assistant) and message.native is not None:
                self._wire_ids.update(message.native.call_ids)

    def add_notes(self, *notes: Note) -> None:
        """Add notes, pictures before the text they go with: to the last results if the conversation ends with them,
        otherwise as a message of their own."""
        last = self.last
        if isinstance(last, Results):
            self._messages[-1] = last.model_copy(update={"notes": (*last.notes, *notes)})
            self._has_pictures |= any(_pictures(self._messages[-1]))
        elif self.open_calls():
            self.append(Results(results=(), notes=notes))
        else:
            texts = [
                part.text if isinstance(part, SystemText) else part for part in notes if not isinstance(part, Picture)
            ]
            pictures = tuple(part for part in notes if isinstance(part, Picture))
            by_daemon = not any(isinstance(part, str) for part in notes)
            self.append(User(text="\n\n".join(texts), pictures=pictures, from_system=by_daemon))

    def mask(self, masked: Masked) -> None:
        """Replace the texts of results by shorter ones. Between steps only: it invalidates prompt caches and thinking
        blocks."""
        texts = masked.texts
        self.rewrites += 1
        for index, message in enumerate(self._messages):
            if isinstance(message, Results) and any(result.call_id in texts for result in message.results):
                results = tuple(
                    result.model_copy(update={"text": texts[result.call_id], "fields": {}, "pictures": ()})
                    if result.call_id in texts
                    else result
                    for result in message.results
                )
                self._messages[index] = message.model_copy(update={"results": results})

    def refuse_pictures(self, refused: PicturesRefused) -> None:
        """Send these no more; the model is told instead. Between steps only, and only what no reply has followed."""
        self.rewrites += 1
        for index, message in enumerate(self._messages):
            if any(picture.blob_id in refused.blob_ids for picture in _pictures(message)):
                self._messages[index] = _with_refused(message, refused.blob_ids)

    def compact(self, compacted: Compacted) -> None:
        """Replace the first messages by its text. Between steps only. A call is never separated from its results: fewer
        messages are replaced instead."""
        replaced = min(compacted.replaced, len(self._messages))
        while 0 < replaced < len(self._messages) and isinstance(self._messages[replaced], Results):
            replaced -= 1
        self._messages[:replaced] = [User(text=compacted.text, from_system=True)]
        self.compacted = compacted
        self._replaced()

    def replace_with(self, source: "Conversation") -> None:
        """Take over the messages, compaction and memory of another conversation. Between turns only."""
        self._messages = list(source)
        self.compacted, self.memory = source.compacted, source.memory
        self._replaced()

    def _replaced(self) -> None:
        self.rewrites += 1
        self.generation += 1
        self._wire_ids.clear()
        self._note_wire_ids(*self._messages)

    def iter_pictures(self) -> Iterator[Picture]:
        """Its pictures that may be sent, in order; one that was shown twice comes twice. Costs nothing if there never
        was one."""
        for message in self._messages if self._has_pictures else ():
            yield from _pictures(message)

    def unanswered_pictures(self) -> tuple[str, ...]:
        """Blob ids of those that no model has replied to yet: no service is known to take them."""
        answered, unanswered = set[str](), dict[str, None]()
        for message in self._messages if self._has_pictures else ():
            if isinstance(message, Assistant):
                answered |= unanswered.keys()
                unanswered.clear()
            unanswered |= {picture.blob_id: None for picture in _pictures(message)}
        return tuple(blob_id for blob_id in unanswered if blob_id not in answered)

    def results(self) -> Iterator[Result]:
        """The results of all calls, in order."""
        for message in self._messages:
            if isinstance(message, Results):
                yield from message.results

    def check(self) -> None:
        """Raise `BrokenConversation` unless the conversation may be sent. Looks only at the last messages: the others
        were checked when they were the last."""
        match self._messages[-2:]:
            case [_, Assistant() as reply] | [Assistant() as reply]:
                if reply.calls:
                    raise BrokenConversation("calls without results")
            case [Assistant() as reply, Results() as answers]:
                call_ids = [call.call_id for call in reply.calls]
                if call_ids != [result.call_id for result in answers.results]:
                    raise BrokenConversation(f"results do not answer the calls: {call_ids}")
            case [_, Results()] | [Results()]:
                raise BrokenConversation("results without calls")
            case [Assistant() as reply, User()] if reply.calls:
                raise BrokenConversation("calls without results")
            case _:
                pass

    @classmethod
    def load(cls, entries: Iterable[AnyEntry]) -> "Conversation":
        """Fold journal entries. Missing results are filled in as interrupted and stray results dropped, so that
        whatever a crash left behind is valid again."""
        conversation = cls()
        for entry in entries:
            match entry:
                case PendingSteering() | Rewound():  # not part of it; the caller leaves out what was rewound
                    pass
                case Masked():
                    conversation.mask(entry)
                case PicturesRefused():
                    conversation.refuse_pictures(entry)
                case Compacted():
                    conversation.close_calls()
                    conversation.compact(entry)
                case Memory(text=text):
                    conversation.memory = text
                case Result():
                    conversation._add_result(entry)
                case Results(notes=notes) if not entry.results:
                    conversation.add_notes(*notes)
                case _:
                    conversation.close_calls()
                    conversation.append(entry)
        conversation.close_calls()
        return conversation

    def open_calls(self) -> tuple[Call, ...]:
        """Calls of the last reply that have no result yet."""
        match self._messages[-2:]:
            case [_, Assistant() as reply] | [Assistant() as reply]:
                return reply.calls
            case [Assistant() as reply, Results() as answers]:
                answered = {result.call_id for result in answers.results}
                return tuple(call for call in reply.calls if call.call_id not in answered)
            case _:
                return ()

    def close_calls(self, text: str = INTERRUPTED) -> tuple[Result, ...]:
        """Answer every open call with the error `text`, in call order. Returns these results."""
        open_calls = self.open_calls()
        results = tuple(Result(call_id=call.call_id, tool=call.tool, text=text, is_error=True) for call in open_calls)
        for result in results:
            self._add_result(result)
        return results

    def _add_result(self, result: Result) -> None:
        open_ids = {call.call_id for call in self.open_calls()}
        if result.call_id not in open_ids:
            return
        last = self._messages[-1]
        if isinstance(last, Assistant):
            self.append(Results(results=(result,)))
            return
        assert isinstance(last, Results)
        reply = self._messages[-2]
        assert isinstance(reply, Assistant)
        order = {call.call_id: index for index, call in enumerate(reply.calls)}
        results = sorted((*last.results, result), key=lambda item: order[item.call_id])
        self._messages[-1] = Results(results=tuple(results), notes=last.notes)
        self._has_pictures |= bool(result.pictures)


def _pictures(message: Message) -> Iterator[Picture]:
    """Those that may be sent."""
    match message:
        case User(pictures=notes):
            parts: tuple[Note, ...] = notes
        case Results(results=results, notes=notes):
            parts = (*(picture for result in results for picture in result.pictures), *notes)
        case _:
            return
    yield from (part for part in parts if isinstance(part, Picture) and not part.refused)


def _with_refused(message: Message, blob_ids: Collection[str]) -> Message:
    def marked(picture: Picture) -> Picture:
        return picture.model_copy(update={"refused": True}) if picture.blob_id in blob_ids else picture

    match message:
        case User(pictures=pictures):
            return message.model_copy(update={"pictures": tuple(map(marked, pictures))})
        case Results(results=results, notes=notes):
            results = tuple(
                result.model_copy(update={"pictures": tuple(map(marked, result.pictures))}) for result in results
            )
            notes = tuple(marked(note) if isinstance(note, Picture) else note for note in notes)
            return message.model_copy(update={"results": results, "notes": notes})
        case _:
            return message


ENTRY: TypeAdapter[AnyEntry] = TypeAdapter(Entry)
"""Reads and writes the private part of a record."""


STUB = "[Left out to make room"
