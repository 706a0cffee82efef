"""The model's window as it fills: how full it is, and what makes room, so that no turn ends for lack of it.

In this order: output too big from the start is cut to head and tail (`fitting`), old output makes room (masking), a
summary takes the place of what is old (compaction). The last two rewrite earlier messages, so they happen between
steps only: within a step and from one to the next all that was sent stays as it was, and caches hold.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from amanu.agent.window import compaction
from amanu.agent.window import pruning as masking
from amanu.agent.window.compaction import NoSummary
from amanu.agent.window.token_gauge import PromptHead, TokenGauge
from amanu.core.conversation import Assistant, Call, Compacted, Conversation, Masked, Results, User
from amanu.core.emit import Emit
from amanu.core.model import ModelError
from amanu_protocol.events import ItemCompleted, ItemStarted, ItemsWithdrawn
from amanu_protocol.items import ContextUse, ModelInfo, Notice

Tier = Literal["roomy", "warn", "mask", "compact"]

REPLY = 0.25
"""The most of a window that is kept free for the reply: a small window has use for more than answers."""
PROTECTED = 0.20
"""Share of the room whose newest tool output is never masked …"""
MOST_PROTECTED = 50_000
"""… and the tokens it is at most (Gemini CLI's figure): more is not looked at again."""
WORTH_MASKING = 0.15
"""Share of the room that masking must give back: less is not worth a cold cache."""
KEPT = 0.25
"""Share that the end of the conversation may take after a compaction: of the room for it, and of what it took."""
WORTH_SUMMARISING = 200
"""Tokens: of less a summary is hardly shorter, and it costs a request."""
SUMMARY_WORDS = 0.06
"""Words a summary may have, per token of that room …"""
MOST_WORDS = 2_500
"""… and at most."""
CRAMPED = 0.6
"""Share of the room still taken after a compaction above which the next one waits until there must be room."""
LEARNABLE = 0.25
"""A service that refuses less than this share of the window means something else by "too long"."""
LEAST_REPLY = 1_024
"""Tokens asked for in any case: with less no model says anything."""
SURE = 1.05
"""Our count of a request may be wrong by so much."""
LAST_RESULTS = 0.4
"""Share of the room for the conversation that the results of the last step may take when nothing else can go."""
PIECE = 0.5
"""Share of the room of the model that summarises which it is shown at once."""
LONGEST_SUMMARY = 8_000
"""Tokens, thoughts included."""
BIG_OUTPUT = 0.15
"""Share of the room one result may take …"""
MOST_OUTPUT = 25_000
"""… and the tokens it is at most."""
RETRY_GROWTH = 0.05
"""After a summary failed the next is tried when the conversation has grown by this share of the room, not before."""
LEARNT = 0.9
"""A service that finds a request too long has a window of less than we thought: this share of the request."""

COMPACTING = "compacting"
"""Stands while a summary is made; it becomes another one, or is withdrawn."""
COMPACTED = "compacted"
COMPACTION_FAILED = "compactionFailed"
NOTHING_TO_COMPACT = "nothingToCompact"
MASKED = "masked"

GUIDANCE = (
    "[Amanu: {share} % of your context window is used. Finish what you are doing before you open anything new, keep "
    "tool output small, and say in your text what you will still need to know. When the window is full, what is old is "
    "replaced by a summary and the work goes on.]"
)


class TierShares(Protocol):
    """Shares of the room."""

    @property
    def warn(self) -> float: ...
    @property
    def mask(self) -> float: ...
    @property
    def compact(self) -> float: ...


@dataclass(frozen=True)
class StepContext:
    """Where in a turn something happens, and how it is told."""

    turn_id: str
    step: int
    emit: Emit
    add_note: Callable[[str, str], None]
    """Say something to the model, and to the user that it was said."""
    ask: compaction.Ask
    """The model that summarises."""
    piece: int
    """Tokens it is shown at once."""
    in_turn: bool = True
    """The work goes on after it; else the user compacts by hand."""


class ContextWindow:
    """Of one session; it outlives turns and models."""

    def __init__(
        self, conversation: Conversation, tiers: TierShares, keep: masking.SaveText, writers: Collection[str]
    ) -> None:
        self._conversation = conversation
        self._tiers = tiers
        self._keep = keep
        self._writers = writers
        self._gauge = TokenGauge()
        self._head = PromptHead()
        self._info: ModelInfo | None = None
        self._reserved = 0
        self._learnt: int | None = None
        """Room there really is, known from a refusal."""
        self._guided = -1
        """Generation of the conversation in which the model was told that it is getting full."""
        self._failed_at: int | None = None
        """Tokens at which a summary failed."""
        self._accepted = 0
        """Tokens of the largest request the service took."""
        self._filled = False
        """The last reply filled the window."""
        self._cramped = False
        """The last compaction left much behind."""
        self._requested_focus: str | None = None
        """A compaction by hand waits for the next step; its focus."""
        self._notice_count = 0
        """Notices, for their ids."""

    def use_model(self, info: ModelInfo, head: PromptHead, max_output: int) -> None:
        """The next requests go to that model, with that before the conversation."""
        if self._info is None or self._info.model_id != info.model_id:
            self._gauge.recalibrate()
            self._learnt = self._failed_at = None
            self._accepted = 0
            self._cramped = False
        self._info = info
        self._head = head
        self._reserved = min(max_output, int(info.context_window * REPLY))

    def count_request(self, tokens: int) -> None:
        """The service counted `tokens` for the request just answered, whose reply is not yet in the conversation."""
        self._gauge.follow(self._conversation, self._head)
        self._gauge.count(tokens)
        self._accepted = max(self._accepted, self._gauge.tokens)
        if self._learnt is not None and self._accepted > self._learnt:
            self._learnt = self._accepted

    @property
    def room(self) -> int:
        """Tokens there are for requests."""
        window = self._info.context_window if self._info is not None else 0
        room = max(1, window - self._reserved)
        return room if self._learnt is None else min(room, self._learnt)

    @property
    def _space(self) -> float:
        """Of the room, what the conversation can have."""
        return max(self.room * 0.1, self.room - self._gauge.calibrated(self._head.total))

    @property
    def tokens(self) -> int:
        """What the next request takes, as far as is known now."""
        self._gauge.follow(self._conversation, self._head)
        return self._gauge.tokens

    def context_use(self) -> ContextUse:
        """For people."""
        share = self.tokens / self.room
        system, tools, memory, conversation, output = self._gauge.shares()
        window = self._info.context_window if self._info is not None else 0
        return ContextUse(
            system=system,
            tools=tools,
            memory=memory,
            conversation=conversation,
            tool_output=output,
            reserved=self._reserved,
            free=max(0, window - self._reserved - self.tokens),
            tier=self._tier(share),
        )

    @property
    def errors(self) -> Sequence[float]:
        """How far off the sizes foretold of the last requests were, as shares of what the service counted."""
        return self._gauge.errors

    async def fit_result(self, text: str) -> str:
        """A result as the model gets it: head and tail when it is too big, and how to read the rest."""
        limit = min(MOST_OUTPUT, self.room * BIG_OUTPUT)
        return await masking.shorten(text, limit / self._ratio, self._keep)

    def fit_reply(self, max_output: int) -> int:
        """Of so many tokens of a reply, those there is place for behind the next request."""
        window = self._info.context_window if self._info is not None else max_output
        return max(min(max_output, LEAST_REPLY), min(max_output, window - int(self.tokens * SURE)))

    def end_turn(self) -> None:
        """What was asked for and did not happen is not wanted in a later turn."""
        self._requested_focus = None
        self._filled = False

    def compact_soon(self, focus: str) -> None:
        """Compact before the next step, however full it is."""
        self._requested_focus = focus

    @property
    def compaction_requested(self) -> bool:
        """A compaction by hand waits."""
        return self._requested_focus is not None

    def on_window_filled(self) -> None:
        """The reply filled the window: there is less room than we thought, and none is left."""
        self._learn(self.tokens)
        self._filled = True

    async def make_room(self, step: StepContext) -> bool:
        """Before a request: mask and compact as the tiers say. True when the conversation was rewritten."""
        focus, self._requested_focus = self._requested_focus, None
        filled, self._filled = self._filled, False
        if filled or focus is not None:
            return await self._compact(step, focus or "", by_user=focus is not None, must=filled)
        share = self.tokens / self.room
        rewritten = False
        if share >= self._tiers.mask:
            rewritten = await self._mask(step)
            share = self.tokens / self.room
        if share >= (max(1.0, self._tiers.compact) if self._cramped else self._tiers.compact):
            rewritten = await self._compact(step, "", must=share >= 1) or rewritten
            if self.tokens > self.room:
                rewritten = await self._cut_last(step) or rewritten
        elif share >= self._tiers.warn:
            self._guide(step, share)
        return rewritten

    async def recover_overflow(self, step: StepContext) -> bool:
        """The service found the request too long. True when there is more room now than before it."""
        tokens_before = self.tokens
        self._learn(tokens_before)
        await self._mask(step, worth=0.0)
        if self.tokens >= tokens_before * LEARNT or self.tokens / self.room >= self._tiers.mask:
            await self._compact(step, "", must=True)
        if self.tokens > self.room:
            await self._cut_last(step)
        return self.tokens < tokens_before * LEARNT

    async def compact(self, step: StepContext, focus: str) -> bool:
        """By hand. False when there was nothing to gain."""
        self._requested_focus = None
        return await self._compact(step, focus, by_user=True)

    def _learn(self, refused: int) -> None:
        """The service finds that too long: the room is smaller than we thought, unless it took as much before."""
        if refused >= self.room * LEARNABLE:
            self._learnt = max(int(min(refused, self.room) * LEARNT), self._accepted)

    def _tier(self, share: float) -> Tier:
        if share >= self._tiers.compact:
            return "compact"
        if share >= self._tiers.mask:
            return "mask"
        return "warn" if share >= self._tiers.warn else "roomy"

    def _guide(self, step: StepContext, share: float) -> None:
        """Once, after results: a user's prompt is not answered with advice."""
        if self._guided != self._conversation.generation and isinstance(self._conversation.last, Results):
            self._guided = self._conversation.generation
            step.add_note(
                GUIDANCE.format(share=round(share * 100)),
                f"The context window is {share:.0%} full; the model was told to finish and to note down what matters.",
            )

    async def _mask(self, step: StepContext, worth: float = WORTH_MASKING) -> bool:
        protected = min(MOST_PROTECTED, self.room * PROTECTED)
        candidates = masking.find_maskable(self._conversation, protected / self._ratio)
        if candidates.tokens * self._ratio < max(1.0, self.room * worth):
            return False
        self._masked(
            step,
            await masking.make_mask(candidates, self._keep),
            [call for call, _ in (*candidates.duplicates, *candidates.results)],
        )
        return True

    async def _cut_last(self, step: StepContext) -> bool:
        """The results of the last step to head and tail: no service has taken them yet."""
        answers, request = self._conversation.last, self._conversation[-2] if len(self._conversation) > 1 else None
        if not isinstance(answers, Results) or not isinstance(request, Assistant) or not answers.results:
            return False
        limit = self._space * LAST_RESULTS / len(answers.results) / self._ratio
        texts = {result.call_id: await masking.shorten(result.text, limit, self._keep) for result in answers.results}
        cut = {
            result.call_id: texts[result.call_id] for result in answers.results if texts[result.call_id] != result.text
        }
        if cut:
            self._masked(step, Masked(texts=cut), [call for call in request.calls if call.call_id in cut])
        return bool(cut)

    def _masked(self, step: StepContext, entry: Masked, calls: Sequence[Call]) -> None:
        tokens_before = self.tokens
        self._conversation.mask(entry)
        text = (
            f"To make room, {len(calls)} tool result{'s' * (len(calls) != 1)} (about {tokens_before - self.tokens:,} "
            "tokens) are no longer sent in full; the model can read them again."
        )
        detail = "\n".join(f"- `{masking.describe_call(call)}`" for call in calls)
        step.emit(ItemCompleted(item=self._notice(step, MASKED, text, detail)), entry=entry)

    @property
    def _ratio(self) -> float:
        """Tokens the service counts for one of our estimate."""
        return max(1e-9, self._gauge.calibrated(1_000) / 1_000)

    async def _compact(self, step: StepContext, focus: str, *, by_user: bool = False, must: bool = False) -> bool:
        """Replace what is old. A summary that fails is not tried again until more has come, unless the user asks;
        when there must be room, what the record says by itself stands for it."""
        tokens_before = self.tokens
        conversation = self._conversation
        weights = self._gauge.weights
        replaced = compaction.count_replaceable(conversation, weights, min(self._space, sum(weights)) * KEPT)
        if sum(weights[:replaced]) < WORTH_SUMMARISING:
            replaced = 0
        if replaced == 0:
            if not step.in_turn:
                text = "There is nothing to compact yet: what there is, is the last exchange."
                step.emit(ItemCompleted(item=self._notice(step, NOTHING_TO_COMPACT, text)))
            return False
        latched = self._failed_at is not None and tokens_before < self._failed_at + self.room * RETRY_GROWTH
        if latched and not (by_user or must):
            return False
        earlier = conversation.compacted
        taken = compaction.extract(list(conversation)[:replaced], earlier, self._writers)
        notice = self._notice(step, COMPACTING, "Making room: summarising what is old in this conversation …")
        step.emit(ItemStarted(item=notice))
        why = ""
        try:
            snapshot = earlier.snapshot if earlier is not None else ""
            entry: Compacted | None = None
            if not latched or by_user:
                try:
                    max_words = min(MOST_WORDS, int(self._space * SUMMARY_WORDS))
                    summary = await compaction.summarise(taken.lines, snapshot, focus, max_words, step.piece, step.ask)
                    entry = await self._smaller(replaced, summary, taken, by_model=True)
                    self._failed_at = None
                except (NoSummary, ModelError) as error:
                    self._failed_at = tokens_before
                    why = str(error).rstrip(".")
            if entry is None and must:
                entry = await self._smaller(replaced, snapshot, taken, by_model=False)
        except NoSummary as error:
            entry, why = None, str(error)
        except BaseException:
            step.emit(ItemsWithdrawn(item_ids=[notice.item_id], reason="The compaction was cancelled."))
            raise
        if entry is None:
            text = f"The conversation could not be summarised: {why}. It stays as it is."
            result_notice = notice.model_copy(update={"code": COMPACTION_FAILED, "level": "warning", "text": text})
            step.emit(ItemCompleted(item=result_notice))
            return False
        conversation.compact(entry)
        self._cramped = self.tokens > self.room * CRAMPED
        text = f"Compacted: {tokens_before:,} → {self.tokens:,} tokens."
        detail = compaction.readable(entry.text)
        if why:
            text += " No model could summarise them."
            detail = f"No model could summarise this: {why}. It is what the record says by itself.\n\n{detail}"
        level = "warning" if why else "info"
        result_notice = notice.model_copy(update={"code": COMPACTED, "level": level, "text": text, "detail": detail})
        step.emit(ItemCompleted(item=result_notice), entry=entry)
        return True

    async def _smaller(self, replaced: int, snapshot: str, taken: compaction.Extract, *, by_model: bool) -> Compacted:
        """The entry, if it takes clearly less than what it replaces. Raises `NoSummary`."""
        remaining = list(self._conversation)[replaced:]
        in_turn = bool(remaining) and not any(
            isinstance(message, User) and not message.from_system for message in remaining
        )
        room = self._space / self._ratio
        _, whole = compaction.fit_user_texts(taken.user_texts, room * compaction.USER_SHARE)
        saved_as = "" if whole else await self._keep("\n\n".join(taken.user_texts))
        entry = compaction.compose(
            replaced, snapshot, taken, room, by_model=by_model, in_turn=in_turn, saved_as=saved_as
        )
        took = sum(self._gauge.weights[:replaced])
        takes = self._gauge.calibrated(masking.estimate(entry.text))
        if takes > took * compaction.GAIN:
            raise NoSummary(f"the summary takes {takes:,} tokens, what it would replace {round(took):,}")
        return entry

    def _notice(self, step: StepContext, code: str, text: str, detail: str = "") -> Notice:
        self._notice_count += 1
        item_id = f"{step.turn_id}.{step.step}.context{self._notice_count}"
        return Notice(item_id=item_id, turn_id=step.turn_id, level="info", code=code, text=text, detail=detail)
