"""Fields of a request's body that the wire does not make: that of a service tier, and the user's own
(`request_fields` of the settings)."""

from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Any, cast

from amanu.core.model import Delta, Model, Request
from amanu.core.service_tiers import offers


def extended(body: dict[str, Any], request: Request) -> dict[str, Any]:
    """The body with those fields behind its own, which stay as they are."""
    offer = offers(request.model.model_id).get(request.service_tier)
    own = body if offer is None else {**body, **offer.body()}
    return {**own, **{name: _merged(own.get(name), value) for name, value in request.fields.items()}}


def _merged(own: Any, value: Any) -> Any:
    """The wire's own value, or the user's where there is none; two objects are joined."""
    if isinstance(own, dict) and isinstance(value, dict):
        return cast("dict[str, Any]", value) | cast("dict[str, Any]", own)
    return value if own is None else cast("Any", own)


def fields_for(model_id: str, settings: Mapping[str, Mapping[str, Any]]) -> Mapping[str, Any]:
    """The fields that the settings name for the model: of each pattern that matches its id, the later ones first."""
    fields: dict[str, Any] = {}
    for pattern, named in settings.items():
        if fnmatchcase(model_id, pattern):
            fields |= named
    return fields


class ExtendedModel:
    """A `Model` whose every request has further fields, those for side queries too."""

    def __init__(self, model: Model, fields: Mapping[str, Any]) -> None:
        self._model = model
        self._fields = fields
        self.searches: bool = getattr(model, "searches", False)

    def stream(self, request: Request) -> AsyncIterator[Delta]:
        return self._model.stream(replace(request, fields=self._fields))

    async def close(self) -> None:
        await self._model.close()
