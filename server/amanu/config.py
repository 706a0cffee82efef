"""One settings tree with defaults: defaults < user's file < trusted workspace's file < environment < client.

The user's file is `config.toml` in the configuration folder. A workspace's `.amanu/config.toml` counts only when
the workspace is trusted, and then only for the fields in `WORKSPACE_MAY_SET`: it can narrow what is allowed, never
widen it, and never name a model, an endpoint or a key.
"""

import os
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue, PrivateAttr, ValidationError, model_validator

from amanu.core.rules import RuleTable
from amanu.core.wire_fields import refusal
from amanu.home import Home
from amanu_protocol.errors import AmanuError
from amanu_protocol.items import Effort, Mode, ServiceTier


class SettingsSection(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class LimitSettings(SettingsSection):
    """What ends a turn with an offer to go on."""

    steps: int = Field(default=100, ge=1)
    """Replies of the model in one turn."""
    seconds: float = Field(default=3600, gt=0)
    """Of wall time, waiting for the user not counted."""
    cost_usd: float | None = Field(default=None, gt=0)
    """Of one turn."""
    session_cost_usd: float | None = Field(default=None, gt=0)
    """Of the whole session; when it is reached the turn stops and asks. Each prompt after that allows as much again."""
    unasked_commands: int = Field(default=200, ge=0)
    """Commands with an effect that rules may allow in one turn; the next one is asked about."""
    unasked_seconds: float = Field(default=1800, ge=0)
    """That such commands may take together in one turn; of those in the background the calls that start them count."""


class ContextSettings(SettingsSection):
    """What happens as the model's window fills. Shares of the window without what is reserved for the reply."""

    warn: float = Field(default=0.70, gt=0, le=1)
    """Clients show that the window fills up. The model is not told: room is made by itself."""
    mask: float = Field(default=0.85, gt=0, le=1)
    """Old tool output makes room. Where that is not enough, the model is told once to write down what it will need."""
    compact: float = Field(default=0.90, gt=0, le=1)
    """A summary takes the place of what is old."""
    windows: dict[str, Annotated[int, Field(ge=4_000)]] = {}
    """`vendor:model` → tokens, where the real window is another than ours: local servers, or to keep costs down."""


ModelId = Annotated[str, Field(pattern=r"^[^:\s]+:.+$")]
"""`vendor:model`."""


class RoutingSettings(SettingsSection):
    """Which model a turn goes to. `plan`, `easy` and `hard` are for sessions whose model is `amanu:auto`; a model that
    was chosen by name is replaced by nothing but a fallback."""

    plan: ModelId | None = None
    """For turns in plan mode."""
    easy: ModelId | None = None
    """A classifier chooses between this and `hard` for each prompt, if it answers within a second."""
    hard: ModelId | None = None
    """With `easy`."""
    fallback: tuple[ModelId, ...] = ()
    """Tried in this order when the chosen model is overloaded, its quota is used up, or its service refuses your key or
    has no such model."""
    utility: ModelId | None = None
    """For summaries and judgements, and for where an applied code block belongs; without it the turn's own model."""
    subagent: ModelId | None = None
    """The model of sub-agents, whatever the session's model is; without it, the turn's own model."""
    rewrite: ModelId | None = None
    """The model that rewrites lines at the cursor: a fast one feels best; without it, the default model."""

    @model_validator(mode="after")
    def _both(self) -> "RoutingSettings":
        if (self.easy is None) != (self.hard is None):
            raise ValueError("easy and hard must be set together")
        return self

    @property
    def chooses(self) -> bool:
        """There is something to choose a model by."""
        return self.plan is not None or self.easy is not None


class AgentSettings(SettingsSection):
    """Sub-agents: agents with a conversation of their own, to which the model hands work."""

    enabled: bool = True
    """The model can start sub-agents (`run_agent`)."""
    parallel: int = Field(default=4, ge=1, le=16)
    """How many of one session work at once; the others wait their turn."""
    steps: int = Field(default=30, ge=1)
    """How many model replies each gets."""
    seconds: float = Field(default=600, gt=0)
    """How long each may work, not counting time spent waiting for the user."""
    cost_share: float = Field(default=0.25, gt=0, le=1)
    """The share each may spend of what is left of the turn and session limits; it counts towards them, too."""
    stall_seconds: float = Field(default=120, gt=0)
    """How long each may go without anything from its model before it is stopped."""


class RuleSettings(SettingsSection):
    """Policy rules as text, `tool(text)` as approvals show them. Deny goes before must-ask, that before allow."""

    allow: tuple[str, ...] = ()
    """Done without a question."""
    deny: tuple[str, ...] = ()
    """Never done."""
    must_ask: tuple[str, ...] = ()
    """Asked about, whatever else allows it."""


class EndpointSettings(SettingsSection):
    """An OpenAI-compatible service of the user's own. One named `azure` has OpenAI's models, under their deployments'
    names."""

    base_url: str
    """Such as `http://localhost:8000/v1`, or `https://NAME.openai.azure.com/openai/v1`."""
    wire: Literal["chat", "responses"] = "chat"
    """Chat completions, or OpenAI's Responses API, which Azure needs."""
    key_variable: str | None = None
    """Environment variable that holds its key, if it needs one."""
    models: tuple[str, ...] = ()
    """Its models, if it does not list them itself (`GET …/models`): the names that follow `NAME:`."""


class CloudSettings(SettingsSection):
    """Regions, projects and resources of models in your clouds. Environment variables take precedence."""

    aws_region: str | None = None
    """For `bedrock:…`; as `AWS_REGION`."""
    google_project: str | None = None
    """For `vertex:…`; as `GOOGLE_CLOUD_PROJECT`, or `ANTHROPIC_VERTEX_PROJECT_ID` for Claude."""
    google_location: str | None = None
    """For `vertex:…`, such as `global`; as `GOOGLE_CLOUD_LOCATION`, or `CLOUD_ML_REGION` for Claude."""
    foundry_resource: str | None = None
    """For `foundry:…`; as `ANTHROPIC_FOUNDRY_RESOURCE`."""

    @property
    def variables(self) -> dict[str, str]:
        """What is set, by the variable that says the same."""
        named = {
            "AWS_REGION": self.aws_region,
            "GOOGLE_CLOUD_PROJECT": self.google_project,
            "GOOGLE_CLOUD_LOCATION": self.google_location,
            "ANTHROPIC_FOUNDRY_RESOURCE": self.foundry_resource,
        }
        return {name: value for name, value in named.items() if value}


class ShellSettings(SettingsSection):
    """Commands of the model's: how long they may run, and what they get to know."""

    inactivity_seconds: float = Field(default=300, gt=0)
    """Without any output."""
    total_seconds: float = Field(default=1800, gt=0)
    """In all."""
    pass_environment: tuple[str, ...] = ()
    """Variables with secrets that commands get all the same, such as `GITHUB_TOKEN`. By default none does whose name or
    value looks like one (`*_TOKEN`, `*_SECRET`, `*_KEY`, `*_PASSWORD`, `AWS_*` …); keys of models' services never."""


class SandboxSettings(SettingsSection):
    """The sandbox around commands. No workspace and no model can set these."""

    write: tuple[str, ...] = ()
    """Further folders that commands may write, such as `~/.cache/pip`; `~` is the home folder."""
    read: tuple[str, ...] = ()
    """Further files and folders of the home folder that commands may read; of it they see installed tools only."""
    hide: tuple[str, ...] = ()
    """Further files and folders that commands may not even read."""
    layers: bool = True
    """Where possible, commands run on a private copy of the workspace: what they change is proposed like an edit in
    `ask`, applied like one in `acceptEdits` and `auto`, goes into the draft in `draft`, and is thrown away in `plan`.
    If off or not possible, they first run with nothing writable; in `auto`, on the workspace itself."""
    without: Literal["ask", "accept"] = "ask"
    """Where no sandbox works: `ask` about every command that has an effect, whatever rules allow it; `accept`: rules
    count as if there were one."""


class WebSettings(SettingsSection):
    """The tools that reach the web. No workspace and no model can set these."""

    allow_hosts: tuple[str, ...] = ()
    """Hosts in your own network that may be fetched from, as `host:port`; you are still asked about each. Servers on
    this machine from port 1024 on, such as `localhost:3000`, need no entry."""
    search: Literal["searxng", "brave", "tavily"] | None = None
    """The service that searches the web; if not set, that of the session's model, if it has one. Keys:
    `amanu auth set brave`, or `BRAVE_API_KEY`; the same for `tavily`."""
    search_url: str | None = None
    """The address of that service, such as `http://localhost:8888` for your own SearXNG, which must offer JSON."""

    @model_validator(mode="after")
    def _reachable(self) -> "WebSettings":
        if self.search == "searxng" and not self.search_url:
            raise ValueError("searxng needs search_url")
        return self


class CheckSettings(SettingsSection):
    """What language servers and linters say of an edit."""

    enabled: bool = True
    """Of one that is asked about, in a trusted workspace: let those installed here look at it before it is decided."""
    checkers: dict[str, bool | Annotated[tuple[str, ...], Field(min_length=1)]] = {}
    """Name (`checks/catalog.py`) → false: not that one; a list: its command, where it is not on `PATH`."""
    wait_seconds: float = Field(default=3, ge=0, le=60)
    """The result of an edit waits that long for what checkers and the editor find in the file; 0: not at all."""


class CatalogueSettings(SettingsSection):
    """What the vendors say of their own models: windows, prices, what is new."""

    refresh: bool = True
    """The daemon asks each vendor you have a key for once a day. `amanu models --refresh` does so at any time."""
    prices: bool = False
    """OpenRouter is asked too, which needs no key: its public list has newer prices than this release."""


class HistorySettings(SettingsSection):
    """How long old work is kept. Nothing of a session that is open goes."""

    keep_preimages_days: int = Field(default=30, ge=0)
    """Of files as they were before an edit; 0: for ever."""
    keep_preimages_mb: int = Field(default=500, ge=0)
    """Of them in all; the oldest go first. 0: any number."""
    keep_sessions_days: int = Field(default=0, ge=0)
    """Of whole sessions, after something last happened in them; 0: for ever."""
    keep_audit_mb: int = Field(default=200, ge=0)
    """Of the audit log, which is one for all sessions; the oldest go first. 0: any number."""


Editing = Literal["emacs", "vi"]
ThemeChoice = Literal["auto", "dark", "light", "plain"]


class TerminalSettings(SettingsSection):
    """`amanu chat`. No workspace can set these."""

    editing: Editing = "emacs"
    """The keys that edit the prompt. In `vi`, Esc goes to normal mode, where it stops what runs; the line below the
    prompt names the mode."""
    theme: ThemeChoice = "auto"
    """Which of the terminal's own 16 colours are used: for a `dark` or a `light` background, or none (`plain`); `auto`
    asks the terminal. `/theme` changes it."""
    keys: dict[str, str | tuple[str, ...]] = {}
    """Other keys for what `?` lists: under `[terminal.keys]`, `mode = "f2"` or `editor = ["ctrl-e", "ctrl-x e"]`. The
    actions: `send`, `newLine`, `complete`, `mode`, `stop`, `interrupt`, `leave`, `search`, `editor`, `everything`,
    `picture`, `background`, `suspend`, `nextQuestion`, `previousQuestion`, `keys`. Enter, Esc and Ctrl-C keep their
    meaning. What cannot be bound keeps its default, and the chat says why."""

    notify: bool = True
    """The window's title names the session; a bell and a notification tell of a question and of the end of a turn, if
    the window has not got the focus or that came after more than ten seconds."""


class Settings(SettingsSection):
    """All settings. Field names are the keys of `config.toml`."""

    model: str | None = None
    """`vendor:model` used when a session names none; without it the first vendor that has a key."""
    mode: Mode = "ask"
    """Of new sessions."""
    effort: Effort | None = None
    """How much models think; without it as much as the vendor of each advises. What a model does not take becomes the
    next above."""
    service_tier: ServiceTier = "standard"
    """The tier at which vendors serve new sessions, where a model has it: `fast` (higher price, `/fast`), `flex` (half
    the price, slower, and only when there is room). docs/models.md says which models have which."""
    request_fields: dict[str, dict[str, JsonValue]] = {}
    """Further fields in the body of every request to the models whose ids match: `[request_fields."openrouter:*"]`, and
    in it `provider = { order = ["anthropic"] }`. Not those that Amanu sends itself."""
    limits: LimitSettings = LimitSettings()
    loops: bool = True
    """Watch for a model that goes in circles: it is told once, the second time the turn ends."""
    next_speaker: Literal["off", "rules", "judge"] = "judge"
    """A model that says what it will do next and ends its reply is asked to go on. `rules`: where the wording leaves no
    doubt; `judge`: of Gemini models, which do so often, a model is asked as well (that of `routing.utility`, where one
    is set); `off`: never."""
    context: ContextSettings = ContextSettings()
    routing: RoutingSettings = RoutingSettings()
    titles: bool = True
    """Have the model of `routing.utility`, where one is set, word the titles of new sessions."""
    agents: AgentSettings = AgentSettings()
    rules: RuleSettings = RuleSettings()
    rule: tuple[RuleTable, ...] = ()
    """Rules with conditions, each a `[[rule]]`."""
    base_urls: dict[str, str] = {}
    """Vendor → base URL."""
    endpoints: dict[str, EndpointSettings] = {}
    """Further OpenAI-compatible vendors, by the name used in model ids."""
    clouds: CloudSettings = CloudSettings()
    vision: tuple[str, ...] = ()
    """Models that see pictures, `vendor:model`, where that is not known: of local servers, endpoints, OpenRouter."""
    shell: ShellSettings = ShellSettings()
    sandbox: SandboxSettings = SandboxSettings()
    web: WebSettings = WebSettings()
    checks: CheckSettings = CheckSettings()
    history: HistorySettings = HistorySettings()
    catalogue: CatalogueSettings = CatalogueSettings()
    terminal: TerminalSettings = TerminalSettings()
    idle_seconds: float = Field(default=28_800, gt=0)
    """The daemon exits after that long without clients and running turns: by default eight hours, so that an editor
    seldom waits for it to start. An idle daemon takes no CPU time."""
    max_sessions: int = Field(default=100, ge=1)
    """Sessions that are open at once. One more puts away the one nobody looks at, that does nothing and was used
    longest ago; where there is none it is refused."""
    log_level: str = Field(default="info", pattern="^(debug|info|warning|error)$")
    """`debug`, `info`, `warning` or `error`."""

    _warnings: tuple[str, ...] = PrivateAttr(())

    @model_validator(mode="after")
    def _fields_of_the_users_own(self) -> "Settings":
        for pattern, fields in self.request_fields.items():
            if (why := refusal(fields)) is not None:
                raise ValueError(f"request_fields.{pattern}: {why}")
        return self

    @property
    def warnings(self) -> tuple[str, ...]:
        """Sentences about the keys that were passed over in the user's file."""
        return self._warnings

    def with_warnings(self, warnings: Sequence[str]) -> "Settings":
        settings = self.model_copy()
        settings._warnings = tuple(warnings)
        return settings

    @property
    def key_variables(self) -> frozenset[str]:
        """Variables that hold keys of the user's own endpoints."""
        return frozenset(
            endpoint.key_variable for endpoint in self.endpoints.values() if endpoint.key_variable is not None
        )


WORKSPACE_MAY_SET = {"rules": {"deny", "must_ask"}}
"""And `[[rule]]` with the decision deny or mustAsk."""


_MAX_WORKSPACE_RULES = 100_000  # bytes; as much of it as `permissions/trust_store.py` looks at


def load_settings(home: Home, environ: Mapping[str, str]) -> Settings:
    """The user's settings. A key that does not exist is passed over (`warnings`), unless it may have been meant to
    forbid something. Raises `AmanuError` (invalidParams) naming file and field."""
    text = _text(home.settings)
    return settings_from(_parsed(home.settings, text), home, environ, text)


def settings_from(tree: dict[str, Any], home: Home, environ: Mapping[str, str], text: str = "") -> Settings:
    """The settings if that stood in the user's file, as that `text`. Raises as `load_settings` does."""
    variables = set_by_environment(environ)
    for key, variable in variables.items():
        section, _, name = key.rpartition(".")
        table: Any = tree.setdefault(section, {}) if section else tree
        if isinstance(table, dict):
            table[name] = environ[variable]
    return _without_unknown_keys(tree, str(home.settings), text, variables)


def set_by_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Key → the variable that sets it and goes before the file."""
    keys = ("model", "mode", "log_level", "idle_seconds", "catalogue.refresh", "sandbox.layers")
    variables = {key: f"AMANU_{key.replace('.', '_').upper()}" for key in keys}
    return {key: variable for key, variable in variables.items() if environ.get(variable)}


def user_rules(path: Path) -> tuple[RuleSettings, tuple[RuleTable, ...]]:
    """The rules in the user's file as it is now. Raises `AmanuError` as `load_settings` does."""
    text = _text(path)
    settings = _without_unknown_keys(_parsed(path, text), str(path), text)
    return settings.rules, settings.rule


def workspace_rules(root: Path) -> tuple[RuleSettings, tuple[RuleTable, ...]]:
    """What a trusted workspace's own file adds: deny and must-ask rules. Anything else in it is refused."""
    path = root / ".amanu" / "config.toml"
    real = Path(os.path.realpath(path))
    if real.parent.parent != Path(os.path.realpath(root)):  # a link: what it names is not the workspace's to show us
        return RuleSettings(), ()
    if real.is_file() and real.stat().st_size > _MAX_WORKSPACE_RULES:
        raise AmanuError(
            "invalidParams", f"{path} is too big for a rules file; the limit is {_MAX_WORKSPACE_RULES:,} bytes."
        )
    tree = _parsed(path, _text(path))
    for key, value in tree.items():
        if key == "rule":
            continue
        allowed = WORKSPACE_MAY_SET.get(key)
        if allowed is None or not isinstance(value, dict) or not set(value) <= allowed:  # pyright: ignore[reportUnknownArgumentType]
            raise AmanuError(
                "invalidParams",
                f"{path} may only set deny and must_ask in [rules], but it sets {key!r}.",
                path=key,
            )
    settings = _validate(tree, str(path))
    if any(rule.decision == "allow" for rule in settings.rule):
        raise AmanuError("invalidParams", f"{path} may only deny and ask, but it has a rule that allows.", path="rule")
    return settings.rules, settings.rule


def _text(path: Path) -> str:
    if not path.is_file():  # a pipe in a workspace would hold us for ever
        return ""
    try:
        return path.read_bytes().decode()
    except FileNotFoundError:
        return ""
    except ValueError as error:
        raise AmanuError("invalidParams", f"{path} is not valid TOML: {error}.") from error
    except OSError as error:
        raise AmanuError("storageError", f"{path} cannot be read: {error.strerror}.") from error


def _parsed(path: Path, text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text) if text else {}
    except (ValueError, RecursionError) as error:  # also a thousand open brackets
        raise AmanuError("invalidParams", f"{path} is not valid TOML: {error}.") from error


def _without_unknown_keys(
    tree: dict[str, Any], source: str, text: str, variables: Mapping[str, str] = MappingProxyType({})
) -> Settings:
    """`variables` set the keys that do not come from `source`. Raises `AmanuError`."""
    try:
        return Settings.model_validate(tree)
    except ValidationError as error:
        found = [each for each in error.errors(include_url=False) if each["type"] == "extra_forbidden"]
    from amanu.core.unknown_keys import unknown_key, without

    warnings: list[str] = []
    for each in found:
        key = unknown_key(Settings, each["loc"], each["input"], text)
        if key.is_strict:
            raise AmanuError(
                "invalidParams",
                f"{source}: {key.sentence} It may have been meant to forbid something, so nothing runs until it "
                "is mended.",
                path=".".join(map(str, each["loc"])),
            )
        warnings.append(f"{source}: {key.sentence} It is passed over.")
        tree = without(tree, each["loc"])
    return _validate(tree, source, variables).with_warnings(warnings)


def _validate(tree: dict[str, Any], source: str, variables: Mapping[str, str] = MappingProxyType({})) -> Settings:
    try:
        return Settings.model_validate(tree)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        field = ".".join(str(part) for part in first["loc"])
        message = f"{variables.get(field, source)}: {field}: {first['msg']}."
        raise AmanuError("invalidParams", message, path=field) from error
