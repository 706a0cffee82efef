"""Which model a turn begins with: a chain of strategies, each a pure function of the situation.

    the user's own choice → the mode → what is available → how hard the prompt is → the default

The first that has an opinion decides. What the user chose themselves is replaced by nothing but a stand-in from
`[routing] fallback`, while it cannot be asked; so is what the others come to.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from amanu.config import RoutingSettings, Settings
from amanu.models.availability import stands_in
from amanu.models.registry import ModelRegistry
from amanu_protocol.errors import AmanuError
from amanu_protocol.items import Mode, ModelInfo

AUTO = "amanu:auto"
"""The model one chooses to have another one chosen for each turn."""

HARD_FROM = 51
"""Difficulty, 1 to 100, from which a prompt goes to the `hard` model: the scale the classifier is given
(`agent/difficulty.py`) puts there what needs more than one place of the code understood together."""

_GO_ON = re.compile(
    r"(ok(ay)?|yes|yep|sure|fine|please|good|great|thanks|and)?[\s,.!]*"
    r"(go (on|ahead)|continue|carry on|keep going|proceed|resume|next|more|(try )?again|do (it|so)|yes|ok(ay)?)"
    r"[\s,.!]*(please|then|now)?[\s.!…]*",
    re.I,
)
"""Prompts that say nothing of their own: they are as hard as what they go on with."""


@dataclass(frozen=True)
class RoutingContext:
    """All that is known when a turn starts. Models are `vendor:model`."""

    model_id: str
    """The session's."""
    default: str
    """What `AUTO` is when nothing decides."""
    mode: Mode
    routing: RoutingSettings
    usable: Mapping[str, str] = field(default_factory=dict[str, str])
    """Those there is a key or a server for, and which have room for the conversation; with their names."""
    away: Mapping[str, str] = field(default_factory=dict[str, str])
    """Those not to be asked just now, and why."""
    prompt: str = ""
    previous: str | None = None
    """Where its difficulty sent the last prompt."""
    difficulty: int | None = None
    """1 to 100; None when it was not judged, or could not be."""

    @property
    def classifies(self) -> bool:
        """There are two models to choose from by difficulty."""
        return self.routing.easy in self.usable and self.routing.hard in self.usable

    def here(self, model_id: str | None) -> bool:
        return model_id in self.usable and model_id not in self.away

    def name(self, model_id: str) -> str:
        return self.usable.get(model_id, model_id)


@dataclass(frozen=True)
class ModelRoute:
    """Where a turn goes."""

    model_id: str
    reason: str | None = None
    """A sentence for the user; None when there is nothing to explain."""
    instead_of: str | None = None
    """The model this one stands in for."""


def explicit(s: RoutingContext) -> ModelRoute | None:
    """What the user chose."""
    return None if s.model_id == AUTO else ModelRoute(s.model_id)


def by_mode(s: RoutingContext) -> ModelRoute | None:
    """Turns in plan mode have a model of their own."""
    if s.mode == "plan" and s.routing.plan is not None and s.here(s.routing.plan):
        return ModelRoute(s.routing.plan, f"Turns in plan mode go to {s.name(s.routing.plan)}.")
    return None


def by_availability(s: RoutingContext) -> ModelRoute | None:
    """When only one of easy and hard can be asked, there is nothing to judge."""
    if not s.classifies:
        return None
    for model_id, alternative in ((s.routing.easy, s.routing.hard), (s.routing.hard, s.routing.easy)):
        if model_id is not None and alternative is not None and s.here(model_id) and alternative in s.away:
            return ModelRoute(
                model_id, f"{s.name(alternative)} {s.away[alternative]}; {s.name(model_id)} takes this turn."
            )
    return None


