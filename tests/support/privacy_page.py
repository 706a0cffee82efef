"""The table of `docs/privacy.md`: each connection that Amanu can open, with the files that open it.

PYTHONPATH=tests python -m support.privacy_page    writes it

A new file that connects or starts a program belongs to a row of `ROWS` (a new one, or an existing one whose words still
hold), or to `STAYS` if nothing leaves the machine. `tests/unit/test_privacy.py` compares both with the source.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "privacy.md"
BEGINS, ENDS = "<!-- generated: connections -->\n", "<!-- end -->\n"

_MODELS = "server/amanu/models/"


@dataclass(frozen=True)
class Row:
    to: str
    when: str
    sent: str
    off: str
    opens: Mapping[str, str] = field(default_factory=dict[str, str])
    """File → what it calls (`connection_scan.py`)."""
    hosts: Mapping[str, str] = field(default_factory=dict[str, str])
    """Host that stands in the source (`{}` is filled in) → how the page writes it."""


def _as_they_are(*hosts: str) -> dict[str, str]:
    return {host: host for host in hosts}


ROWS = (
    Row(
        "The service of the model you chose: Anthropic (`api.anthropic.com`), Google "
        "(`generativelanguage.googleapis.com`), OpenAI (`api.openai.com`), OpenRouter (`openrouter.ai`)",
        "During a turn, and for side questions (titles, summaries, judgements). Connecting, without a request: when a "
        "session opens, and when you type in the prompt",
        "The conversation: your prompts with what you attach, memory (`AGENTS.md`), the date, folder and git branch, "
        "names of top-level files, which common programs are installed, what tools read, what commands print, "
        "pictures; your key; a session's id (OpenAI); versions of the vendor's SDK, Python and your system",
        "No key or sign-in: no connection. `base_urls` or `…_BASE_URL` name another address; models on your machine: "
        "below. Files that must not leave: `rules.deny` with `@read(…)`",
        {
            f"{_MODELS}http.py": "httpx2.AsyncHTTPTransport transport.HttpClient",
            f"{_MODELS}preconnect.py": "_inner.connect_tcp",
            f"{_MODELS}anthropic.py": "anthropic.AsyncAnthropic http.http_client",
            f"{_MODELS}gemini.py": "genai.Client http.http_client",
            f"{_MODELS}openai_endpoint.py": "http.http_client",
        },
        _as_they_are("api.anthropic.com", "generativelanguage.googleapis.com", "api.openai.com", "openrouter.ai"),
    ),
    Row(
        "Models in your cloud: `bedrock-mantle.REGION.api.aws`, `REGION-aiplatform.googleapis.com` (also "
        "`aiplatform.googleapis.com`, `aiplatform.REGION.rep.googleapis.com`), `RESOURCE.services.ai.azure.com`; the "
        "sign-in services of AWS and Google that your credentials name, on a cloud's machine its metadata service",
        "As above, once you choose such a model",
        "As above; the sign-in services get your credentials",
        "Choose no `bedrock:`, `vertex:` or `foundry:` model",
        {
            f"{_MODELS}anthropic_clouds.py": "anthropic.AsyncAnthropicFoundry bedrock.AsyncAnthropicBedrockMantle "
            "vertex.AsyncAnthropicVertex",
            f"{_MODELS}vertex.py": "genai.Client",
            f"{_MODELS}google_credentials.py": "requests.Request",
        },
        {
            "bedrock-mantle.{}.api.aws": "bedrock-mantle.REGION.api.aws",
            "{}-aiplatform.googleapis.com": "REGION-aiplatform.googleapis.com",
            "aiplatform.googleapis.com": "aiplatform.googleapis.com",
            "aiplatform.{}.rep.googleapis.com": "aiplatform.REGION.rep.googleapis.com",
            "{}.services.ai.azure.com": "RESOURCE.services.ai.azure.com",
        },
    ),
    Row(
        "An endpoint of your own (`[endpoints.NAME]`)",
        "As above, once you choose one of its models. For their names, each time that models are listed",
        "As for a vendor's service, with the key that `key_variable` names; for the names only the key",
        "Remove it from `config.toml`",
        {f"{_MODELS}openai_endpoint.py": "http.http_client"},
    ),
    Row(
        "Model servers on this machine (Ollama, llama.cpp, vLLM at `127.0.0.1`, or where `base_urls` says)",
        "For the names of its models, each time that models are listed (choosing a model, completing `--model`). "
        "Once you allow it (`amanu auth local NAME`), also during a turn",
        "For the names nothing; else as for a vendor's service",
        "Do not allow it; the names are asked for all the same. An address in `base_urls` can be another machine: then "
        "it leaves this one",
        {f"{_MODELS}local.py": "httpx2.AsyncClient", f"{_MODELS}local_windows.py": "httpx2.AsyncClient"},
    ),
    Row(
        "Models that other VS Code extensions share (GitHub Copilot)",
        "Once you choose one: VS Code connects, not Amanu",
        "The conversation, to that extension",
        "Choose another model",
    ),
    Row(
        "`auth.openai.com`",
        "`amanu auth login openai` (*Sign In with ChatGPT*); then when a token must be renewed",
        "What OAuth needs: a client id, codes, tokens. Your browser shows the page",
        "Use a key; `amanu auth logout openai`",
        {
            f"{_MODELS}openai_identity.py": "httpx2.AsyncClient",
            f"{_MODELS}oauth_callback.py": "asyncio.start_server",
        },
        _as_they_are("auth.openai.com"),
    ),
    Row(
        "The lists of models of the vendors you have a key for",
        "Once a day, by the daemon; on `amanu models --refresh`; to test a key that you store",
        "The key, nothing else",
        "`[catalogue] refresh = false`",
        {f"{_MODELS}listing_request.py": "http.http_client"},
    ),
    Row(
        "OpenRouter's public list of models and prices (`openrouter.ai`)",
        "Off by default; with `[catalogue] prices = true` once a day",
        "Nothing",
        "Leave `prices` off",
        {f"{_MODELS}listing_request.py": "http.http_client"},
    ),
    Row(
        "A page on the web, or your proxy (`github.com` files come from `raw.githubusercontent.com`)",
        "The model calls `web_fetch`, and a rule or you allow that host; you mention an address (`@https://…`)",
        "The address, `Amanu/VERSION` as user agent. No cookie, no key",
        "`rules.deny` with `web_fetch`; each host is asked about first",
        {"server/amanu/web/fetch.py": "getaddrinfo httpx2.AsyncClient httpx2.AsyncHTTPTransport"},
        _as_they_are("github.com", "raw.githubusercontent.com"),
    ),
    Row(
        "A search service: that of the model's vendor, or `[web] search`: `api.search.brave.com`, `api.tavily.com`, "
        "your SearXNG",
        "The model calls `web_search`: without asking, unless a rule requires it",
        "The query, and the key of that service",
        "`rules.deny` with `web_search`",
        {"server/amanu/web/search.py": "http.http_client"},
        _as_they_are("api.search.brave.com", "api.tavily.com"),
    ),
    Row(
        "A remote MCP server, and the sign-in service that it names",
        "Once you have approved it: when a session starts it, during calls, and to sign in",
        "Arguments of the calls; its `headers`; tokens of the sign-in",
        "Do not approve it; `/mcp off NAME`; remove it",
        {
            "server/amanu/mcp/http.py": "getaddrinfo httpx2.AsyncClient httpx2.AsyncHTTPTransport "
            "streamable_http.streamable_http_client",
            "server/amanu/mcp/events.py": "httpx2.AsyncClient",
        },
    ),
    Row(
        "Whatever an MCP server on this machine connects to",
        "Once you have approved it, if its access includes `network` (as for `npx`, `uvx` and the like)",
        "What that program sends; `npx` and `uvx` send package names first",
        "`network = false`; do not approve it",
        {"server/amanu/sandbox/sandboxed_process.py": "tasks.start_process"},
    ),
    Row(
        "Whatever a command connects to: package registries, git remotes, ssh hosts",
        "Only a command that a rule or you allowed with network access, or to run outside the sandbox; others have no "
        "network access. Amanu itself never fetches or pushes",
        "What that program sends; it gets none of your keys except those in `shell.pass_environment`",
        "Do not allow it; `rules.deny`. Where no sandbox works, you are asked about each command, and it can use "
        "the network",
        {
            "server/amanu/tools/shell/command_process.py": "tasks.start_process",
            "server/amanu/tools/shell/job.py": "tasks.start_process",
        },
    ),
    Row(
        "Whatever a hook connects to",
        "A hook you approved that says `network` or `outside`; others have no network access",
        "What it was written to send; it is told about calls, prompts and replies",
        "Do not approve it; remove it from `hooks.json`",
        {"server/amanu/sandbox/sandboxed_process.py": "tasks.start_process"},
    ),
    Row(
        "Your package index (PyPI, or the one that pip is set to use)",
        "VS Code, *Install the Daemon*, and an update of the extension",
        "Names and versions of packages, as pip does",
        "Set `amanu.server.path` to an `amanu` of your own",
        {"vscode-extension/src/daemon/run.ts": "spawn"},
    ),
    Row(
        "Pages in your browser: sign-ins, pages where you get keys (`platform.claude.com`, `platform.openai.com`, "
        "`aistudio.google.com`, `openrouter.ai`, `console.aws.amazon.com`, `ai.azure.com`, "
        "`api-dashboard.search.brave.com`, `app.tavily.com`), `www.python.org`",
        "You ask for it: a sign-in, a button, a link",
        "What your browser sends",
        "Do not press it",
        {
            "server/amanu/cli/mcp.py": "webbrowser.open",
            "server/amanu/cli/sign_in.py": "webbrowser.open",
            "vscode-extension/src/daemon/setup.ts": "openExternal",
            "vscode-extension/src/models/signIn.ts": "openExternal",
            "vscode-extension/src/models/keyInput.ts": "openExternal",
            "vscode-extension/src/mcp/page.ts": "openExternal",
            "neovim/lua/amanu/sessions/mcp.lua": "vim.ui.open",
        },
        _as_they_are(
            *("platform.claude.com", "platform.openai.com", "aistudio.google.com", "openrouter.ai"),
            *("console.aws.amazon.com", "ai.azure.com", "api-dashboard.search.brave.com", "app.tavily.com"),
            "www.python.org",
        ),
    ),
    Row(
        "The addresses of all model services",
        "`amanu doctor --online`",
        "A request without a key",
        "Leave `--online` out",
        {"server/amanu/cli/doctor.py": "httpx2.AsyncClient"},
    ),
)

STAYS: Mapping[str, tuple[str, str]] = {
    # File → what it calls, and why nothing of it leaves the machine.
    "server/amanu/cli/doctor.py": ("asyncio.open_unix_connection", "the daemon's socket"),
    "server/amanu/cli/ui/clipboard.py": ("tasks.start_process", "prints the picture in the clipboard"),
    "server/amanu/cli/ui/programs.py": ("subprocess.run", "the user's pager and editor"),
    "server/amanu/client/connect.py": ("asyncio.open_unix_connection", "the daemon's socket"),
    "server/amanu/daemon/main.py": ("asyncio.open_unix_connection asyncio.start_unix_server", "the daemon's socket"),
    "server/amanu/daemon/relay.py": ("socket.socket subprocess.Popen", "the daemon's socket; starts the daemon"),
    "server/amanu/daemon/serve.py": ("socket.socket", "the socket that an editor on this machine listens on"),
    "server/amanu/daemon/standalone.py": ("asyncio.open_connection socket.socketpair", "a pair within the process"),
    "server/amanu/frontends/lsp/connection.py": (
        "asyncio.open_connection socket.socketpair",
        "a pair within the process",
    ),
    "server/amanu/sandbox/escape_attempts.py": (
        "socket.socket socket.socketpair subprocess.run",
        "tries what the sandbox must prevent, on sockets of this process",
    ),
    "server/amanu/sandbox/launcher.py": ("os.execvpe", "becomes the program that a row above starts"),
    "server/amanu/sandbox/layers/trial.py": ("tasks.start_process", "a command of ours in the sandbox"),
    "server/amanu/sandbox/self_test.py": (
        "socket.create_server socket.socket tasks.start_process",
        "listens on loopback for `escape_attempts.py`",
    ),
    "server/amanu/sandbox/start_gate.py": ("socket.socketpair", "a pair within the process"),
    "server/amanu/system/pdf_text.py": ("tasks.start_process", "reads a PDF that is there"),
    "server/amanu/system/tasks.py": ("asyncio.create_subprocess_exec", "starts what others name"),
    "server/amanu/tools/shell/job.py": ("asyncio.open_connection", "asks 127.0.0.1 whether a job listens; its worker"),
    "server/amanu/web/fetch.py": ("tasks.start_process", "reads a page that is there"),
    "server/amanu/workspace/git_patch.py": ("subprocess.run", "git apply on a folder of ours"),
    "server/amanu/workspace/search.py": ("tasks.start_process", "ripgrep and the built-in search"),
    "vscode-extension/src/daemon/client.ts": ("LanguageClient", "starts the daemon"),
    "vscode-extension/src/sessions/callTerminals.ts": ("createTerminal", "shows output"),
    "vscode-extension/src/sessions/jobs.ts": ("createTerminal", "shows output"),
    "vscode-extension/src/chat/code.ts": ("createTerminal", "the user's own terminal gets a text to run"),
    "neovim/lua/amanu/wire/client.lua": ("lsp.start lsp.start_client", "starts the daemon"),
    "neovim/lua/amanu/health.lua": ("vim.system", "amanu --version"),
    "neovim/lua/amanu/sessions/login.lua": ("jobstart termopen", "amanu auth login, which has a row"),
}
NAMED: Mapping[str, str] = {
    # Host that stands in a text → why nothing connects to it.
    "127.0.0.1": "this machine",
    "www.googleapis.com": "the name of a scope",
    "www.w3.org": "the name of a format",
}
PACKAGES = frozenset(
    (
        # Their clients are found where they are made.
        *("anthropic", "google", "httpx2", "httpcore2", "mcp", "anyio", "vscode-languageclient/node"),
        # They connect to nothing.
        *("cart", "cattrs", "chardet", "filelock", "idna", "jsonschema", "lsprotocol", "markdown_it", "mcp_types"),
        *(
            "orjson",
            "pathspec",
            "prompt_toolkit",
            "puremagic",
            "pydantic",
            "pydantic_core",
            "pygls",
            "pygments",
            "pypdf",
        ),
        *("rapidfuzz", "rich", "tomlkit", "tree_sitter", "tree_sitter_bash", "watchfiles", "yaml"),
        *(
            "diff",
            "jsonc-parser",
            "katex",
            "markdown-it",
            "vscode",
            "node:child_process",
            "node:crypto",
            "node:fs",
            "node:os",
        ),
        *("node:path", "node:readline", "node:worker_threads", "@shikijs/engine-oniguruma"),
        *("@shikijs/engine-oniguruma/wasm-inlined", "@shikijs/primitive", "@shikijs/primitive/textmate"),
        *("@shikijs/themes/dark-plus", "@shikijs/themes/github-dark-high-contrast"),
        *("@shikijs/themes/github-light-high-contrast", "@shikijs/themes/light-plus"),
        *("@vscode/codicons/dist/codicon.css", "katex/dist/katex.min.css"),
    )
)


def table() -> str:
    lines = ["| to | when | what is sent | how to prevent it |", "|---|---|---|---|"]
    lines += [f"| {row.to} | {row.when} | {row.sent} | {row.off} |" for row in ROWS]
    return "\n".join(lines) + "\n"


def page() -> str:
    before, rest = PAGE.read_text("utf-8").split(BEGINS)
    return f"{before}{BEGINS}{table()}{ENDS}{rest.partition(ENDS)[2]}"


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8", newline="\n")
