"""`make publish`: put dist/release where people get it, tag the commit, and commit the pages as they are from then on.

For a person with the accounts: it shows what it will do, and asks. After a failure it can be run again: what is there
already is skipped. `--dry-run` says what it would do and what is missing.
"""

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from build import ABOUT, OUT, PATCH, ROOT, SUMS, sums
from release import Refused, Release, git, release_of_head

TOKENS = {
    "UV_PUBLISH_TOKEN": "the package index (PyPI)",
    "VSCE_PAT": "the Visual Studio Marketplace",
    "OVSX_PAT": "Open VSX",
}
INDEX = "https://pypi.org/simple/"


@dataclass(frozen=True)
class Step:
    command: list[str]
    token: str = ""
    """The variable of its token: no program gets the token of another."""


def refusals(release: Release, built: str, *, sound: bool, variables: Mapping[str, str]) -> list[str]:
    """Why this is not published; `built` is the commit from which dist/release was made."""
    missing = [name for name in TOKENS if not variables.get(name)]
    return [
        *(["The files in dist/release are not those of its SHA256SUMS. Run make release."] if not sound else []),
        *([f"dist/release is of commit {built}, and you are at {release.commit}."] if built != release.commit else []),
        *(["publisher.toml in .ci/release names no repository."] if not release.repository else []),
        *(f"{name} is not set: the token for {TOKENS[name]}." for name in missing),
    ]


def steps(release: Release, folder: Path, *, tagged: bool, variables: Mapping[str, str]) -> list[Step]:
    """The steps; what cannot be undone comes after what is likely to fail."""
    vsce = str(ROOT / "vscode-extension/node_modules/.bin/vsce")
    ovsx = str(ROOT / ".tools/ovsx/node_modules/.bin/ovsx")
    packages = [str(path) for path in sorted([*folder.glob("*.whl"), *folder.glob("*.tar.gz")])]
    extensions = [str(path) for path in sorted(folder.glob("*.vsix"))]
    here = [] if variables.get("UV_PUBLISH_URL") else ["--check-url", INDEX]
    publish = ["publish", "--skip-duplicate", "--packagePath"]
    patch = folder / PATCH
    return [
        Step([str(ROOT / ".venv/bin/uv"), "publish", *here, *packages], "UV_PUBLISH_TOKEN"),
        Step([vsce, *publish, *extensions], "VSCE_PAT"),
        Step([ovsx, *publish, *extensions], "OVSX_PAT"),
        *([] if tagged else [Step(["git", "tag", "--annotate", release.tag, "--message", f"Amanu {release.version}"])]),
        *(
            [
                Step(["git", "apply", "--index", str(patch)]),
                Step(["git", "commit", "--quiet", "--message", f"Amanu {release.version} is published"]),
            ]
            if patch.stat().st_size
            else []
        ),
    ]


def environment(step: Step, variables: Mapping[str, str]) -> dict[str, str]:
    """Those variables with no token but the step's own, and this repository's Node first."""
    kept = {name: value for name, value in variables.items() if name not in TOKENS or name == step.token}
    return {**kept, "PATH": f"{ROOT / '.venv/bin'}{os.pathsep}{variables['PATH']}"}


def main(*, dry_run: bool) -> int:
    try:
        release = release_of_head(ROOT)
    except Refused as error:
        print(f"publish: {error}", file=sys.stderr)
        return 1
    if not (OUT / SUMS).exists():
        print("publish: There is nothing in dist/release. Run make release, then make release-check.", file=sys.stderr)
        return 1
    built = json.loads((OUT / ABOUT).read_text("utf-8"))["commit"]
    sound = (OUT / SUMS).read_text("utf-8") == sums(OUT)
    refused = refusals(release, built, sound=sound, variables=os.environ)
    planned = steps(release, OUT, tagged=bool(git(ROOT, "tag", "--list", release.tag)), variables=os.environ)
    print(f"Amanu {release.version}, commit {release.commit}, as {release.package} and {release.extension}:\n")
    for step in planned:
        print("   ", shlex.join(step.command).replace(f"{ROOT}/", ""))
    print()
    for reason in refused:
        print(f"publish: {reason}", file=sys.stderr)
    if refused or dry_run:
        return 1 if refused else 0
    if not sys.stdin.isatty():
        print("publish: It asks a person, and here is no terminal.", file=sys.stderr)
        return 1
    if input(f"This cannot be undone. Type {release.version} to publish: ").strip() != release.version:
        print("Nothing was published.")
        return 1
    for step in planned:
        if code := subprocess.run(step.command, cwd=ROOT, env=environment(step, os.environ), check=False).returncode:
            print(
                "publish: That failed. Fix the cause and run it again: what has been published is skipped.",
                file=sys.stderr,
            )
            return code
    print(f"""
Published. What is left to you:
- git push --follow-tags
- a page for {release.tag} at the repository, with dist/release/RELEASE_NOTES.md and the files of dist/release
- a pull request to the registry of ACP agents with dist/release/acp-registry/{release.package}""")
    return 0


if __name__ == "__main__":
    sys.exit(main(dry_run="--dry-run" in sys.argv[1:]))
