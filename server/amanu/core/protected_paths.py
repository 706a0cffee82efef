"""Names of files that git, editors, shells and agents execute or obey, and of files that hold secrets.

Policy asks before protected files are changed, and the sandbox keeps commands from changing them; both use these lists.
Names are compared ignoring case, because on some systems `.ENV` is `.env`.
"""

import os
import re
import stat
from collections.abc import Iterable, Mapping

OBEYED: Mapping[str, str] = {
    # Version control
    ".git/": "gitrepository-layout(5)",
    ".gitmodules": "gitmodules(5)",
    ".gitconfig": "git-config(1)",
    ".gitattributes": "gitattributes(5): filters and merge drivers",
    ".hg/hgrc": "hg help config: hooks, extensions",
    # Programs that run at a commit
    ".husky/": "typicode.github.io/husky",
    ".pre-commit-config.yaml": "pre-commit.com",
    ".pre-commit-config.yml": "pre-commit.com",
    "lefthook.yml": "lefthook.dev, configuration",
    ".lefthook.yml": "lefthook.dev, configuration",
    "lefthook.yaml": "lefthook.dev, configuration",
    "lefthook-local.yml": "lefthook.dev, configuration",
    ".overcommit.yml": "github.com/sds/overcommit",
    ".simple-git-hooks.json": "github.com/toplenboren/simple-git-hooks",
    # Pipelines, which run with the repository's secrets at the next push
    ".github/workflows/": "docs.github.com, workflow syntax",
    ".github/actions/": "docs.github.com, composite actions",
    ".gitea/workflows/": "docs.gitea.com, Actions",
    ".forgejo/workflows/": "forgejo.org/docs, Actions",
    ".gitlab-ci.yml": "docs.gitlab.com, CI/CD YAML",
    ".circleci/": "circleci.com/docs, configuration reference",
    ".buildkite/": "buildkite.com/docs, pipeline upload",
    "azure-pipelines.yml": "learn.microsoft.com, YAML schema",
    "bitbucket-pipelines.yml": "support.atlassian.com, configuration reference",
    ".travis.yml": "docs.travis-ci.com",
    ".drone.yml": "docs.drone.io",
    ".woodpecker.yml": "woodpecker-ci.org/docs",
    "appveyor.yml": "appveyor.com/docs",
    "Jenkinsfile": "jenkins.io/doc, pipeline",
    # Editors
    ".vscode/": "code.visualstudio.com: tasks, settings, launch",
    ".idea/": "jetbrains.com/help: run configurations",
    ".zed/": "zed.dev/docs: settings, tasks",
    ".devcontainer/": "containers.dev",
    ".devcontainer.json": "containers.dev",
    ".helix/": "docs.helix-editor.com: languages",
    ".fleet/": "jetbrains.com/help/fleet: run.json",
    ".code-workspace": "code.visualstudio.com: multi-root workspaces",
    ".sublime-project": "sublimetext.com/docs: build systems",
    ".exrc": "vimdoc: 'exrc'",
    ".nvimrc": "neovim.io: 'exrc'",
    ".nvim.lua": "neovim.io: 'exrc'",
    ".vimrc": "vimdoc: 'exrc'",
    ".lvimrc": "github.com/embear/vim-localvimrc",
    ".dir-locals.el": "gnu.org/software/emacs: directory variables",
    # Agents: all later sessions obey what one writes
    "AGENTS.md": "agents.md",
    "AGENTS.override.md": "developers.openai.com/codex: AGENTS.md",
    "CLAUDE.md": "code.claude.com/docs: memory",
    "CLAUDE.local.md": "code.claude.com/docs: memory",
    "GEMINI.md": "geminicli.com/docs: context files",
    "QWEN.md": "qwenlm.github.io/qwen-code-docs",
    "CRUSH.md": "github.com/charmbracelet/crush",
    "WARP.md": "docs.warp.dev: rules",
    ".mcp.json": "code.claude.com/docs: MCP",
    ".agents/": "agentskills.io",
    ".claude/": "code.claude.com/docs: settings, hooks",
    ".gemini/": "geminicli.com/docs: settings",
    ".codex/": "developers.openai.com/codex: config",
    ".cursor/": "cursor.com/docs: rules, MCP, hooks",
    ".cursorrules": "cursor.com/docs: rules",
    ".opencode/": "opencode.ai/docs: config",
    "opencode.json": "opencode.ai/docs: config",
    "opencode.jsonc": "opencode.ai/docs: config",
    ".roo/": "docs.roocode.com: rules, MCP",
    ".roorules": "docs.roocode.com: rules",
    ".kilocode/": "kilo.ai/docs: rules, MCP",
    ".clinerules/": "docs.cline.bot: rules, hooks",
    ".windsurf/": "docs.windsurf.com: rules, workflows",
    ".windsurfrules": "docs.windsurf.com: rules",
    ".kiro/": "kiro.dev/docs: steering, hooks, MCP",
    ".amazonq/": "docs.aws.amazon.com/amazonq: rules, MCP",
    ".junie/": "jetbrains.com/help/junie: guidelines, MCP",
    ".trae/": "docs.trae.ai: rules",
    ".qwen/": "qwenlm.github.io/qwen-code-docs: settings",
    ".continue/": "docs.continue.dev: config",
    ".augment/": "docs.augmentcode.com: rules",
    ".augment-guidelines": "docs.augmentcode.com: guidelines",
    ".goosehints": "block.github.io/goose: hints",
    "crush.json": "github.com/charmbracelet/crush: config",
    ".crush.json": "github.com/charmbracelet/crush: config",
    ".aider.conf.yml": "aider.chat/docs: config",
    ".rules": "zed.dev/docs: AI rules",
    ".github/copilot-instructions.md": "docs.github.com: custom instructions",
    ".github/instructions/": "docs.github.com: custom instructions",
    ".github/agents/": "docs.github.com: custom agents",
    ".github/prompts/": "code.visualstudio.com: prompt files",
    ".github/chatmodes/": "code.visualstudio.com: custom chat modes",
    ".github/hooks/": "docs.github.com: hooks for agents",
    # Shells, package managers, debuggers and language servers
    ".bashrc": "bash(1)",
    ".ripgreprc": "ripgrep guide: configuration",
    ".npmrc": "docs.npmjs.com: script-shell, registry",
    ".yarnrc.yml": "yarnpkg.com: yarnPath, plugins",
    ".pnpmfile.cjs": "pnpm.io: pnpmfile",
    ".mise/config.toml": "mise.jdx.dev: configuration",
    ".config/mise.toml": "mise.jdx.dev: configuration",
    "mise.local.toml": "mise.jdx.dev: configuration",
    ".mise.local.toml": "mise.jdx.dev: configuration",
    ".rvmrc": "rvm.io: rvmrc",
    ".irbrc": "docs.ruby-lang.org: irb",
    ".pryrc": "github.com/pry/pry",
    ".cargo/config.toml": "doc.rust-lang.org/cargo: runner, rustc-wrapper",
    ".cargo/config": "doc.rust-lang.org/cargo: runner, rustc-wrapper",
    ".mvn/": "maven.apache.org: extensions, jvm.config",
    ".gdbinit": "sourceware.org/gdb: init file in the current directory",
    ".lldbinit": "lldb.llvm.org: init file in the current directory",
    ".pdbrc": "docs.python.org: pdb",
    ".pylintrc": "pylint.readthedocs.io: init-hook, load-plugins",
}
"""Files that git, editors, shells and agents run or obey → who says so. `x/`: that folder, with everything in it;
`.git` may be a file that points to another folder. `x/y`: only inside a folder of that name. `.code-workspace` and
`.sublime-project` are endings."""

