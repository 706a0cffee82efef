from collections.abc import Sequence
from pathlib import Path

from amanu.context.extension_files import ExtensionKind
from amanu.context.extension_folders import ExtensionFolder


def plugin_folders(store: Path, kind: ExtensionKind) -> Sequence[ExtensionFolder]:
    return []
