"""Models that an editor has from its other extensions and lets Amanu use: VS Code, those of GitHub Copilot. An offer
ends with the connection that made it, and only that connection is asked."""

from collections.abc import AsyncGenerator, Sequence
from typing import Protocol

from amanu.core.model_families import model_info
from amanu.text.display import one_line
from amanu_protocol.errors import AmanuError
from amanu_protocol.items import ModelInfo
from amanu_protocol.requests import ModelRunParams, ModelRunResult, OfferedModel, RunCallPart, RunTextPart

PREFIX = "vscode:"
"""Of the ids of these models: `vscode:copilot/gpt-5`."""
_MAX_OUTPUT = 16_384
"""Tokens of the window kept for the reply: the editor does not say how long one may be."""


class ModelHost(Protocol):
    """A client that answers for the models it offered."""

    def run(self, params: ModelRunParams) -> AsyncGenerator[RunTextPart | RunCallPart | ModelRunResult]:
        """Yield the parts of the reply, then how it ended. Raises `ConnectionError` when the client goes away. Closing
        the generator cancels the request."""
        ...


class OfferedModels:
    """What all clients offer now."""

    def __init__(self) -> None:
        self._offers: dict[ModelHost, dict[str, OfferedModel]] = {}

    def put(self, host: ModelHost, models: Sequence[OfferedModel]) -> None:
        """The client offers these, and nothing else."""
        self._offers.pop(host, None)
        self._offers[host] = {f"{PREFIX}{model.vendor}/{model.id}": model for model in models}

    def remove(self, host: ModelHost) -> None:
        """The client is gone."""
        self._offers.pop(host, None)

    def find(self, model_id: str) -> tuple[ModelHost, OfferedModel] | None:
        """The client that offers the model: the most recent one, if several do."""
        for host, models in reversed(self._offers.items()):
            if model_id in models:
                return host, models[model_id]
        return None

    def info(self, model_id: str) -> ModelInfo:
        """The facts about a model. Raises `AmanuError` (modelUnavailable) when nobody offers it."""
        found = self.find(model_id)
        if found is None:
            raise AmanuError("modelUnavailable", not_offered(model_id), hint=WHAT_TO_DO)
        return _info(model_id, found[1])

    def list(self) -> list[ModelInfo]:
        """All of them, each once."""
        models = {model_id: model for offered in self._offers.values() for model_id, model in offered.items()}
        return [_info(model_id, model) for model_id, model in models.items()]

    @property
    def titles(self) -> dict[str, str]:
        """The part of an id that names the vendor → its name for the user."""
        models = [model for offered in self._offers.values() for model in offered.values()]
        return {f"{PREFIX}{model.vendor}": _title(model) for model in models}


WHAT_TO_DO = "Open the folder in VS Code again, or choose another model."


def not_offered(model_id: str) -> str:
    """The message for a model that no client offers."""
    return f"{model_id.removeprefix(PREFIX)} comes from VS Code, and no open VS Code window offers it."


def _info(model_id: str, model: OfferedModel) -> ModelInfo:
    facts = model_info(model_id)
    window = model.max_input_tokens or facts.context_window
    return facts.model_copy(
        update={
            "name": f"{one_line(model.name)} · {_title(model)}",
            "context_window": window,
            "max_output": min(_MAX_OUTPUT, window // 4),
            "facts_from": f"billed by {_title(model)}",
            "available": True,
        }
    )


def _title(model: OfferedModel) -> str:
    return one_line(model.vendor_title or model.vendor)
