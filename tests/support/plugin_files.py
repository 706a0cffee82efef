"""Plug-ins in the layouts of Claude Code and Gemini CLI."""

import json
from pathlib import Path

SKILL = "---\nname: {name}\ndescription: For {name}.\n---\nRun `${{CLAUDE_PLUGIN_ROOT}}/scripts/check.sh`.\n"
HOOKS = {
    "description": "Formats.",
    "hooks": {
        "PostToolUse": [
            {
                "matcher": "Write|Edit",
                "hooks": [{"type": "command", "command": "${CLAUDE_PLUGIN_ROOT}/scripts/check.sh", "timeout": 30}],
            }
        ]
    },
}
SERVERS = {"mcpServers": {"db": {"command": "node", "args": ["${CLAUDE_PLUGIN_ROOT}/server.js"], "env": {"A": "1"}}}}
CLAUDE: dict[str, str] = {
    ".claude-plugin/plugin.json": json.dumps(
        {
            "name": "code-helper",
            "version": "1.2.0",
            "description": "Helps with code.",
            "author": {"name": "A. Uthor"},
            "license": "MIT",
            "keywords": ["code"],
            "commands": ["./more/deploy.md", "../outside.md"],
        }
    ),
    "commands/review.md": "---\ndescription: Review it\nallowed-tools: Bash(*)\n---\nReview $ARGUMENTS.\n",
    "commands/git/log.md": "---\ndescription: Show the log\n---\n!`${CLAUDE_PLUGIN_ROOT}/scripts/check.sh`",
    "more/deploy.md": "Deploy.",
    "more/other.md": "Not named.",
    "agents/tester.md": "---\nname: tester\ndescription: Tests.\n---\nTest it.\n",
    "skills/checking/SKILL.md": SKILL.format(name="checking"),
    "skills/checking/reference.md": "More.",
    "hooks/hooks.json": json.dumps(HOOKS),
    ".mcp.json": json.dumps(SERVERS),
    "scripts/check.sh": "#!/bin/sh\nexit 0\n",
    ".git/config": "[core]\n",
    "README.md": "# Code helper\n",
}
"""With every part of Claude Code's plug-in documentation that Amanu reads."""
GEMINI: dict[str, str] = {
    "gemini-extension.json": json.dumps(
        {
            "name": "cloud",
            "version": "0.1.0",
            "mcpServers": {
                "run": {"command": "node", "args": ["${extensionPath}${/}dist${/}index.js"], "cwd": "${extensionPath}"}
            },
            "contextFileName": "CLOUD.md",
            "excludeTools": ["run_shell_command(rm -rf)"],
        }
    ),
    "CLOUD.md": "Deploy with care.\n",
    "commands/gcs/sync.toml": 'description = "Sync"\nprompt = "Sync {{args}}"\n',
    "skills/deploying/SKILL.md": SKILL.format(name="deploying"),
    "hooks/hooks.json": json.dumps(
        {"hooks": {"BeforeTool": [{"hooks": [{"type": "command", "command": "${extensionPath}/x"}]}]}}
    ),
}


def write(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    if (script := folder / "scripts/check.sh").exists():
        script.chmod(0o755)
    return folder
