"""The lines shown before the first prompt: the model and its price, the mode, the folders, the sandbox."""

from amanu.cli.console import Console
from amanu.cli.question import show_lines
from amanu.cli.text import one_line
from amanu.core.service_tiers import TIER_NAMES, at_tier
from amanu.text import wording
from amanu.text.amounts import prices, token_count
from amanu_protocol.items import ModelInfo, ServiceTier
from amanu_protocol.labels import MODES
from amanu_protocol.state import SessionState

AUTOMATIC = "Automatic"


def show_header(state: SessionState, console: Console) -> None:
    """Print model, price, chosen effort, mode, folders and sandbox."""
    effort = f" · thinking effort {state.effort}" if state.effort is not None else ""
    described = describe(model_info(state.model_id), state.service_tier)
    console.line(("bold", "model "), ("", f"{described}{effort}"))
    console.line(("dim", f"mode {state.mode}: {MODES[state.mode].meaning}"))
    console.line(("dim", ", ".join(one_line(root) for root in state.roots)))
    if state.sandbox is not None:
        show_lines([wording.sandbox_line(state.sandbox)], console, "")


def effort_line(state: SessionState) -> str:
    """The thinking effort in force, and those the model offers."""
    model = model_info(state.model_id)
    if not has_efforts(state.model_id):
        return f"{one_line(model.name)} has no levels of effort: its thinking cannot be controlled."
    offered = ", ".join(model.efforts) or "what the chosen model has"
    effort = state.effort or f"as configured (this model's default: {model.default_effort or 'none'})"
    return f"thinking effort {effort}; {one_line(model.name)} offers: {offered}"


def has_efforts(model_id: str) -> bool:
    """Whether it can be chosen how much the model thinks."""
    from amanu.models.routing import AUTO

    return model_id == AUTO or bool(model_info(model_id).efforts)


def model_info(model_id: str) -> ModelInfo:
    """The facts about a model, without asking any server. (`amanu/model/list` also asks the servers on this machine,
    which may take seconds.)"""
    from amanu.home import find_home
    from amanu.models.catalogue import Catalogue
    from amanu.models.routing import AUTO

    info = Catalogue(find_home().catalogue).facts(model_id)
    return info if model_id != AUTO else info.model_copy(update={"name": AUTOMATIC})


def describe(model: ModelInfo, tier: ServiceTier | None = None) -> str:
    """A model in one line, with its price, which the service tier may change."""
    if model.model_id.startswith("scripted:"):
        return f"{one_line(model.model_id)} · plays a script, no real model · free"
    if model.name == AUTOMATIC:
        return f"Automatic ({model.model_id}) · model and price are chosen for each turn"
    name = one_line(model.name)
    parts = [name if name == model.model_id else f"{name} ({one_line(model.model_id)})", _price_at(model, tier)]
    if model.context_window:
        parts.append(f"window {token_count(model.context_window)}")
    return " · ".join(parts)


def _price_at(model: ModelInfo, tier: ServiceTier | None) -> str:
    if tier not in model.service_tiers or not model.input_price:
        return price(model)
    usual = prices(model.input_price, model.output_price)
    return f"{TIER_NAMES[tier]}: {price(at_tier(model, tier))} instead of {usual}"


def price(model: ModelInfo) -> str:
    """In US dollars per million tokens."""
    if model.input_price is None or model.output_price is None:
        return "price unknown"
    if not model.input_price and not model.output_price:
        return "free"
    return f"{prices(model.input_price, model.output_price)} per million tokens"
