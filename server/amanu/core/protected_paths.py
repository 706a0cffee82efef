"""Names that git, editors and agents run or are led by, and those that hold secrets. One list for policy, which asks
before they are changed, and for the sandbox, in which commands cannot change them (facts/security.md §2, cases 5, 15,
18, 21, 25). Names are compared with case folded: on some systems `.ENV` is `.env`."""

import re
from collections.abc import Iterable

FOLDERS = (
    *(".git", ".husky"),
    *(".vscode", ".idea", ".zed", ".devcontainer", ".helix", ".fleet"),
    *(".cursor", ".claude", ".gemini", ".codex", ".opencode", ".roo", ".clinerules", ".windsurf"),
)
"""Protected with all that is in them. `.git` may be a file that leads to another folder."""

FILES = (
    *(".gitmodules", ".gitconfig", ".gitattributes", ".pre-commit-config.yaml", ".pre-commit-config.yml"),
    *(".ripgreprc", ".npmrc", ".bashrc", ".mcp.json", ".devcontainer.json", "opencode.json", "opencode.jsonc"),
    *(".exrc", ".nvimrc", ".nvim.lua", ".vimrc", ".dir-locals.el", ".cursorrules", ".windsurfrules"),
    *("AGENTS.md", "CLAUDE.md", "GEMINI.md"),  # project memory: what one session writes, all later ones obey
)

PATHS = (".github/workflows", ".github/copilot-instructions.md")
"""Files and folders that are protected in a folder of that name alone."""

ENDINGS = (".code-workspace", ".sublime-project")

CHECKED_OUT = (".gitattributes", ".pre-commit-config.yaml", ".pre-commit-config.yml", ".npmrc", *PATHS)
"""Of these, what differs between the branches of most repositories: a line of nothing but git commands may change it,
or no branch could be left."""

AMANU_FOLDER = ".amanu"
"""Our own folder in a workspace; plans in it may be written by the file tools, so policy has a rule of its own."""

SHELL_FILES = (".envrc", ".mise.toml", "mise.toml", ".tool-versions")
"""What a shell runs or obeys on entering a folder. Policy asks about `.env*` anyway."""

GLOBS = (
    *(glob for name in (*FOLDERS, *PATHS) for glob in (f"**/{name}", f"**/{name}/**")),
    *(f"**/{name}" for name in FILES),
    *(f"**/*{ending}" for ending in ENDINGS),
)
"""For rules of policy."""

