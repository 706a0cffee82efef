"""Variables that the dynamic loader obeys (`LD_PRELOAD`, `LD_LIBRARY_PATH`, `LD_AUDIT` and others). Those of a command
are not meant for the programs that build its sandbox, which run outside it."""

from collections.abc import Mapping


def without_loader_settings(environment: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environment.items() if not name.startswith("LD_")}


def loader_settings(environment: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environment.items() if name.startswith("LD_")}
