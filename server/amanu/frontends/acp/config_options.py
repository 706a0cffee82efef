"""Mode, model, effort and service tier as ACP's modes and config options. Both are given: clients know the one or the
other."""

from collections.abc import Mapping, Sequence
from typing import Any, cast, get_args

from amanu.client.session_view import SessionView
from amanu.frontends.acp.peer import INVALID_PARAMS, RpcError
from amanu.text.amounts import prices
from amanu_protocol.items import Effort, Mode, ModelInfo, ServiceTier
from amanu_protocol.labels import MODES
from amanu_protocol.requests import ModelListResult
from amanu_protocol.state import SessionState


def modes(state: SessionState) -> dict[str, Any]:
    """A `SessionModeState`."""
    available = [{"id": mode, "name": name, "description": meaning} for mode, name, meaning in _modes(state)]
    return {"currentModeId": state.mode, "availableModes": available}


def config_options(state: SessionState, listed: ModelListResult) -> list[dict[str, Any]]:
    """All options with their values. `listed`: the models there are."""
    models = [model for model in listed.models if model.available or model.model_id == state.model_id]
    current = next((model for model in models if model.model_id == state.model_id), None)
    options = [
        _select("mode", "Mode", "mode", state.mode, _modes(state)),
        _select("model", "Model", "model", state.model_id, _model_choices(models, state.model_id, listed.vendors)),
    ]
    if current is not None and current.efforts:
        effort = state.effort or current.default_effort
        chosen = effort if effort in current.efforts else current.efforts[0]
        choices = [(each, each.capitalize(), "") for each in current.efforts]
        options.append(_select("effort", "Thinking", "thought_level", chosen, choices))
    if current is not None and current.service_tiers:
        tiers: list[ServiceTier] = ["standard", *current.service_tiers]
        choices = [(tier, tier.capitalize(), _price(current, tier)) for tier in tiers]
        chosen = state.service_tier if state.service_tier in tiers else "standard"
        options.append(_select("service_tier", "Speed", "other", chosen, choices))
    return options


def _price(model: ModelInfo, tier: ServiceTier) -> str:
    if not model.input_price or not model.output_price:
        return ""
    factor = model.service_tiers.get(tier, 1)
    return f"{prices(model.input_price * factor, model.output_price * factor)} per million tokens"


def _modes(state: SessionState) -> list[tuple[str, str, str]]:
    """(Mode, name, meaning) of those there are: a sub-agent at work has its parent's and no other."""
    modes = [(mode, label.name, label.meaning) for mode, label in MODES.items()]
    return [mode for mode in modes if mode[0] == state.mode] if state.at_work else modes


async def set_mode(view: SessionView, mode: str) -> None:
    """Raises `RpcError` for a mode there is not."""
    if mode not in get_args(Mode):
        raise RpcError(INVALID_PARAMS, f"Unknown mode {mode!r}. Available: {', '.join(MODES)}.")
    await view.set_mode(cast("Mode", mode))


async def set_option(view: SessionView, option: str, value: str) -> None:
    """Raises `RpcError` for an option or value there is not, `AmanuError` where the daemon refuses."""
    match option:
        case "mode":
            await set_mode(view, value)
        case "model":
            await view.set_model(value)
        case "effort" if value in get_args(Effort):
            await view.set_effort(cast("Effort", value))
        case "service_tier" if value in get_args(ServiceTier):
            await view.set_service_tier(cast("ServiceTier", value))
        case "service_tier":
            available = ", ".join(get_args(ServiceTier))
            raise RpcError(INVALID_PARAMS, f"Unknown service tier {value!r}. Available: {available}.")
        case "effort":
            raise RpcError(INVALID_PARAMS, f"Unknown effort {value!r}. Available: {', '.join(get_args(Effort))}.")
        case _:
            raise RpcError(INVALID_PARAMS, f"Unknown option {option!r}. Available: mode, model, effort, service_tier.")


def _model_choices(models: Sequence[ModelInfo], current: str, vendors: Mapping[str, str]) -> list[tuple[str, str, str]]:
    choices: list[tuple[str, str, str]] = []
    for model in models:
        vendor = model.model_id.partition(":")[0]
        choices.append((model.model_id, model.name or model.model_id, vendors.get(vendor, vendor)))
    if all(model.model_id != current for model in models):
        choices.insert(0, (current, current, ""))
    return choices


def _select(
    option: str, name: str, category: str, value: str, choices: Sequence[tuple[str, str, str]]
) -> dict[str, Any]:
    """`choices`: (value, name, description)."""
    options = [
        {"value": each, "name": title, **({"description": about} if about else {})} for each, title, about in choices
    ]
    return {
        "type": "select",
        "id": option,
        "name": name,
        "category": category,
        "currentValue": value,
        "options": options,
    }