ENDINGS = (".code-workspace", ".sublime-project")
FOLDERS = tuple(name[:-1] for name in OBEYED if name.count("/") == 1 and name.endswith("/"))
PATHS = tuple(name.removesuffix("/") for name in OBEYED if "/" in name[:-1])
FILES = tuple(name for name in OBEYED if "/" not in name and name not in ENDINGS)

CHECKED_OUT = (
    *(".gitattributes", ".pre-commit-config.yaml", ".pre-commit-config.yml", "lefthook.yml", ".gitlab-ci.yml"),
    *("azure-pipelines.yml", "bitbucket-pipelines.yml", ".travis.yml", ".drone.yml", ".woodpecker.yml", "appveyor.yml"),
    *("jenkinsfile", ".npmrc", ".yarnrc.yml", ".pnpmfile.cjs", ".pylintrc", ".circleci", ".buildkite", ".mvn", *PATHS),
)
"""Protected files that often differ between branches: a line of only git commands may change them, otherwise nobody
could switch branches."""

AMANU_FOLDER = ".amanu"
"""Our own folder in a workspace. The file tools may write plans into it, so policy has a separate rule for it."""

SHELL_FILES = (".envrc", ".mise.toml", "mise.toml", ".tool-versions")
"""Files a shell executes or obeys on entering a folder. Policy asks about `.env*` anyway."""

