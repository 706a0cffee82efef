"""What a person should know before the first prompt goes out: the model, its price, whether the folder is trusted."""

from amanu.cli.client import Client
from amanu.cli.paper import Paper
from amanu.cli.render import amount
from amanu.cli.text import one_line
from amanu_protocol import requests as r
from amanu_protocol.items import ModelInfo
from amanu_protocol.state import SessionState

UNTRUSTED = (
    "This folder is not trusted: its files are read as plain text only. Its instructions to the agent, its rules and "
    "its settings are ignored, and nothing in it is run without your yes."
)


async def show_header(client: Client, state: SessionState, paper: Paper) -> ModelInfo | None:
    """Print model, price and mode. Returns what is known of the model."""
    models = (await client.request("amanu/model/list", r.Empty(), r.ModelListResult)).models
    model = next((each for each in models if each.model_id == state.model_id), None)
    paper.line(("bold", "model "), ("", describe(model, state.model_id)))
    if model is not None and not model.available:
        paper.line(("red", f"✗ {one_line(model.unavailable or 'This model is not available.')}"))
    paper.line(("dim", f"mode {state.mode} · {', '.join(one_line(root) for root in state.roots)}"))
    return model


def describe(model: ModelInfo | None, model_id: str) -> str:
    """A model in one line, with its price."""
    if model is None:
        return f"{one_line(model_id)} · price not known"
    name = one_line(model.name)
    parts = [name if name == model.model_id else f"{name} ({one_line(model.model_id)})", price(model)]
    if model.context_window:
        parts.append(f"window {amount(model.context_window)}")
    return " · ".join(parts)


def price(model: ModelInfo) -> str:
    """In US dollars per million tokens."""
    if model.input_price is None or model.output_price is None:
        return "price not known"
    if not model.input_price and not model.output_price:
        return "free"
    return f"${model.input_price:g} in / ${model.output_price:g} out per million tokens"
