"""Lines made to cost time."""

from collections.abc import Callable, Iterator
from typing import TypeVar

from amanu.core.command import CommandContext

T = TypeVar("T")


def lines(here: CommandContext, make: Callable[[str, bool, CommandContext], T]) -> Iterator[T]:
    for text in (*_long(), *_deep(), *_wide()):
        yield make(text[:64_000], False, here)


def _long() -> Iterator[str]:
    for size in (1_000, 8_000, 60_000):
        yield f"echo {'a' * size}"
        yield f"cat {'a/' * (size // 2)}"
        yield f"cat {'../' * (size // 3)}etc/passwd"
        yield f"grep '{'(a+)+' * (size // 5)}' README.md"
        yield f"sed -n '{'p;' * (size // 2)}' package.json"
        yield f"sed 's/{'a[' * (size // 2)}/x/' package.json"
        yield f"awk '{'/a/ {{print}} ' * (size // 12)}' package.json"
        yield f"awk '{'(' * size}'"
        yield f"awk '{chr(34) * size}'"
        yield f"printf '{'%s' * (size // 2)}'"
        yield f"printf '{'%-' * (size // 2)}'"
        yield f"jq '{'. | ' * (size // 4)}.' package.json"
        yield f"ls {'-' * size}"
        yield f"echo '{'x' * size}"


def _deep() -> Iterator[str]:
    for depth in (10, 200, 3_000):
        yield "$(" * depth + "ls" + ")" * depth
        yield "(" * depth + "ls" + ")" * depth
        yield "{ " * depth + "ls; " + "} " * depth
        yield "env " * depth + "ls"
        yield "timeout 5 " * depth + "ls"
        yield "if true; then " * depth + "ls" + "; fi" * depth
        yield 'bash -c "' * depth + "ls"


def _wide() -> Iterator[str]:
    for count in (50, 1_000, 8_000):
        yield "; ".join(["ls"] * count)
        yield " | ".join(["cat"] * count)
        yield " && ".join(["git status"] * count)
        yield "cat " + " ".join(["package.json"] * count)
        yield "ls " + " ".join(["*"] * count)
        yield "ls " + " ".join(["**/*"] * count)
        yield "ls " + "/".join(["*"] * count)
        yield "echo " + "{a,b}" * count
        yield "grep -r x " + " ".join(["."] * count)
        yield "; ".join(["grep -r x ."] * count)
        yield "; ".join(["git log -p"] * count)
        yield "ls " + " ".join(["-a"] * count)
        yield "diff -r node_modules " + "./" * count + "src"
