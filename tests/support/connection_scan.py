"""Everything the source can connect to, read from the source itself: calls that open a connection or start a program,
packages that it imports, and addresses that stand in its texts.

`privacy_page.py` has a row for each; `tests/unit/test_privacy.py` holds it to that.
"""

import ast
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]

_OPENS = re.compile(
    r"(?:.*\.)?(?:AsyncClient|AsyncHTTPTransport|HTTPTransport|HttpClient|http_client|AsyncAnthropic\w*"
    r"|(?:streamable_http|sse|stdio|websocket)_client|genai\.Client|httpx2\.(?:Client|get|post|put|request|stream)"
    r"|open_connection|open_unix_connection|create_connection|create_unix_connection|create_datagram_endpoint"
    r"|start_server|start_unix_server|create_server|create_unix_server|sock_connect|connect_tcp|connect_unix_socket"
    r"|getaddrinfo|gethostby\w+|getnameinfo|urlopen|urlretrieve|socketpair|socket\.socket"
    r"|create_subprocess_exec|create_subprocess_shell|subprocess_exec|subprocess_shell|start_process"
    r"|subprocess\.(?:run|Popen|call|check_\w+|getoutput|getstatusoutput)|webbrowser\.\w+|http\.client\.\w+"
    r"|os\.(?:exec\w+|spawn\w+|posix_spawn\w*|system|popen)|pty\.(?:spawn|fork)"
    r"|google\.auth\.(?:default|load_\w+|transport\.[\w.]+)|boto3\.\w+)"
)
"""Calls that open connections, with the names that the file imports spelled out."""
_STANDARD = frozenset(
    (
        *("ftplib", "imaplib", "multiprocessing", "nntplib", "poplib", "smtplib", "socketserver", "telnetlib"),
        *("wsgiref", "xmlrpc"),
    )
)
"""Modules of the standard library that connect or start programs in ways that `_OPENS` does not know."""

_EXTENSION_OPENS = re.compile(
    r"(?<![\w.])(?<!async )(?:fetch|spawn|spawnSync|exec|execSync|execFile|execFileSync|fork)(?=\()"
    r"|(?<=new )(?:WebSocket|XMLHttpRequest|EventSource|LanguageClient)(?=\()"
    r"|openExternal(?=\()|createTerminal(?=\()|sendBeacon(?=\()|createTelemetryLogger(?=\()|asExternalUri(?=\()"
)
_EXTENSION_IMPORTS = re.compile(r"\b(?:from|import|require\(|import\()\s*[\"']([^.\"'\n][^\"'\n]*)[\"']")
_NEOVIM_OPENS = re.compile(
    r"vim\.system(?=\()|jobstart(?=\()|termopen(?=\()|new_tcp(?=\()|new_pipe(?=\()|vim\.ui\.open(?=\()|vim\.net\.\w+"
    r"|fn\.system\w*(?=\()|sockconnect(?=\()|lsp\.rpc\.\w+(?=\()|lsp\.start\w*(?=\()|io\.popen(?=\()|os\.execute(?=\()"
)
_ADDRESS = re.compile(r"(?:https?|wss?)://([\w.{}-]*\w[\w.{}-]*)", re.IGNORECASE)
_HOST = re.compile(r"(?:[\w{}-]+\.)+(?:googleapis\.com|amazonaws\.com|azure\.com)\b")
"""Hosts of the clouds, also without `https://`: they are put together. Elsewhere a bare host names a page to read."""


@dataclass(frozen=True)
class Found:
    """The connections and hosts of one file."""

    opens: frozenset[str]
    """Calls that connect or start a program."""
    hosts: frozenset[str]
    """The hosts in its texts; `{}` stands for what is filled in."""
    packages: frozenset[str]
    """Packages of others, and parts of the standard library that the scan does not see through."""


