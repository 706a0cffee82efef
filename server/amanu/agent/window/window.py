"""The model's context window: how full it is, and what makes room so that no turn ends for lack of it.

In this order: output that is too big is cut to head and tail at once (`fit_result`), old output is shortened (masking),
a summary replaces old messages (compaction). The last two rewrite earlier messages, so they happen only between steps,
when the window fills up; until then everything that was sent stays as it was, and prompt caches hold.

"Headroom" is the tokens that requests may take of the window: all but what is reserved for the reply.
"""

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from pydantic import JsonValue

from amanu.agent.window import compaction
from amanu.agent.window import pruning as masking
from amanu.agent.window.compaction import NoSummary
from amanu.agent.window.token_gauge import PromptHead, TokenGauge, result_tokens
from amanu.core.conversation import Assistant, Call, Compacted, Conversation, Masked, Results, User
from amanu.core.emit import Emit
from amanu.core.model import ContextTooLong, ModelError
from amanu.core.token_estimate import estimate
from amanu_protocol.events import ItemCompleted, ItemStarted, ItemsWithdrawn
from amanu_protocol.items import ContextUse, ModelInfo, Notice, ServerTokens

Tier = Literal["roomy", "warn", "mask", "compact"]

MAX_REPLY_SHARE = 0.25
"""The largest share of a window that is reserved for the reply; a small window needs the rest for requests."""
PROTECTED_SHARE = 0.20
"""Share of the headroom whose newest tool output is never masked …"""
MAX_PROTECTED = 50_000
"""… but at most this many tokens (Gemini CLI's figure)."""
MIN_MASKED_SHARE = 0.15
"""Share of the headroom that masking must free: less is not worth losing the prompt cache."""
KEPT_SHARE = 0.25
"""Share that the end of the conversation may keep in a compaction, of the headroom for it and of its own size."""
MIN_SUMMARISED = 200
"""Tokens: a summary of less is hardly shorter, and it costs a request."""
WORDS_PER_TOKEN = 0.06
"""Words a summary may have per token of headroom for the conversation …"""
MAX_SUMMARY_WORDS = 2_500
"""… but at most this many."""
CRAMPED_SHARE = 0.6
"""If more than this share of the headroom is still taken after a compaction, the next waits until all of it is taken,
or might be: our count may be too low."""
MIN_REFUSED_SHARE = 0.25
"""A refusal of a request smaller than this share of the headroom teaches us nothing about the window."""
MIN_WINDOW = 1_000
"""Tokens; a smaller limit is not a window but a limit on something else."""
MIN_REPLY = 1_024
"""Tokens requested for a reply in any case: no model answers in fewer."""
COUNT_MARGIN = 1.05
"""Factor by which our count of a request may be too low."""
LAST_RESULTS_SHARE = 0.4
"""Share of the headroom for the conversation that the last step's results may take when nothing else can be removed."""
PIECE_SHARE = 0.5
"""Share of the summarising model's window that it is shown at once."""
MAX_SUMMARY = 8_000
"""Tokens of a summary, thoughts included."""
OUTPUT_SHARE = 0.15
"""Share of the headroom that one result may take …"""
MAX_OUTPUT = 25_000
"""… but at most this many tokens."""
RETRY_GROWTH = 0.05
"""After a failed summary, the next is tried once the conversation has grown by this share of the headroom."""
LEARNT_SHARE = 0.9
"""When a service finds a request too long, the headroom is taken to be this share of the request."""

COMPACTING = "compacting"
"""Code of the notice shown while a summary is written; it is replaced by one of the next, or withdrawn."""
COMPACTED = "compacted"
COMPACTION_FAILED = "compactionFailed"
NOTHING_TO_COMPACT = "nothingToCompact"
MASKED = "masked"


class TierShares(Protocol):
    """Shares of the headroom from which on the user is warned, output is masked, and the conversation is compacted."""

    @property
    def warn(self) -> float: ...
    @property
    def mask(self) -> float: ...
    @property
    def compact(self) -> float: ...


async def _no_objection(by_user: bool, focus: str) -> str | None:
    return None


