"""Names that git, editors and agents run or are led by, and those that hold secrets. One list for policy, which asks
before they are changed, and for the sandbox, in which commands cannot change them (facts/security.md §2, cases 5, 15,
18, 21, 25). Names are compared with case folded: on some systems `.ENV` is `.env`."""

FOLDERS = (
    *(".git", ".husky"),
    *(".vscode", ".idea", ".zed", ".devcontainer", ".helix"),
    *(".cursor", ".claude", ".gemini"),
)
"""Protected with all that is in them. `.git` may be a file that leads to another folder."""

FILES = (
    *(".gitmodules", ".gitconfig", ".ripgreprc", ".mcp.json", ".devcontainer.json"),
    *(".exrc", ".nvimrc", ".nvim.lua", ".vimrc", ".dir-locals.el"),
    *("AGENTS.md", "CLAUDE.md", "GEMINI.md"),  # project memory: what one session writes, all later ones obey
)

ENDINGS = (".code-workspace",)

OWN = ".amanu"
"""Our own folder in a workspace; plans in it may be written by the file tools, so policy has a rule of its own."""

SHELL_FILES = (".envrc", ".mise.toml", "mise.toml", ".tool-versions")
"""What a shell runs or obeys on entering a folder. Policy asks about `.env*` anyway."""

GLOBS = (
    *(glob for name in FOLDERS for glob in (f"**/{name}", f"**/{name}/**")),
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
    *(".ssh", ".gnupg", ".aws", ".azure", ".config/gcloud", ".kube", ".docker", ".config/containers", ".config/gh"),
    *(".config/glab-cli", ".config/hub", ".netrc", "_netrc", ".git-credentials", ".config/git/credentials", ".npmrc"),
    *(".yarnrc.yml", ".pypirc", ".config/pip", ".pip", ".cargo/credentials", ".cargo/credentials.toml"),
    *(".gem/credentials", ".bundle/config", ".m2/settings.xml", ".m2/settings-security.xml"),
    *(".gradle/gradle.properties",),
    *(".composer/auth.json", ".config/composer", ".terraform.d", ".terraformrc", ".vault-token", ".boto", ".s3cfg"),
    *(".config/rclone", ".config/sops", ".config/op", ".password-store", ".pgpass", ".my.cnf", ".databricks"),
    *(".snowflake", ".wrangler", ".config/configstore", ".config/heroku", ".fly", ".netlify", ".local/share/keyrings"),
    *(".local/share/kwalletd", ".local/share/TelegramDesktop", ".config/Signal", ".config/Slack", ".config/discord"),
    *(".mozilla", ".thunderbird", ".config/google-chrome", ".config/chromium", ".config/BraveSoftware"),
    *(".config/microsoft-edge", ".config/opera", ".config/vivaldi", "snap", ".var/app"),
    *(".codex", ".config/openai", ".anthropic", ".config/anthropic", ".claude.json", ".claude/.credentials.json"),
    *(".gemini/oauth_creds.json", ".config/github-copilot", ".local/share/opencode"),
    *(".huggingface", ".cache/huggingface/token"),
    *(".bash_history", ".zsh_history", ".python_history", ".node_repl_history", ".psql_history", ".mysql_history"),
    *(".Xauthority", ".ICEauthority", "Library/Keychains", "Library/Cookies", "Library/Application Support"),
)  # fmt: skip
"""Below the home folder: keys, tokens, browser profiles, histories. Never readable in a sandbox, even where the
workspace is the home folder itself."""

_FOLDED = frozenset(each.casefold() for each in (*FOLDERS, *FILES, *SHELL_FILES, OWN))


def is_protected(name: str) -> bool:
    """Whether commands may not change a file or folder of that name, wherever it is in a workspace."""
    folded = name.casefold()
    return folded in _FOLDED or folded.endswith(ENDINGS)


def is_env(name: str) -> bool:
    """Whether a file of that name is asked about before it is read (`.env`, `.env.local` …)."""
    return name.casefold().startswith(".env")
