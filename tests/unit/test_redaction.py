"""What is hidden, what is not, and that it takes time linear in the text."""

import html
import json
import re
import time
from base64 import b64encode, urlsafe_b64encode
from pathlib import Path
from urllib.parse import quote

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from amanu.config import EndpointSettings, Settings, ShellSettings
from amanu.core.tool import ToolError
from amanu.system.process_tree import without_secrets
from amanu.text.redaction import MASK, Secrets, is_secret_name, mask_added
from amanu.tools.shell.output import CommandOutput, LiveOutput
from support.tool_harness import ToolHarness

PEM = (
    "-----BEGIN RSA PRIVATE KEY-----\n" + "MIIEowIBAAKCAQEAxyz0123456789/+abc\n" * 20 + "-----END RSA PRIVATE KEY-----"
)
SHAPES = {
    "Anthropic": "sk-ant-api03-AbCdEf0123456789_-AbCdEf0123456789",
    "OpenAI": "sk-proj-AbCdEf0123456789AbCdEf0123456789",
    "OpenRouter": "sk-or-v1-0123456789abcdef0123456789abcdef",
    "Google": "AIzaSyA0123456789012345678901234567890",
    "GitHub": "ghp_0123456789012345678901234567890123",
    "GitHub, fine": "github_pat_11ABCDEFG0123456789_abcdefghij",
    "GitLab": "glpat-AbCdEf0123456789AbCd",
    "Slack": "xoxb-0123456789-abcdefghij",
    "AWS": "AKIA0123456789ABCDEF",
    "JWT": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9P",
    "npm": "npm_0123456789abcdefghijABCDEFGHIJ012345",
    "PyPI": "pypi-" + "AgEIcHlwaS5vcmc" * 5,
    "Stripe": "sk_live_0123456789abcdefABCDEF",
    "SendGrid": "SG.0123456789abcdefABCDEF.0123456789abcdefABCDEF0123456789",
    "private key": PEM,
    "private key in JSON": PEM.replace("\n", "\\n"),
}


@pytest.mark.parametrize("key", SHAPES.values(), ids=SHAPES)
@pytest.mark.parametrize("around", ["{}", "key: {}", "x\\n{}", "('{}')", "a\n{}\nb", '{{"k": "{}"}}'])
def test_a_key_is_known_by_its_shape(key: str, around: str) -> None:
    secrets = Secrets()
    for mask in (secrets.mask, secrets.mask_output, secrets.mask_content):
        assert mask(around.format(key)) == around.format(MASK)
        assert mask(mask(around.format(key))) == around.format(MASK), "hidden twice is hidden once"


NAMED = [
    ("ANTHROPIC_API_KEY=sk-ant-api03-abcdef", "ANTHROPIC_API_KEY=~"),
    ('{"x-api-key": "abcdef123456"}', '{"x-api-key": "~"}'),
    ("Authorization: Bearer abcdef123456", "Authorization: Bearer ~"),
    ("'authorization': 'Basic abcdef123456'", "'authorization': 'Basic ~'"),
    ("sent bearer abcdef123456.x", "sent bearer ~"),
    ("https://h/v1?key=abcdef123456&alt=sse", "https://h/v1?key=~&alt=sse"),
    ("postgres://me:pass-word@db/x", "postgres://me:~@db/x"),
    ("password = hunter22", "password = ~"),
    ("client_secret: 'abcdefgh'", "client_secret: '~'"),
    ("the key sk-proj-abcdef-ghijkl failed", "the key ~ failed"),
    ("nothing to hide: tokens 12, a key is pressed", "nothing to hide: tokens 12, a key is pressed"),
    ("max_tokens: 128000", "max_tokens: 128000"),
    ("risk-free-tokens-of-text and a task-oriented skill", "risk-free-tokens-of-text and a task-oriented skill"),
]


@pytest.mark.parametrize(("text", "expected"), NAMED)
def test_a_secret_is_known_by_its_name(text: str, expected: str) -> None:
    assert Secrets().mask(text) == expected.replace("~", MASK)