@dataclass(frozen=True)
class StepContext:
    """What the window needs of the turn in which it makes room."""

    turn_id: str
    step: int
    emit: Emit
    add_note: Callable[[str, str], None]
    """Adds a note: its text for the model, and one for the user."""
    ask: compaction.Ask
    """Asks the model that writes summaries."""
    piece: int
    """Tokens that model is shown at once."""
    in_turn: bool = True
    """The turn goes on afterwards. False: the user compacts by hand."""
    before_compaction: Callable[[bool, str], Awaitable[str | None]] = _no_objection
    """Asks whether old messages may be replaced (does the user ask for it, what for) → why not, or None."""


def filling_up(share: float, use: ContextUse) -> tuple[str, str]:
    """The note for the model, and the one for the user, that the window is filled to that share."""
    parts = {
        "tool output": use.tool_output,
        "the conversation": use.conversation,
        "tools and instructions": use.system + use.tools + use.memory,
    }
    whole = max(1, sum(parts.values()))
    most = ", ".join(
        f"{name} {tokens / whole:.0%}" for name, tokens in sorted(parts.items(), key=lambda part: -part[1])
    )
    text = (
        f"The context window is {share:.0%} full ({most}). Soon a summary will replace the older part of this "
        "conversation, and there will be room again, so do not hurry or leave anything out. Write findings, decisions "
        "and open steps that you will need into your next words or your to-do list, and read only what the next step "
        "needs."
    )
    return text, f"The model was told that its context window is {share:.0%} full."


