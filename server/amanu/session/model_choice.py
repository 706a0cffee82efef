"""Chooses the model of a session's next turn and its fallbacks, and says why."""

import asyncio
import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial

from amanu.agent import difficulty
from amanu.agent.fallback import Candidate, Fallbacks
from amanu.agent.turn import Turn
from amanu.config import Settings
from amanu.core.ending import Ending
from amanu.core.listeners import TurnView
from amanu.core.notes import SystemNote
from amanu.models.availability import Availability
from amanu.models.registry import ModelRegistry
from amanu.models.routing import AUTO, ModelRoute, RoutingContext, choose, otherwise, to_judge
from amanu_protocol.errors import AmanuError
from amanu_protocol.events import TurnRouted
from amanu_protocol.items import ModelInfo, UserMessage
from amanu_protocol.state import SessionState

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class ModelChoice:
    """The models for one turn."""

    candidate: Candidate
    """The model it begins with."""
    fallbacks: Fallbacks
    utility: Candidate | None
    route: ModelRoute
    previous: str | None
    """The model that was replaced by a fallback in the previous turn, if any."""

    def announce(self, turn: Turn) -> None:
        """Say why it is this model, once the turn has started."""
        replaced = self.route.instead_of
        if replaced is None and self.previous == self.route.model_id:
            turn.add_note(SystemNote("", f"Back to {self.candidate.info.name}: it is available again.", "routed"))
        if self.route.reason is None:
            return
        if replaced is not None and replaced != self.previous:
            turn.add_note(SystemNote("", self.route.reason, "fallback", level="warning"))
        turn.emit(TurnRouted(turn_id=turn.turn_id, model_id=self.route.model_id, reason=self.route.reason))


class ModelChooser:
    """Chooses the models of one session. `availability` is shared by all sessions."""

    def __init__(
        self, settings: Settings, registry: ModelRegistry, availability: Availability, state: SessionState
    ) -> None:
        self._settings = settings
        self._registry = registry
        self._availability = availability
        self._state = state
        self._environment: Mapping[str, str] = {}
        """The environment of the client that began the last turn."""
        self._fallbacks = Fallbacks()
        """Those of the last turn."""
        self._judged_model_id: str | None = None
        """The model that the last prompt was routed to for its difficulty."""

    async def choose(self, prompt: str, environment: Mapping[str, str]) -> ModelChoice:
        """For the turn of that prompt. Raises `AmanuError` when the model that is meant cannot be had: no key, unknown
        …; other models that cannot are passed over."""
        self._environment = environment
        routing = self._settings.routing
        intended_id = self._state.model_id
        model_ids = [*routing.fallback]
        if intended_id == AUTO:
            intended_id = otherwise(self._settings, self._registry, environment)
            model_ids += [model_id for model_id in (routing.plan, routing.easy, routing.hard) if model_id is not None]
        resolved = {intended_id: await self._candidate(intended_id, environment)}
        resolved |= await self._resolve_usable(
            (model_id for model_id in model_ids if model_id != intended_id), environment
        )
        context = self._routing_context(prompt, intended_id, resolved)
        route = choose(context)
        fallbacks = Fallbacks(self._availability, self._candidates(route, resolved), replaced=route.instead_of)
        if to_judge(context):
            fallbacks.judge = partial(self._judge, context, resolved, fallbacks)
        previous, self._fallbacks = self._fallbacks.replaced, fallbacks
        utility = await self._resolve_usable([routing.utility] if routing.utility else [], environment)
        return ModelChoice(resolved[route.model_id], fallbacks, next(iter(utility.values()), None), route, previous)

    async def with_others(self, ending: Ending, info: ModelInfo) -> Ending:
        """The ending, with the models that could be chosen instead where it failed for lack of that one."""
        if info.successor is not None:  # it was named
            return ending
        match ending.kind:
            case "modelNotFound":
                others = await self._registry.like(info.model_id, self._environment)
            case "authRequired":
                others = self._registry.of_other_keys(info.model_id, self._environment)
            case _:
                return ending
        return replace(ending, message=f"{ending.message} {others}".rstrip())

    def _routing_context(self, prompt: str, meant: str, reached: Mapping[str, Candidate]) -> RoutingContext:
        used = self._state.usage.context_tokens if self._state.usage is not None else 0
        away = {
            model_id: self._availability.why_not(candidate.model, candidate.info)
            for model_id, candidate in reached.items()
        }
        return RoutingContext(
            model_id=self._state.model_id,
            default=meant,
            mode=self._state.mode,
            routing=self._settings.routing,
            usable={
                model_id: candidate.info.name
                for model_id, candidate in reached.items()
                if model_id == meant
                or candidate.info.context_window > used  # a smaller window would lose what does not fit for good
            },
            away={model_id: why for model_id, why in away.items() if why is not None},
            prompt=prompt,
            previous=self._judged_model_id,
        )

    def _candidates(self, route: ModelRoute, reached: Mapping[str, Candidate]) -> list[Candidate]:
        """The models of that route, in order: the intended one, then its fallbacks."""
        ids = dict.fromkeys((route.instead_of or route.model_id, *self._settings.routing.fallback))
        return [reached[model_id] for model_id in ids if model_id in reached]

    async def _judge(
        self, situation: RoutingContext, reached: Mapping[str, Candidate], fallbacks: Fallbacks, turn: TurnView
    ) -> tuple[Candidate, str] | None:
        """The model for a prompt of that difficulty, and why. A judgement that comes late is dropped. None: the turn
        has already said why it is the model it began with."""
        earlier = [item.text for item in self._state.items[-200:] if isinstance(item, UserMessage)]
        ask = partial(turn.side_query, max_output=difficulty.MAX_OUTPUT, once=True)
        judging = turn.start_task(difficulty.judge_difficulty(ask, situation.prompt, earlier[:-1]))  # the last: prompt
        await asyncio.wait([judging], timeout=difficulty.SECONDS)
        judged = judging.result() if judging.done() else None
        route = choose(replace(situation, difficulty=judged))
        if judged is None and route.reason is None:
            name, limit = situation.name(route.model_id), f"{difficulty.SECONDS:g} s"
            return reached[route.model_id], f"Not judged easy or hard within {limit}, so {name} takes it."
        if judged is None or route.reason is None:
            return None
        self._judged_model_id = route.instead_of or route.model_id
        fallbacks.candidates, fallbacks.replaced = self._candidates(route, reached), route.instead_of
        return reached[route.model_id], route.reason

    async def _candidate(self, model_id: str, environment: Mapping[str, str]) -> Candidate:
        model, info = await self._registry.resolve(model_id, environment)
        return Candidate(model, self._availability.fitted(model, info))

    async def _resolve_usable(self, model_ids: Iterable[str], environment: Mapping[str, str]) -> dict[str, Candidate]:
        """Those that can be used; `[routing]` may name models this client has no key for."""
        candidates: dict[str, Candidate] = {}
        for model_id in model_ids:
            try:
                candidates[model_id] = await self._candidate(model_id, environment)
            except AmanuError as error:
                log.info("routing passes over %s: %s", model_id, error)
        return candidates