def by_difficulty(s: RoutingContext) -> ModelRoute | None:
    """Easy prompts and hard ones have models of their own; what goes on with the last prompt stays where that went."""
    if not s.classifies or s.routing.easy is None or s.routing.hard is None:
        return None
    if goes_on(s.prompt) and s.previous in (s.routing.easy, s.routing.hard):
        return ModelRoute(s.previous, f"{s.name(s.previous)} continues what it has begun.")
    if s.difficulty is None:
        return None
    hard = s.difficulty >= HARD_FROM
    model_id = s.routing.hard if hard else s.routing.easy
    return ModelRoute(
        model_id, f"Judged {'hard' if hard else 'easy'} ({s.difficulty} of 100), so {s.name(model_id)} takes it."
    )


def by_default(s: RoutingContext) -> ModelRoute:
    return ModelRoute(s.default)


STRATEGIES: tuple[Callable[[RoutingContext], ModelRoute | None], ...] = (
    explicit,
    by_mode,
    by_availability,
    by_difficulty,
    by_default,
)


def choose(s: RoutingContext) -> ModelRoute:
    """Where the turn goes, by the first strategy that says so; to a stand-in while that model cannot be asked. When
    none can, the model itself is tried."""
    route = next(route for strategy in STRATEGIES if (route := strategy(s)) is not None)
    if route.model_id not in s.away:
        return route
    for model_id in s.routing.fallback:
        if model_id != route.model_id and s.here(model_id):
            why = stands_in(s.name(model_id), s.name(route.model_id), s.away[route.model_id])
            return ModelRoute(model_id, why, instead_of=route.model_id)
    return route


def to_judge(s: RoutingContext) -> bool:
    """Would it make a difference to know how hard the prompt is?"""
    first = (strategy(s) for strategy in STRATEGIES[: STRATEGIES.index(by_difficulty)])
    return s.difficulty is None and s.classifies and not goes_on(s.prompt) and not any(first)


def goes_on(prompt: str) -> bool:
    """Does the prompt only say that it should go on?"""
    return _GO_ON.fullmatch(prompt.strip()) is not None


# `AUTO` as a model one can choose ---------------------------------------------------------------------


def default(settings: Settings, registry: ModelRegistry, environment: Mapping[str, str]) -> str | None:
    """The model of a new session; None when there is no key."""
    return settings.model or registry.default(environment)


def otherwise(settings: Settings, registry: ModelRegistry, environment: Mapping[str, str]) -> str:
    """What `AUTO` is when nothing decides: the model of the settings; else the hard one, with which nothing can go
    wrong but the price; else that of the first vendor that has a key. Raises `AmanuError` (modelNotFound)."""
    if not settings.routing.chooses:
        raise AmanuError(
            "modelNotFound",
            "No models are configured for automatic choice.",
            hint="Set [routing] plan, or easy and hard, in config.toml.",
        )
    if settings.model is not None and settings.model != AUTO:
        return settings.model
    default = settings.routing.hard or registry.default(environment) or settings.routing.plan
    assert default is not None, "the settings name models to choose from"
    return default


async def check(
    model_id: str, settings: Settings, registry: ModelRegistry, environment: Mapping[str, str], *, opens: bool = True
) -> ModelInfo:
    """The facts of a model the user wants to choose. Raises `AmanuError`, as `ModelRegistry.check` does."""
    if model_id != AUTO:
        return await registry.check(model_id, environment, opens=opens)
    info = await registry.check(otherwise(settings, registry, environment), environment, opens=opens)
    return info.model_copy(update={"model_id": AUTO, "name": "Automatic", "service_tiers": {}, **_NO_PRICES})


async def listed(settings: Settings, registry: ModelRegistry, environment: Mapping[str, str]) -> list[ModelInfo]:
    """All models one can choose; `AUTO` first, when there are settings for it."""
    models = await registry.list(environment)
    if not settings.routing.chooses:
        return models
    try:
        return [await check(AUTO, settings, registry, environment), *models]
    except AmanuError:
        return models


_NO_PRICES = dict.fromkeys(("input_price", "output_price", "cache_read_price", "cache_write_price", "long_prompt"))
"""The price is that of the model that is chosen."""
