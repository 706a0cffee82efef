"""The service tier of one session: `/fast`, and what a change of the model does to it.

It is the session's own: side queries and sub-agents go at the usual speed (`TurnFactory`).
"""

from collections.abc import Mapping, Sequence

from amanu.core.service_tiers import TIER_NAMES, at_tier, offers
from amanu.core.session_part import Request, SessionPart, SlashCommand
from amanu.models.routing import AUTO
from amanu.session.core import SessionCore
from amanu.text.amounts import prices
from amanu_protocol import requests as r
from amanu_protocol.errors import AmanuError
from amanu_protocol.events import SessionChanged
from amanu_protocol.items import ModelInfo, ServiceTier

USAGE = "Usage: /fast, /fast on, /fast off"
CODE = "serviceTier"


class SessionServiceTier(SessionPart):
    def __init__(self, core: SessionCore) -> None:
        self._core = core

    @classmethod
    def requests(cls) -> Mapping[str, Request]:
        return {
            "amanu/session/setServiceTier": Request(
                r.SessionSetServiceTierParams, lambda t, p, c: t.set(p.service_tier)
            )
        }

    @classmethod
    def slash_commands(cls) -> Sequence[SlashCommand]:
        return [
            SlashCommand(
                "fast",
                "Fast mode: the same model, faster, at a higher price; say the price, turn it on or off",
                lambda part, arguments: part.answer(arguments),
                "[on|off]",
            )
        ]

    async def answer(self, arguments: str) -> None:
        """Answers `/fast`."""
        match arguments.strip():
            case "":
                text = _offered(self._offering("fast"), on=self._in_force == "fast")
            case "on":
                info = self._change("fast")
                cost = f"{_prices(at_tier(info, 'fast'))} per million tokens instead of {_prices(info)}"
                text = f"Fast mode is on from the next turn on: {cost}. /fast off turns it off."
            case "off":
                configured = self._core.services.settings.service_tier
                self._change("flex" if configured == "flex" else "standard")
                text = "Fast mode is off from the next turn on; the usual price applies."
            case _:
                raise AmanuError("invalidParams", USAGE)
        self._core.notices.report_on_session(CODE, "info", text)
        await self._core.emit.durable()

    async def set(self, tier: ServiceTier) -> r.Empty:
        """Takes effect with the next turn. Raises `AmanuError` (invalidParams) if the model does not have it."""
        self._change(tier)
        await self._core.emit.durable()
        return r.Empty()

    def on_model(self, info: ModelInfo) -> ServiceTier | None:
        """The tier to go back to when the session changes to that model, or None; says so."""
        tier = self._core.state.service_tier
        if tier in (None, "standard") or tier in info.service_tiers:
            return None
        text = f"{info.name} has no known {TIER_NAMES[tier]}, so it is off, and the usual price applies."
        self._core.notices.report_on_session(CODE, "warning", text)
        return "standard"

    @property
    def _in_force(self) -> ServiceTier:
        return self._core.state.service_tier or self._core.services.settings.service_tier

    def _change(self, tier: ServiceTier) -> ModelInfo:
        self._core.access.require_writable()
        info = self._offering(tier)
        if tier != self._core.state.service_tier:
            self._core.emit(SessionChanged(service_tier=tier))
        return info

    def _offering(self, tier: ServiceTier) -> ModelInfo:
        """The session's model, which has that tier. Raises `AmanuError` (invalidParams)."""
        core = self._core
        if core.state.model_id == AUTO:
            if tier == "standard":
                return core.services.registry.known(AUTO, core.environment)
            raise AmanuError("invalidParams", f"Choose a model first: {AUTO} chooses one for each turn.")
        info = core.services.registry.known(core.state.model_id, core.environment)
        if tier != "standard" and tier not in info.service_tiers:
            why = f"No {TIER_NAMES[tier]} is known for {info.name} ({info.model_id})."
            if tier in offers(info.model_id):
                why = f"A ChatGPT plan has no {TIER_NAMES[tier]} for {info.name}; an API key has."
            raise AmanuError("invalidParams", why)
        return info


def _prices(info: ModelInfo) -> str:
    return prices(info.input_price, info.output_price)


def _offered(info: ModelInfo, *, on: bool) -> str:
    offer = offers(info.model_id)["fast"]
    cost = f"{_prices(at_tier(info, 'fast'))} per million tokens instead of {_prices(info)}"
    if info.input_price is None:
        cost = f"{offer.price:g} times its price, which is not known"
    text = f"Fast mode is {'on' if on else 'off'}. With it {info.name} answers {offer.gain}, for {cost}."
    if on:
        return f"{text} /fast off turns it off."
    if offer.own_cache:
        text += " The two speeds do not share caches: the next request pays for the whole conversation."
    return f"{text} /fast on turns it on for this session."