GLOBS = (
    *(glob for name in (*FOLDERS, *PATHS) for glob in (f"**/{name}", f"**/{name}/**")),
    *(f"**/{name}" for name in FILES),
    *(f"**/*{ending}" for ending in ENDINGS),
)
"""The protected paths as globs, for policy rules."""

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
"""Files and folders that a login, a shell or a desktop executes: protected where the workspace is the home folder or
contains it."""

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
"""Keys, tokens, browser profiles and histories, in any folder; for folders, everything in them. `*` matches within one
name. Precise: `id_generator.py` and `credentials.py` are source code. The file tools ask before they read such a file,
and in the sandbox commands cannot read it unless the user was asked, or git has it as it is."""

NO_SECRETS = (
    *(f".env*{mark}{word}" for mark in ".-_" for word in (
        "example", "sample", "template", "dist", "defaults", "tmpl", "tpl", "schema"
    )),
    "*.pub",
)  # fmt: skip
"""Exceptions from `SECRETS`: templates and public keys."""

KEYS = ("*.pem", "*.key", "*.p12", "*.pfx", "*.jks", "*.keystore")
"""Also secrets, except in the places of `NO_KEYS`."""

NO_KEYS = (
    *(f"{name}/**" for name in ("test", "tests", "testing", "testdata", "test-data", "test_data", "spec", "specs")),
    *(f"{name}/**" for name in ("fixture", "fixtures", "__tests__", "__fixtures__", "e2e", "mocks", "__mocks__")),
    *(f"{name}/**" for name in ("node_modules", "site-packages")),
    *("cacert.pem", "ca-bundle.pem", "ca-certificates.pem", "public*.pem"),
)

HOME_SECRETS = (
    *(".aws", ".docker", ".codex", ".yarnrc.yml", ".config/pip", ".bundle/config", ".databricks", ".wrangler"),
    *(".netlify", "snap", "AppData"),
)
"""Secrets only below the home folder: in a repository these are ordinary files. A sandbox can never read these or the
`SECRETS` in the home folder, even where the workspace is the home folder itself."""

_CHECKED_OUT = tuple(f"/{path}" for path in CHECKED_OUT)
_PATHS = frozenset(path.casefold() for path in PATHS)
_FOLDED = frozenset(path.casefold() for path in (*FOLDERS, *FILES, *SHELL_FILES, AMANU_FOLDER))


def is_protected(name: str, folder: str) -> bool:
    """Whether commands may not change `name` in a folder called `folder`, anywhere in a workspace."""
    folded = name.casefold()
    return folded in _FOLDED or folded.endswith(ENDINGS) or f"{folder.casefold()}/{folded}" in _PATHS


def is_guarded(path: str) -> bool:
    """Whether it, or a folder above it, is protected or holds secrets."""
    parts = path.split("/")
    return is_secret(path) or any(is_protected(part, parts[at - 1] if at else "") for at, part in enumerate(parts))


def is_checked_out(path: str) -> bool:
    """Whether git may change the protected file at that path (`CHECKED_OUT`)."""
    return f"/{path.casefold()}".endswith(_CHECKED_OUT)


def may_be_secret(name: str) -> bool:
    """Whether a file of that name can hold secrets, judged by the last part of its path alone: a quick filter."""
    return _LAST.fullmatch(name.casefold()) is not None


def is_secret(path: str) -> bool:
    """Whether the file or folder at that path, relative to its root, holds secrets."""
    folded = path.casefold()
    if _NO_SECRET.fullmatch(folded):
        return False
    return bool(_SECRET.fullmatch(folded) or (_KEY.fullmatch(folded) and not _NO_KEY.fullmatch(folded)))


def is_private_key(path: str) -> bool:
    """Whether the file at that path is a private key, judged by its name."""
    name = path.casefold().rpartition("/")[2]
    return name.startswith("id_") or name.endswith((".ppk", *(key.removeprefix("*") for key in KEYS)))


def npmrc_holds_token(path: str) -> bool:
    """Whether an `.npmrc` holds a token; most in repositories hold only settings that npm needs. What cannot be read
    may hold one. Blocking."""
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):  # noqa: PTH116
            return True
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:  # noqa: PTH123
            return _NPM_TOKEN.search(file.read(1 << 16) or b"") is not None
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