def scan(root: Path = ROOT) -> Mapping[str, Found]:
    """Every file of the daemon and of both clients, by its path in the repository."""
    readers = {
        ("server", ".py"): read_python,
        ("vscode-extension/src", ".ts"): _read_extension,
        ("vscode-extension/src", ".css"): _read_extension,
        ("neovim", ".lua"): _read_neovim,
    }
    return {
        str(path.relative_to(root)): read(path.read_text("utf-8"))
        for (folder, ending), read in readers.items()
        for path in sorted((root / folder).rglob(f"*{ending}"))
    }


def read_python(text: str) -> Found:
    nodes = tuple(ast.walk(ast.parse(text)))
    names = _imported(nodes)
    calls = (_dotted(node.func, names) for node in nodes if isinstance(node, ast.Call))
    texts = [each.replace("\\.", ".") for each in _texts(nodes)]  # as in a pattern
    hosts = (host for each in texts for host in (*_ADDRESS.findall(each), *_HOST.findall(each)))
    return Found(
        frozenset(".".join(call.split(".")[-2:]).removeprefix("?.") for call in calls if _OPENS.fullmatch(call)),
        frozenset(host for host in hosts if "." in host.strip("{}.")),
        frozenset(_packages(nodes)),
    )


def _read_extension(text: str) -> Found:
    code = without_comments(text)
    return Found(
        frozenset(_EXTENSION_OPENS.findall(code)),
        frozenset(_ADDRESS.findall(code)),
        frozenset(_EXTENSION_IMPORTS.findall(code)),
    )


def _read_neovim(text: str) -> Found:
    code = re.sub(r"--.*", "", text)
    return Found(frozenset(_NEOVIM_OPENS.findall(code)), frozenset(_ADDRESS.findall(code)), frozenset())


def without_comments(text: str) -> str:
    """TypeScript or CSS. `//` in an address begins no comment."""
    return re.sub(r"(?<![:\\\w\"'`])//[^\n]*", "", re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL))


def _packages(nodes: Sequence[ast.AST]) -> set[str]:
    named: set[str] = set()
    for node in nodes:
        match node:
            case ast.Import(names=names):
                named |= {each.name for each in names}
            case ast.ImportFrom(module=str(module), level=0):
                named.add(module)
            case ast.Call(func=ast.Attribute(attr="import_module"), args=[ast.Constant(value=str(module)), *_]):
                named.add(module)
            case _:
                pass
    tops = {name.partition(".")[0] for name in named}
    return {top for top in tops if top not in sys.stdlib_module_names or top in _STANDARD} - {"amanu", "amanu_protocol"}


def _imported(nodes: Sequence[ast.AST]) -> Mapping[str, str]:
    """Name in the file → what it stands for, imports inside functions too."""
    names: dict[str, str] = {}
    for node in nodes:
        match node:
            case ast.Import(names=imported):
                names |= {each.asname: each.name for each in imported if each.asname}
            case ast.ImportFrom(module=str(module), names=imported, level=0):
                names |= {each.asname or each.name: f"{module}.{each.name}" for each in imported}
            case _:
                pass
    return names


def _dotted(node: ast.expr, names: Mapping[str, str]) -> str:
    match node:
        case ast.Name(id=name):
            return names.get(name, name)
        case ast.Attribute(value=value, attr=attribute):
            return f"{_dotted(value, names)}.{attribute}"
        case _:
            return "?"


def _texts(nodes: Sequence[ast.AST]) -> Iterator[str]:
    """Every text but docstrings; what an f-string fills in is `{}`."""
    inside: set[int] = set()
    for node in nodes:
        match node:
            case ast.Expr(value=ast.Constant() as docstring):
                inside.add(id(docstring))
            case ast.JoinedStr(values=values):
                inside |= {id(value) for value in values}
                yield "".join(str(value.value) if isinstance(value, ast.Constant) else "{}" for value in values)
            case ast.Constant(value=str(text)) if id(node) not in inside:
                yield text
            case _:
                pass