HOME_FILES = (
    *(".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".bash_aliases", ".profile", ".inputrc"),
    *(".zshrc", ".zshenv", ".zprofile", ".zlogin", ".zlogout", ".kshrc", ".cshrc", ".tcshrc", ".login", ".xprofile"),
    *(".xinitrc", ".xsessionrc", ".pam_environment", ".emacs", ".gdbinit", ".tmux.conf", ".screenrc", ".curlrc"),
    *(".wgetrc", ".pythonrc", ".psqlrc", ".npmrc", ".hgrc"),
)
HOME_FOLDERS = (
    *(".config", ".emacs.d", ".vim", ".local/bin", ".local/lib", ".local/share/applications"),
    *(".local/share/systemd", ".local/share/dbus-1", ".oh-my-zsh", "bin", "Library/LaunchAgents"),
)
"""What a login, a shell or a desktop runs: protected where the workspace is the home folder, or above it."""

SECRETS = (
    *(".env*", "id_rsa", "id_dsa", "id_ecdsa", "id_ecdsa_sk", "id_ed25519", "id_ed25519_sk", ".ssh", ".gnupg"),
    *("credentials.json", "client_secret*.json", "service-account*.json", "service_account*.json", "*.kdbx", "*.ppk"),
    *(".netrc", "_netrc", ".git-credentials", ".config/git/credentials", ".npmrc", ".pypirc", ".pgpass", ".my.cnf"),
    *(".aws/credentials", ".azure", ".kube", ".docker/config.json", ".config/containers", ".config/gcloud"),
    *(".config/gh", ".config/glab-cli", ".config/hub", ".pip", ".cargo/credentials", ".cargo/credentials.toml"),
    *(".gem/credentials", ".m2/settings.xml", ".m2/settings-security.xml", ".gradle/gradle.properties"),
    *(".composer/auth.json", ".config/composer", ".terraform.d", ".terraformrc", ".vault-token", ".boto", ".s3cfg"),
    *(".config/rclone", ".config/sops", ".config/op", ".password-store", ".snowflake", ".config/configstore"),
    *(".config/heroku", ".fly", ".local/share/keyrings", ".local/share/kwalletd", ".local/share/TelegramDesktop"),
    *(".config/Signal", ".config/Slack", ".config/discord", ".mozilla", ".thunderbird", ".config/google-chrome"),
    *(".config/chromium", ".config/BraveSoftware", ".config/microsoft-edge", ".config/opera", ".config/vivaldi"),
    *(".var/app", ".codex/auth.json", ".config/openai", ".anthropic", ".config/anthropic", ".claude.json"),
    *(".claude/.credentials.json", ".gemini/oauth_creds.json", ".config/github-copilot", ".local/share/opencode"),
    *(".huggingface", ".cache/huggingface/token", ".bash_history", ".zsh_history", ".python_history"),
    *(".node_repl_history", ".psql_history", ".mysql_history", ".Xauthority", ".ICEauthority"),
    *("Library/Keychains", "Library/Cookies", "Library/Application Support"),
)  # fmt: skip
"""Keys, tokens, browser profiles, histories, wherever they lie; of folders, all that is in them. `*` stays in a name.
Precise: `id_generator.py` and `credentials.py` are source. One list for the file tools, which ask before they read
such a file, and for the sandbox, in which commands nobody was asked about cannot."""

NO_SECRETS = (
    *(f".env*{mark}{word}" for mark in ".-_" for word in (
        "example", "sample", "template", "dist", "defaults", "tmpl", "tpl", "schema"
    )),
    "*.pub",
)  # fmt: skip
"""What they are not: templates, public keys."""

KEYS = ("*.pem", "*.key", "*.p12", "*.pfx", "*.jks", "*.keystore")
"""Secrets, too, but where nobody keeps any."""

NO_KEYS = (
    *(f"{name}/**" for name in ("test", "tests", "testing", "testdata", "test-data", "test_data", "spec", "specs")),
    *(f"{name}/**" for name in ("fixture", "fixtures", "__tests__", "__fixtures__", "e2e", "mocks", "__mocks__")),
    *(f"{name}/**" for name in ("node_modules", "site-packages")),
    *("cacert.pem", "ca-bundle.pem", "ca-certificates.pem", "public*.pem"),
)

HOME_SECRETS = (
    *(".aws", ".docker", ".codex", ".yarnrc.yml", ".config/pip", ".bundle/config", ".databricks", ".wrangler"),
    *(".netlify", "snap"),
)
"""Only below the home folder: in a repository they are files like others. Those and `SECRETS` that lie there are never
readable in a sandbox, even where the workspace is the home folder itself."""

_CHECKED_OUT = tuple(f"/{path}" for path in CHECKED_OUT)
_FOLDED = frozenset(path.casefold() for path in (*FOLDERS, *FILES, *SHELL_FILES, AMANU_FOLDER))


def is_protected(name: str, folder: str) -> bool:
    """Whether commands may not change a file or folder of that name in a folder of that name, wherever they are in a
    workspace."""
    folded = name.casefold()
    return folded in _FOLDED or folded.endswith(ENDINGS) or f"{folder.casefold()}/{folded}" in PATHS


def is_checked_out(path: str) -> bool:
    """Whether it is protected, but for git."""
    return f"/{path.casefold()}".endswith(_CHECKED_OUT)


def may_be_secret(name: str) -> bool:
    """By the last part of its path alone: a quick look at what a folder holds."""
    return _LAST.fullmatch(name.casefold()) is not None


def is_secret(path: str) -> bool:
    """Whether a file or folder of that path, relative to its root, holds secrets."""
    folded = path.casefold()
    if _NO_SECRET.fullmatch(folded):
        return False
    return bool(_SECRET.fullmatch(folded) or (_KEY.fullmatch(folded) and not _NO_KEY.fullmatch(folded)))


def npmrc_holds_token(path: str) -> bool:
    """Most `.npmrc` of repositories hold none, and are settings that npm needs. Blocking."""
    try:
        with open(path, "rb") as file:  # noqa: PTH123
            return _NPM_TOKEN.search(file.read(1 << 16)) is not None
    except OSError:
        return True


def _pattern(names: Iterable[str]) -> str:
    return "|".join(
        re.escape(name.casefold()).replace(r"/\*\*", "/.+").replace(r"\*", "[^/]*") for name in dict.fromkeys(names)
    )


_NPM_TOKEN = re.compile(rb"_(?:auth|authToken|password)[ \t\"']*=[ \t\"']*(?!\$\{)\S", re.IGNORECASE)
_SECRET = re.compile(rf"(?:.*/)?(?:{_pattern(SECRETS)})(?:/.*)?", re.DOTALL)
_KEY = re.compile(rf"(?:.*/)?(?:{_pattern(KEYS)})", re.DOTALL)
_NO_SECRET = re.compile(rf"(?:.*/)?(?:{_pattern(NO_SECRETS)})", re.DOTALL)
_NO_KEY = re.compile(rf"(?:.*/)?(?:{_pattern(NO_KEYS)})", re.DOTALL)
_LAST = re.compile(_pattern(pattern.rpartition("/")[2] for pattern in (*SECRETS, *KEYS)), re.DOTALL)
