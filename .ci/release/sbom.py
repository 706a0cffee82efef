"""The bill of materials (CycloneDX 1.6): the packages that the daemon needs, as requirements.lock pins them, with the
hashes of all files an installer may choose from and with who needs whom. It is for every platform, as the lock is."""

import re
import tomllib
import uuid
from pathlib import Path
from typing import Any

from bundle import runtime
from release import Release

_PINNED = re.compile(r"(?P<name>[\w.-]+)==(?P<version>[^\s;\\]+)(?: *; *(?P<marker>[^\\\n]+?))? *\\?\n")


def sbom(release: Release, lock: str, dependencies: list[str]) -> dict[str, Any]:
    entries = runtime(lock, dependencies)
    components = [_component(entry) for entry in entries]
    root = f"pkg:pypi/{release.package}@{release.version}"
    by_name: dict[str, list[str]] = {}
    for component in components:
        by_name.setdefault(component["name"], []).append(component["bom-ref"])
    needs: dict[str, set[str]] = {root: set(), **{component["bom-ref"]: set() for component in components}}
    for name, wanted_by in _wanted_by(lock):
        for needing in wanted_by:
            of = [root] if needing.endswith("(pyproject.toml)") else by_name.get(needing, [])
            for reference in of:
                needs[reference].update(by_name.get(name, []))
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, f'{root}#{release.commit}')}",
        "version": 1,
        "metadata": {
            "timestamp": release.time.isoformat(),
            "component": {
                "type": "application",
                "bom-ref": root,
                "name": release.package,
                "version": release.version,
                "purl": root,
                "licenses": [{"license": {"id": "Apache-2.0"}}],
            },
        },
        "components": components,
        "dependencies": [{"ref": reference, "dependsOn": sorted(of)} for reference, of in sorted(needs.items())],
    }


def sbom_of_tree(release: Release, root: Path) -> dict[str, Any]:
    project = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"]
    return sbom(release, (root / "requirements.lock").read_text("utf-8"), project["dependencies"])


def _component(entry: str) -> dict[str, Any]:
    pinned = _PINNED.match(entry)
    assert pinned, entry
    name = pinned["name"].lower()
    purl = f"pkg:pypi/{name}@{pinned['version']}"
    hashes = [{"alg": "SHA-256", "content": each} for each in re.findall(r"--hash=sha256:([0-9a-f]{64})", entry)]
    return {
        "type": "library",
        "bom-ref": purl,
        "name": name,
        "version": pinned["version"],
        "purl": purl,
        "externalReferences": [
            {
                "type": "distribution",
                "comment": "any of the files with these hashes",
                "url": f"https://pypi.org/project/{name}/{pinned['version']}/#files",
                "hashes": hashes,
            }
        ],
        **({"properties": [{"name": "amanu:marker", "value": pinned["marker"]}]} if pinned["marker"] else {}),
    }


def _wanted_by(lock: str) -> list[tuple[str, set[str]]]:
    found: list[tuple[str, set[str]]] = []
    for entry in re.split(r"\n(?=[A-Za-z0-9])", lock):
        _, _, via = entry.partition("    # via")
        names = {line.strip("# \n") for line in via.splitlines()} - {""}
        found.append((entry.split("==")[0].lower(), names))
    return found