PRINTED = [
    ("GITHUB_TOKEN=abcdefgh", "GITHUB_TOKEN=~"),
    ("export DB_PASSWORD='short one'", "export DB_PASSWORD=~"),
    ("AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7MDENG", "AWS_SECRET_ACCESS_KEY=~"),
    ('"token": "0123456789abcdef0123"', '"token": "~"'),
    ("> authorization: bearer 0123456789ab", "> authorization: bearer ~"),
    ("fetch https://me:pw@example.test/x", "fetch https://me:~@example.test/x"),
    ("AWS_REGION=eu-central-1", "AWS_REGION=eu-central-1"),
    ("API_KEY=$OTHER_VARIABLE", "API_KEY=$OTHER_VARIABLE"),
    ("token = self.next_token()", "token = self.next_token()"),
    ("    password: str = field(default_factory=str)", "    password: str = field(default_factory=str)"),
    ("secret=os.environ['SECRET_NAME']", "secret=os.environ['SECRET_NAME']"),
    (".sk-fading-circle-delay-12 { color: red }", ".sk-fading-circle-delay-12 { color: red }"),
]


@pytest.mark.parametrize(("text", "expected"), PRINTED)
def test_what_commands_print_stays_legible(text: str, expected: str) -> None:
    assert Secrets().mask_output(f"a\n{text}\nb") == f"a\n{expected}\nb".replace("~", MASK)


def test_our_own_code_is_shown_as_it_is() -> None:
    secrets = Secrets()
    for path in sorted((Path(__file__).parents[2] / "server" / "amanu").rglob("*.py")):
        text = path.read_text()
        assert secrets.mask_content(text) == text, path
        assert secrets.mask_output(text) == text, path


@pytest.mark.parametrize("form", ["{}", '{{"x":"{}"}}', "?q={}&", "aaa{}bbb"])
def test_what_is_known_is_hidden_wherever_it_stands(form: str) -> None:
    secrets = Secrets()
    secrets.learn(['odd "key"/1', "short", "  spaced-key-1  "])
    for value in ('odd "key"/1', 'odd \\"key\\"/1', "odd%20%22key%22%2F1", "spaced-key-1"):
        assert secrets.mask_content(form.format(value)) == form.format(MASK)
    assert secrets.mask_content("short") == "short"


_ODD = "Jalr/XUt<nFEMI>+bPxRf&CYEXü!'pq\""


@pytest.mark.parametrize(
    "written",
    [
        json.dumps(_ODD)[1:-1].replace("/", "\\/"),
        json.dumps(_ODD, ensure_ascii=False)[1:-1]
        .replace("<", "\\u003c")
        .replace(">", "\\u003e")
        .replace("&", "\\u0026"),
        json.dumps({"a": json.dumps({"b": _ODD})}),
        quote(_ODD),
        re.sub("%..", lambda found: found[0].lower(), quote(_ODD, safe="")),
        quote(_ODD, safe="!'()*"),
        html.escape(_ODD),
        html.escape(_ODD, quote=False),
        *(b64encode(before + _ODD.encode() + b":more").decode() for before in (b"", b"u:", b"me:", b"you:")),
        urlsafe_b64encode(b"user:" + _ODD.encode()).decode(),
    ],
    ids=str,
)
def test_what_is_known_is_hidden_as_programs_write_it(written: str) -> None:
    secrets = Secrets()
    secrets.learn([_ODD])
    shown = secrets.mask_content(written)
    assert MASK in shown and len(shown.replace(MASK, "")) <= len('{"a": "{\\"b\\": \\"\\"}"}'), shown


@pytest.mark.parametrize(
    ("name", "secret"),
    [
        *(
            (name, True)
            for name in ("GITHUB_TOKEN", "STRIPE_KEY", "PGPASSWORD", "AWS_SESSION_TOKEN", "npm_config__auth")
        ),
        *((name, True) for name in ("SECRET_KEY_BASE", "DB_PASSWD", "GOOGLE_APPLICATION_CREDENTIALS", "MY_PAT")),
        *((name, True) for name in ("MYAPP_CREDS", "STRIPE_SK", "JWT")),
        *(
            (name, False)
            for name in ("PATH", "HOME", "SSH_AUTH_SOCK", "AWS_REGION", "KEYBOARD", "TOKENIZERS_PARALLELISM")
        ),
        *((name, False) for name in ("PWD", "OLDPWD", "XAUTHORITY", "MONKEY", "GIT_AUTHOR_NAME")),
    ],
)
def test_names_of_secrets(name: str, secret: bool) -> None:
    assert is_secret_name(name) == secret


