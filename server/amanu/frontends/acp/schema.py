"""What clients send, as far as it is used. The names are those of ACP's schema, version 1.

A receiver takes the default for an optional field that is malformed, and leaves out items of a list that are: so says
the schema with `x-deserialize-default-on-error` and `x-deserialize-skip-invalid-items`.
"""

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    ValidatorFunctionWrapHandler,
    field_validator,
)
from pydantic.alias_generators import to_camel

from amanu.frontends.acp.handshake import flag, mapping
from amanu.frontends.acp.peer import INVALID_PARAMS, RpcError


class Params(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel, extra="ignore", frozen=True)

    @field_validator("*", mode="wrap")
    @classmethod
    def _take_default(cls, value: Any, handler: ValidatorFunctionWrapHandler, info: ValidationInfo) -> Any:
        try:
            return handler(value)
        except ValidationError:
            field = cls.model_fields[info.field_name or ""]
            if field.is_required():
                raise
            return field.get_default(call_default_factory=True)


P = TypeVar("P", bound=Params)


class SessionParams(Params):
    session_id: str = Field(min_length=1)


class SetupParams(Params):
    """What `session/new`, `load` and `resume` have in common."""

    cwd: str
    additional_directories: list[str] = []
    mcp_servers: list[Any] = []
    """See `mcp_servers_of`."""


class ReopenParams(SetupParams):
    session_id: str = Field(min_length=1)


class ListParams(Params):
    cwd: str | None = None


class PromptParams(SessionParams):
    prompt: list[Any]
    """See `blocks_of`."""


class SetModeParams(SessionParams):
    mode_id: str


class SetConfigOptionParams(SessionParams):
    config_id: str
    value: str


class AuthenticateParams(Params):
    method_id: str


class Variable(Params):
    """A variable of an environment, or a header."""

    name: str
    value: str


class StdioServer(Params):
    type: Literal["stdio"] = "stdio"
    name: str
    command: str
    args: list[str] = []
    env: list[Variable] = []


class HttpServer(Params):
    type: Literal["http"]
    name: str
    url: str
    headers: list[Variable] = []


class TextBlock(Params):
    type: Literal["text"]
    text: str


class ImageBlock(Params):
    type: Literal["image"]
    data: str
    mime_type: str
    uri: str | None = None


class LinkBlock(Params):
    type: Literal["resource_link"]
    name: str
    uri: str


class Resource(Params):
    uri: str
    mime_type: str | None = None
    text: str | None = None
    blob: str | None = None


class ResourceBlock(Params):
    type: Literal["resource"]
    resource: Resource


Block = TextBlock | ImageBlock | LinkBlock | ResourceBlock
_BLOCKS: Mapping[Any, type[Block]] = {
    "text": TextBlock,
    "image": ImageBlock,
    "resource_link": LinkBlock,
    "resource": ResourceBlock,
}
_SERVERS: Mapping[Any, type[StdioServer | HttpServer]] = {None: StdioServer, "stdio": StdioServer, "http": HttpServer}


def parse(kind: type[P], params: Any, where: str = "") -> P:
    """The params of a request, or a part of them at `where`. Raises `RpcError` (invalid params) that names the first
    bad field."""
    try:
        return kind.model_validate(params)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        path = ".".join(filter(None, (where, *map(str, first["loc"]))))
        raise RpcError(INVALID_PARAMS, f"{path or 'params'}: {first['msg']}.", {"path": path}) from None


def blocks_of(params: PromptParams) -> list[Block]:
    """The content of a prompt. Raises `RpcError`: no part of what the user says may be missing."""
    blocks: list[Block] = []
    for number, block in enumerate(params.prompt):
        kind = _type_of(block)
        if kind not in _BLOCKS:
            raise RpcError(INVALID_PARAMS, f"prompt.{number}: content of type {str(kind)[:50]!r} is not supported.")
        blocks.append(parse(_BLOCKS[kind], block, f"prompt.{number}"))
    return blocks


def mcp_servers_of(params: SetupParams) -> list[StdioServer | HttpServer]:
    """The MCP servers a client hands over, without those that are malformed or use an unknown transport."""
    servers: list[StdioServer | HttpServer] = []
    for server in params.mcp_servers:
        with contextlib.suppress(RpcError, KeyError):
            servers.append(parse(_SERVERS[_type_of(server)], server))
    return servers


def chosen_option(result: Any) -> str | None:
    """The option of a permission request that the user chose; None for anything else."""
    outcome = mapping(mapping(result).get("outcome"))
    chosen = outcome.get("optionId")
    return chosen if outcome.get("outcome") == "selected" and isinstance(chosen, str) else None


def _type_of(value: Any) -> str | None:
    kind = mapping(value).get("type")
    return kind if isinstance(kind, str) else None


@dataclass(frozen=True)
class ClientFeatures:
    """What a client said of itself in `initialize`."""

    name: str = "ACP client"
    reads: bool = False
    """It answers `fs/read_text_file`, with what is not saved."""
    writes: bool = False
    notices: bool = False
    compactions: bool = False
    forms: bool = False
    """It answers `elicitation/create`."""

    @classmethod
    def of(cls, params: Any) -> "ClientFeatures":
        info = mapping(mapping(params).get("clientInfo"))
        names = (info.get("title"), info.get("name"))
        name = next((name for name in names if isinstance(name, str) and name.strip()), cls.name)
        capabilities = "clientCapabilities"
        return cls(
            name=name[:100],
            reads=flag(params, capabilities, "fs", "readTextFile"),
            writes=flag(params, capabilities, "fs", "writeTextFile"),
            notices=flag(params, capabilities, "session", "notices"),
            compactions=flag(params, capabilities, "session", "compaction"),
            forms=flag(params, capabilities, "elicitation", "form"),
        )
