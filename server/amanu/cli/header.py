"""The lines shown before the first prompt: the model and its price, the mode, the folders, the sandbox."""

from amanu.cli.console import Console
from amanu.cli.question import show_lines
from amanu.cli.text import one_line
from amanu.text import wording
from amanu.text.amounts import token_count
from amanu_protocol.items import ModelInfo
from amanu_protocol.labels import MODES
from amanu_protocol.state import SessionState

AUTOMATIC = "Automatic"


def show_header(state: SessionState, console: Console) -> None:
    """Print model, price, chosen effort, mode, folders and sandbox."""
    effort = f" · thinking effort {state.effort}" if state.effort is not None else ""
    console.line(("bold", "model "), ("", f"{describe(model_info(state.model_id))}{effort}"))
    console.line(("dim", f"mode {state.mode}: {MODES[state.mode].meaning}"))
    console.line(("dim", ", ".join(one_line(root) for root in state.roots)))
    if state.sandbox is not None:
        show_lines([wording.sandbox_line(state.sandbox)], console, "")


def effort_line(state: SessionState) -> str:
    """The thinking effort in force, and those the model offers."""
    model = model_info(state.model_id)
    offered = ", ".join(model.efforts) or "nothing; its thinking cannot be controlled"
    effort = state.effort or f"as configured (this model's default: {model.default_effort or 'none'})"
    return f"thinking effort {effort}; {one_line(model.name)} offers: {offered}"


def model_info(model_id: str) -> ModelInfo:
    """The facts about a model, without asking any server. (`amanu/model/list` also asks the servers on this machine,
    which may take seconds.)"""
    from amanu.home import find_home
    from amanu.models.catalogue import Catalogue
    from amanu.models.routing import AUTO

    info = Catalogue(find_home().catalogue).facts(model_id)
    return info if model_id != AUTO else info.model_copy(update={"name": AUTOMATIC})


def describe(model: ModelInfo) -> str:
    """A model in one line, with its price."""
    if model.model_id.startswith("scripted:"):
        return f"{one_line(model.model_id)} · plays a script, no real model · free"
    if model.name == AUTOMATIC:
        return f"Automatic ({model.model_id}) · model and price are chosen for each turn"
    name = one_line(model.name)
    parts = [name if name == model.model_id else f"{name} ({one_line(model.model_id)})", price(model)]
    if model.context_window:
        parts.append(f"window {token_count(model.context_window)}")
    return " · ".join(parts)


def price(model: ModelInfo) -> str:
    """In US dollars per million tokens."""
    if model.input_price is None or model.output_price is None:
        return "price unknown"
    if not model.input_price and not model.output_price:
        return "free"
    return f"${model.input_price:g} in / ${model.output_price:g} out per million tokens"