class ContextWindow:
    """One session's context window; it outlives turns and changes of the model. `writers`: names of the tools that
    change files; `save` stores a text for `read_output`."""

    def __init__(
        self, conversation: Conversation, tiers: TierShares, save: masking.SaveText, writers: Collection[str]
    ) -> None:
        self._conversation = conversation
        self._tiers = tiers
        self._save = save
        self._writers = writers
        self._gauge = TokenGauge()
        self._head = PromptHead()
        self._info: ModelInfo | None = None
        self._reserved = 0
        self._learnt: int | None = None
        """The actual headroom, learnt from a refusal; None: no refusal yet."""
        self._failed_at: int | None = None
        """Tokens of the conversation when a summary failed."""
        self._narrowed = False
        """The model's window turned out to be smaller, and no room was made yet."""
        self.accepted = 0
        """Tokens of the largest request the service accepted."""
        self._sent = (0, 0)
        """Tokens of the last request that was accepted, and the conversation's `rewrites` then."""
        self._filled = False
        """The last reply filled the window."""
        self._cramped = False
        """The last compaction freed little."""
        self._warned = False
        """The model was told that the window fills up, and no summary has replaced anything since."""
        self._requested_focus: str | None = None
        """The focus of a compaction by hand that waits for the next step; None: none waits."""
        self._notice_count = 0
        """Counts the notices, for their ids."""

    def use_model(self, info: ModelInfo, head: PromptHead, max_output: int) -> None:
        """The next requests go to that model, with that head, for replies of up to `max_output` tokens."""
        if self._info is None or self._info.model_id != info.model_id:
            self._gauge.recalibrate()
            self._learnt = self._failed_at = None
            self.accepted = 0
            self._sent = (0, 0)
            self._cramped = False
        elif info.context_window < self._info.context_window:
            self._narrowed = True
        self._info = info
        self._head = head
        self._reserved = min(max_output, int(info.context_window * MAX_REPLY_SHARE))

    def count_request(self, tokens: int) -> None:
        """The service counted `tokens` for the last request, whose reply is not in the conversation yet."""
        self._gauge.follow(self._conversation, self._head)
        self._gauge.count(tokens)
        self._narrowed = False
        self._sent = self._gauge.tokens, self._conversation.rewrites
        self.accepted = max(self.accepted, self._gauge.tokens)
        if self._learnt is not None and self.accepted > self._learnt:
            self._learnt = self.accepted

    @property
    def cached(self) -> int:
        """Tokens of the next request that were in the last one, too, and so may be in a cache."""
        sent, rewrites = self._sent
        return sent if rewrites == self._conversation.rewrites else min(sent, self._gauge.calibrated(self._head.total))

    @property
    def headroom(self) -> int:
        """Tokens that a request may take."""
        window = self._info.context_window if self._info is not None else 0
        tokens = max(1, window - self._reserved)
        return tokens if self._learnt is None else min(tokens, self._learnt)

    @property
    def _space(self) -> float:
        """The part of the headroom that the conversation may take."""
        return max(self.headroom * 0.1, self.headroom - self._gauge.calibrated(self._head.total))

    @property
    def tokens(self) -> int:
        """Tokens of the next request, as far as is known now."""
        self._gauge.follow(self._conversation, self._head)
        return self._gauge.tokens

    def context_use(self) -> ContextUse:
        """How full the window is and of what, for the user."""
        share = self.tokens / self.headroom
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
            servers=[ServerTokens(name=name, tokens=count) for name, count in self._gauge.server_tokens()],
        )

    @property
    def errors(self) -> Sequence[float]:
        """How far off our estimates of the last requests were, as shares of what the service counted."""
        return self._gauge.errors

    async def fit_result(self, text: str) -> str:
        """A result as the model gets it: cut to head and tail when it is too big, with a hint how to read the rest."""
        return await masking.shorten(text, self._max_result, self._save)

    async def fit_fields(self, fields: Mapping[str, JsonValue]) -> Mapping[str, JsonValue]:
        """The same for a result in fields: their texts share what one result may take."""
        return await masking.shorten_fields(fields, self._max_result, self._save)

    def fit_reply(self, max_output: int) -> int:
        """How many of `max_output` tokens fit into the window after the next request."""
        window = self._info.context_window if self._info is not None else max_output
        return max(min(max_output, MIN_REPLY), min(max_output, window - int(self.tokens * COUNT_MARGIN)))

    def end_turn(self) -> None:
        """Drop what was requested and did not happen: a later turn does not want it."""
        self._requested_focus = None
        self._filled = False

    def compact_soon(self, focus: str) -> None:
        """Compact before the next step, however full the window is."""
        self._requested_focus = focus

    @property
    def compaction_requested(self) -> bool:
        """A compaction by hand waits for the next step."""
        return self._requested_focus is not None

    def on_window_filled(self) -> None:
        """The reply filled the window: there is less headroom than we thought, and it is used up."""
        self._learn(self.tokens)
        self._filled = True

    async def make_room(self, step: StepContext) -> bool:
        """Before a request: mask and compact as the tiers require. True when the conversation was rewritten."""
        focus, self._requested_focus = self._requested_focus, None
        filled, self._filled = self._filled, False
        if filled or focus is not None:
            return await self._compact(step, focus or "", by_user=focus is not None, must=filled)
        share = self.tokens / self.headroom
        rewritten = False
        if share >= self._tiers.mask:
            rewritten = await self._mask(step)
            share = self.tokens / self.headroom
        if share >= (max(1 / COUNT_MARGIN, self._tiers.compact) if self._cramped else self._tiers.compact):
            rewritten = await self._compact(step, "", must=share >= 1) or rewritten
            if self.tokens > self.headroom:
                rewritten = await self._cut_last_results(step) or rewritten
        self._warn_model(step)
        return rewritten

    def _warn_model(self, step: StepContext) -> None:
        """Tell the model once, while there is still room for it to act, that a summary will replace what is old."""
        share = self.tokens / self.headroom
        if share < self._tiers.warn:
            self._warned = False
        elif share >= self._tiers.mask and not self._warned:
            self._warned = True
            step.add_note(*filling_up(share, self.context_use()))

    def could_be(self, limit: int | None) -> bool:
        """Whether the number that a refusal names can be the model's window: it is less than we thought, more than
        nothing, and the service took no longer request before."""
        window = self._info.context_window if self._info is not None else 0
        return limit is not None and MIN_WINDOW <= limit < window and limit * COUNT_MARGIN >= self.accepted

    async def recover_overflow(self, step: StepContext, refusal: ContextTooLong) -> bool:
        """Make room after the service found a request too long. True when enough was freed to try again, or when it is
        enough to ask for a shorter reply."""
        if refusal.prompt is not None:
            self._gauge.follow(self._conversation, self._head)
            self._gauge.count(refusal.prompt)
        tokens_before = self.tokens
        narrowed, self._narrowed = self._narrowed, False
        window = self._info.context_window if self._info is not None else 0
        knew = refusal.prompt is not None and refusal.limit is not None and refusal.limit >= window
        if (narrowed or knew) and tokens_before <= self.headroom:
            return True  # what the reply may take was too much
        if not narrowed:
            self._learn(tokens_before)
        await self._mask(step, min_share=0.0)
        if self.tokens >= tokens_before * LEARNT_SHARE or self.tokens / self.headroom >= self._tiers.mask:
            await self._compact(step, "", must=True)
        if self.tokens > self.headroom:
            await self._cut_last_results(step)
        if narrowed:
            return self.tokens * COUNT_MARGIN + MIN_REPLY <= window
        return self.tokens < tokens_before * LEARNT_SHARE

    async def compact(self, step: StepContext, focus: str) -> bool:
        """Compact by hand. False when there was nothing to gain."""
        self._requested_focus = None
        return await self._compact(step, focus, by_user=True)

    def _learn(self, refused: int) -> None:
        """Lower the headroom after the service refused that many tokens, but not below what it accepted before."""
        if refused >= self.headroom * MIN_REFUSED_SHARE:
            self._learnt = max(int(min(refused, self.headroom) * LEARNT_SHARE), self.accepted)

    def _tier(self, share: float) -> Tier:
        if share >= self._tiers.compact:
            return "compact"
        if share >= self._tiers.mask:
            return "mask"
        return "warn" if share >= self._tiers.warn else "roomy"

    async def _mask(self, step: StepContext, min_share: float = MIN_MASKED_SHARE) -> bool:
        protected = min(MAX_PROTECTED, self.headroom * PROTECTED_SHARE)
        candidates = masking.find_maskable(self._conversation, protected / self._ratio)
        if candidates.tokens * self._ratio < max(1.0, self.headroom * min_share):
            return False
        self._masked(
            step,
            await masking.make_mask(candidates, self._save),
            [call for call, _ in (*candidates.duplicates, *candidates.results)],
        )
        return True

    async def _cut_last_results(self, step: StepContext) -> bool:
        """Cut the last step's results to head and tail: no service has accepted them yet."""
        answers, request = self._conversation.last, self._conversation[-2] if len(self._conversation) > 1 else None
        if not isinstance(answers, Results) or not isinstance(request, Assistant) or not answers.results:
            return False
        limit = self._space * LAST_RESULTS_SHARE / len(answers.results) / self._ratio
        cut = {
            result.call_id: await masking.cut(result, limit, self._save)
            for result in answers.results
            if result_tokens(result) > limit
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
    def _max_result(self) -> float:
        """Uncalibrated tokens that one result may take."""
        return min(MAX_OUTPUT, self.headroom * OUTPUT_SHARE) / self._ratio

    @property
    def _ratio(self) -> float:
        """Tokens the service counts per estimated token."""
        return max(1e-9, self._gauge.calibrated(1_000) / 1_000)

    async def _compact(self, step: StepContext, focus: str, *, by_user: bool = False, must: bool = False) -> bool:
        """Replace old messages by a summary. After a failure this waits until the conversation has grown, unless the
        user asks (`by_user`) or there must be room (`must`): then the record itself can take the summary's place.
        True when the conversation was rewritten."""
        tokens_before = self.tokens
        conversation = self._conversation
        replaced = self._replaceable()
        if replaced == 0:
            if not step.in_turn:
                text = "There is nothing to compact yet: the conversation holds only the last exchange."
                step.emit(ItemCompleted(item=self._notice(step, NOTHING_TO_COMPACT, text)))
            return False
        waits = self._failed_at is not None and tokens_before < self._failed_at + self.headroom * RETRY_GROWTH
        if waits and not (by_user or must):
            return False
        objection = await step.before_compaction(by_user, focus)
        if objection is not None and not must:
            self._failed_at = tokens_before
            text = f"The conversation was not compacted. {objection}"
            step.emit(ItemCompleted(item=self._notice(step, COMPACTION_FAILED, text)))
            return False
        extracted = compaction.extract(list(conversation)[:replaced], conversation.compacted, self._writers)
        notice = self._notice(step, COMPACTING, "Making room: summarising the older part of this conversation …")
        step.emit(ItemStarted(item=notice))
        try:
            entry, failure = await self._make_entry(
                step, replaced, extracted, focus, ask_model=by_user or not waits, must=must
            )
        except BaseException:
            step.emit(ItemsWithdrawn(item_ids=[notice.item_id], reason="The compaction was cancelled."))
            raise
        if entry is None:
            text = f"The conversation could not be summarised: {failure}. It stays as it is."
            result_notice = notice.model_copy(update={"code": COMPACTION_FAILED, "level": "warning", "text": text})
            step.emit(ItemCompleted(item=result_notice))
            return False
        conversation.compact(entry)
        self._cramped = self.tokens > self.headroom * CRAMPED_SHARE
        text = f"Compacted: {tokens_before:,} → {self.tokens:,} tokens."
        detail = compaction.readable(entry.text)
        if failure:
            text += " No model could write a summary."
            detail = f"No model could write a summary: {failure}. This is taken from the record.\n\n{detail}"
        level = "warning" if failure else "info"
        result_notice = notice.model_copy(update={"code": COMPACTED, "level": level, "text": text, "detail": detail})
        step.emit(ItemCompleted(item=result_notice), entry=entry)
        return True

    def _replaceable(self) -> int:
        """How many messages a summary would replace; 0 when it would gain too little."""
        weights = self._gauge.weights
        replaced = compaction.count_replaceable(
            self._conversation, weights, min(self._space, sum(weights)) * KEPT_SHARE
        )
        return replaced if sum(weights[:replaced]) >= MIN_SUMMARISED else 0

    async def _make_entry(
        self,
        step: StepContext,
        replaced: int,
        extracted: compaction.Extract,
        focus: str,
        *,
        ask_model: bool,
        must: bool,
    ) -> tuple[Compacted | None, str]:
        """The entry that replaces the messages, None if there is none; and why no model wrote its summary, "" if one
        did."""
        tokens_before = self.tokens
        earlier = self._conversation.compacted
        snapshot = earlier.snapshot if earlier is not None else ""
        entry, failure = None, ""
        if ask_model:
            try:
                max_words = min(MAX_SUMMARY_WORDS, int(self._space * WORDS_PER_TOKEN))
                summary = await compaction.summarise(extracted.lines, snapshot, focus, max_words, step.piece, step.ask)
                entry = await self._compose(replaced, summary, extracted, by_model=True)
                self._failed_at = None
            except (NoSummary, ModelError) as error:
                self._failed_at = tokens_before
                failure = str(error).rstrip(".")
        if entry is None and must:
            try:
                entry = await self._compose(replaced, snapshot, extracted, by_model=False)
            except NoSummary as error:
                failure = str(error)
        return entry, failure

    async def _compose(
        self, replaced: int, snapshot: str, extracted: compaction.Extract, *, by_model: bool
    ) -> Compacted:
        """The entry with that summary. Raises `NoSummary` unless it takes clearly less than what it replaces."""
        remaining = list(self._conversation)[replaced:]
        in_turn = bool(remaining) and not any(
            isinstance(message, User) and not message.from_system for message in remaining
        )
        space = self._space / self._ratio
        _, whole = compaction.fit_user_texts(extracted.user_texts, space * compaction.USER_SHARE)
        saved_as = "" if whole else await self._save("\n\n".join(extracted.user_texts))
        entry = compaction.compose(
            replaced, snapshot, extracted, space, by_model=by_model, in_turn=in_turn, saved_as=saved_as
        )
        tokens_before = sum(self._gauge.weights[:replaced])
        tokens = self._gauge.calibrated(estimate(entry.text))
        if tokens > tokens_before * compaction.MAX_SHARE:
            raise NoSummary(f"the summary takes {tokens:,} tokens, the messages it replaces {round(tokens_before):,}")
        return entry

    def _notice(self, step: StepContext, code: str, text: str, detail: str = "") -> Notice:
        self._notice_count += 1
        item_id = f"{step.turn_id}.{step.step}.context{self._notice_count}"
        return Notice(item_id=item_id, turn_id=step.turn_id, level="info", code=code, text=text, detail=detail)