WAYS = {
    "DATABASE_URL": "postgres://me:S3cret@db.example/x",
    "HTTP_PROXY": "http://me:S3cret@proxy:8080",
    "SENTRY_DSN": "https://examplePublicS3cret@o0.ingest.sentry.io/0",
    "ERRORS": "https://0123456789abcdef0123456789abcdef@o0.ingest.sentry.io/0",
    "SLACK_WEBHOOK": "S3cret",
    "NOTIFY": "https://hooks.slack.com/services/T0/B0/S3cret",
    "CONN_STR": "S3cret",
    "DB": "Server=db;User Id=me;Password=S3cret;",
    "SSH_AUTH_SOCK": "/tmp/S3cret/agent.1",
    "KUBECONFIG": "/home/me/S3cret",
}
PLAIN = {
    "EDITOR_URL": "https://example.com/a:b@c",
    "GREETING": "hello",
    "DEBUG": "a=1;b=2",
    "REDIS": "redis://localhost:6379",
}


def test_who_reaches_no_service_knows_no_way_to_one() -> None:
    environment = {**WAYS, **PLAIN}
    kept = without_secrets(environment, ())
    assert "S3cret" not in str(kept) and "0123456789abcdef" not in str(kept)
    assert kept["DATABASE_URL"] == "postgres://me:hidden@db.example/x", "what reads it still works"
    assert {name: kept[name] for name in PLAIN} == PLAIN
    assert without_secrets(environment, (), services=True) == environment
    assert without_secrets(environment, (), ["SENTRY_DSN"])["SENTRY_DSN"] == WAYS["SENTRY_DSN"]


HOSTILE = [
    "a",
    " ",
    "a-",
    "token",
    "token:",
    "sk-",
    "eyJ",
    "eyJaaaaaaaaaaa.",
    "://a:",
    "=\n",
    "_key",
    "A_KEY=abcdefgh ",
    "token=1",
    "token=",
]


@pytest.mark.parametrize("text", [*HOSTILE, "-----BEGIN PRIVATE KEY-----\n", "authorization: bearer ", "?key=", "gh"])
def test_time_is_linear_whatever_the_text(text: str) -> None:
    secrets = Secrets()
    secrets.learn([f"my-own-key-{number}" for number in range(5)])
    for mask in (secrets.mask, secrets.mask_output, secrets.mask_content):
        started = time.process_time()
        mask(text * (200_000 // len(text)))
        assert time.process_time() - started < 1, "200 KB; a text of twice the power would take minutes"


@settings(max_examples=30, deadline=None)
@given(st.integers(60_000, 70_000), st.sampled_from([SHAPES["GitHub"], "my-own-key-1", "DB_PASSWORD=abcdefgh", PEM]))
@example(65_504, PEM)  # cut in its first line
@example(65_515, PEM)
def test_a_key_is_found_in_a_long_text_wherever_it_is_cut(at: int, key: str) -> None:
    secrets = Secrets()
    secrets.learn(["my-own-key-1"])
    filler = "x" * 59 + "\n"
    before = filler * (at // 60) + " " * (at % 60) + "\n"
    assert secrets.mask_output(before + key + "\n" + filler * 2000).count(MASK) == 1
    if key[:3] != "DB_":  # of code, only lines of their own are taken for what sets a variable
        assert key not in secrets.mask_output(before.replace("\n", " ") + key + " " + "y " * 60_000)


@pytest.mark.parametrize("chunk", [1, 7, 1000])
def test_a_key_that_comes_in_pieces_is_hidden_in_all_that_is_shown_and_kept(chunk: int) -> None:
    secrets = Secrets()
    secrets.learn(["my-own-key-1"])
    data = f"a\n{SHAPES['GitHub']}\n{PEM}\nmy-own-key-1 and\nTOKEN=abcdefgh\nend".encode()
    output, live, shown = CommandOutput(1 << 20, secrets.mask_output), LiveOutput(1 << 20, secrets.mask_output), ""
    for at in range(0, len(data), chunk):
        output.add(data[at : at + chunk])
        live.add(data[at : at + chunk])
        shown += live.take()
    shown += live.take(last=True)
    expected = f"a\n{MASK}\n{MASK}\n{MASK} and\nTOKEN={MASK}\nend"
    assert shown == expected and output.text(10_000) == (expected, False) and output.tail(10_000)[0] == expected
    assert output.masked().decode() == expected


@pytest.mark.parametrize("ends", ["\n", " "])
@pytest.mark.parametrize("keep", range(10_000, 10_050, 7))
def test_a_key_at_the_end_of_what_is_stored_is_hidden(keep: int, ends: str) -> None:
    output = CommandOutput(keep, Secrets().mask_output)
    output.add(f"{SHAPES['GitHub']}{ends}".encode() * 1_000)
    assert "ghp_" not in output.masked().decode()


def test_much_is_shown_in_parts() -> None:
    live = LiveOutput(1_000_000, Secrets().mask_output)
    data = f"{'x' * 99}\n{SHAPES['OpenAI']}\n" * 2_000
    live.add(data.encode())
    parts: list[str] = []
    while part := live.take():
        parts.append(part)
    assert len(parts) > 3 and max(map(len, parts)) <= 64 * 1024
    assert "".join(parts) == Secrets().mask_output(data)


def test_what_is_kept_ends_before_a_key_that_was_cut() -> None:
    output = CommandOutput(100, Secrets().mask_output)
    output.add(b"a\n" * 40 + f"{SHAPES['GitHub']}\n".encode())
    assert output.masked() == b"a\n" * 40


# What tools do with it ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("edit_file", {"old_text": "b = 1\n", "new_text": f"b = 2\nc = '{MASK}'\n"}),
        ("edit_file", {"old_text": f"KEY = '{MASK}'\n", "new_text": "KEY = ''\n"}),
        ("write_file", {"content": f"KEY = '{MASK}'\nb = 2\n"}),
    ],
)
async def test_no_edit_writes_the_mark_into_a_file(tmp_path: Path, tool: str, arguments: dict[str, str]) -> None:
    text = f"KEY = '{SHAPES['GitHub']}'\nb = 1\n"
    harness = ToolHarness(tmp_path, {"a.py": text})
    with pytest.raises(ToolError, match="no edit can write it"):
        await harness.run(tool, {"path": "a.py", **arguments})
    assert harness.on_disk("a.py") == text.encode()
    await harness.run("edit_file", {"path": "a.py", "old_text": "b = 1\n", "new_text": "b = 2\n"})
    assert harness.on_disk("a.py") == text.replace("b = 1", "b = 2").encode()


def test_a_text_that_has_the_mark_already_may_keep_it() -> None:
    assert not mask_added(f"a {MASK}", f"b {MASK}") and mask_added(f"a {MASK}", f"{MASK} {MASK}")


@pytest.mark.parametrize(
    ("passed", "expected"),
    [((), "0"), (("GITHUB_TOKEN", "ANTHROPIC_API_KEY", "MY_MODELS"), "1")],
)
async def test_commands_get_only_the_secrets_the_user_passes_on(
    tmp_path: Path, passed: tuple[str, ...], expected: str
) -> None:
    names = ("GITHUB_TOKEN", "AWS_SECRET_ACCESS_KEY", "DB_PASSWORD", "ANTHROPIC_API_KEY", "MY_MODELS")
    environment = {"PATH": "/usr/bin:/bin", "ODD": SHAPES["GitLab"], **dict.fromkeys(names, "s3cr3t")}
    endpoint = EndpointSettings(base_url="http://127.0.0.1:9/v1", key_variable="MY_MODELS")
    settings = Settings(shell=ShellSettings(pass_environment=passed), endpoints={"mine": endpoint})
    harness = ToolHarness(tmp_path, environment=environment, settings=settings)
    outcome = await harness.run("run_shell_command", {"command": "env | grep -c -e s3cr3t -e glpat"})
    assert outcome.for_model.startswith(f"{expected}\n")


def test_values_that_replace_each_other_are_hidden_twice() -> None:
    secrets = Secrets()
    secrets.learn(["a-lasting-secret"])
    for number in range(4):
        secrets.learn_current("token", [f"a-token-of-hour-{number}", ""])
        secrets.learn_current("token", [f"a-token-of-hour-{number}"])
    secrets.learn_current("other", ["of-another-kind"])
    shown = secrets.mask_content(
        "a-lasting-secret of-another-kind " + " ".join(f"a-token-of-hour-{n}" for n in range(4))
    )
    assert shown == f"{MASK} {MASK} a-token-of-hour-0 a-token-of-hour-1 {MASK} {MASK}"
