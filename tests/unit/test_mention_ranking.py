"""The first files that are offered for what is typed, in repositories as they are."""

from collections.abc import Sequence

import pytest

from amanu.session.mention_completion import folders_of
from amanu.session.path_index import PathIndex
from amanu.session.path_kind import PathKind, path_kind

CLICK = """
.github/workflows/tests.yaml CHANGES.rst LICENSE.txt README.md pyproject.toml requirements/docs.txt
docs/api.rst docs/arguments.rst docs/conf.py docs/contrib.md docs/options.md docs/testing.md docs/utils.rst
docs/parameters.md docs/shell-completion.md examples/aliases/aliases.py examples/colors/colors.py
examples/completion/completion.py examples/validation/validation.py
src/click/__init__.py src/click/_compat.py src/click/_termui_impl.py src/click/_textwrap.py src/click/_utils.py
src/click/_winconsole.py src/click/core.py src/click/decorators.py src/click/exceptions.py src/click/formatting.py
src/click/globals.py src/click/parser.py src/click/py.typed src/click/shell_completion.py src/click/termui.py
src/click/testing.py src/click/types.py src/click/utils.py
tests/conftest.py tests/test_arguments.py tests/test_basic.py tests/test_compat.py tests/test_context.py
tests/test_formatting.py tests/test_parser.py tests/test_shell_completion.py tests/test_termui.py
tests/test_testing.py tests/test_types.py tests/test_utils.py tests/typing/typing_simple_example.py uv.lock
"""
SHOP = """
package.json package-lock.json src/App.tsx src/cart/Cart.tsx src/cart/Cart.test.tsx src/cart/cart.css src/cart/index.ts
src/cart/useCart.ts src/checkout/checkout.generated.ts src/checkout/CheckoutForm.tsx src/api/cart_pb2.py
vendor/cart/cart.ts dist/cart.min.js docs/cart.md e2e/cart.spec.ts src/outlook/outline.ts
android/src/CartTest.java android/src/Cart.java android/src/contest.java
"""


@pytest.mark.parametrize(
    ("paths", "typed", "used", "first"),
    [
        (CLICK, "utl", [], ["src/click/utils.py", "docs/utils.rst", "src/click/_utils.py"]),
        (CLICK, "utils", [], ["src/click/utils.py", "docs/utils.rst", "src/click/_utils.py"]),
        (CLICK, "utils", ["docs/utils.rst"], ["docs/utils.rst", "src/click/utils.py", "src/click/_utils.py"]),
        (CLICK, "ut", ["tests/test_utils.py"], ["src/click/utils.py", "docs/utils.rst", "tests/test_utils.py"]),
        (CLICK, "core", [], ["src/click/core.py"]),
        (CLICK, "test", [], ["src/click/testing.py", "tests/", "tests/test_basic.py"]),
        (CLICK, "test", ["tests/test_types.py"], ["tests/test_types.py", "src/click/testing.py", "tests/"]),
        (CLICK, "tests", [], ["tests/", ".github/workflows/tests.yaml", "tests/test_shell_completion.py"]),
        (CLICK, "pars", [], ["src/click/parser.py", "tests/test_parser.py", "docs/parameters.md"]),
        (CLICK, "arg", [], ["docs/arguments.rst", "tests/test_arguments.py"]),
        (CLICK, "cli", [], ["src/click/", "src/click/core.py", "src/click/py.typed"]),
        (CLICK, "click/ut", [], ["src/click/utils.py", "src/click/_utils.py"]),
        (CLICK, "src/click", [], ["src/click/", "src/click/core.py", "src/click/py.typed"]),
        (CLICK, "comp", [], ["examples/completion/completion.py", "examples/completion/", "src/click/_compat.py"]),
        (
            CLICK,
            "shcomp",
            [],
            ["src/click/shell_completion.py", "tests/test_shell_completion.py", "docs/shell-completion.md"],
        ),
        (CLICK, "sc", [], ["src/click/shell_completion.py", "docs/shell-completion.md", "src/"]),
        (CLICK, "readme", [], ["README.md"]),
        (CLICK, "", ["src/click/core.py"], ["src/click/core.py", "src/", "docs/"]),
        (SHOP, "cart", [], ["src/cart/Cart.tsx", "src/cart/cart.css", "android/src/Cart.java"]),
        (SHOP, "cart.", ["e2e/cart.spec.ts"], ["e2e/cart.spec.ts", "src/cart/Cart.tsx", "src/cart/cart.css"]),
        (SHOP, "check", [], ["src/checkout/CheckoutForm.tsx", "src/checkout/", "src/checkout/checkout.generated.ts"]),
        (SHOP, "pack", [], ["package.json", "package-lock.json"]),
        (SHOP, "cf", [], ["src/checkout/CheckoutForm.tsx"]),
        (SHOP, "otl", [], ["src/outlook/outline.ts", "src/outlook/"]),
    ],
)
def test_first_offered(paths: str, typed: str, used: Sequence[str], first: list[str]) -> None:
    files = paths.split()
    folders = [f"{folder}/" for folder in folders_of(files)]
    assert PathIndex([*files, *folders]).best(typed, used, 3) == first


def test_of_several_roots_what_is_above_them_says_nothing() -> None:
    paths = ["/tests/.a/docs/x.py", "/tests/.a/x.python", "/tests/b/x.py"]
    assert PathIndex(paths, ["/tests/.a", "/tests/b"]).best("x") == [paths[2], paths[1], paths[0]]


@pytest.mark.parametrize(
    ("kind", "paths"),
    [
        (PathKind.SOURCE, "a.py src/testing.py src/latest.py android/contest.java tests/ docs/ src/tester/x.go"),
        (
            PathKind.TEST,
            "tests/a.py src/x_test.go a.spec.ts Test/A.java CartTest.java conftest.py src/test_a.py tests/a/",
        ),
        (PathKind.DOCS, "README.md docs/conf.py examples/a.py doc/a/b.c tests/notes.md .github/ci.yaml docs/test_a.py"),
        (PathKind.GENERATED, "a.min.js uv.lock vendor/docs/a.md x_pb2.py package-lock.json vendor/a/ a.js.map"),
    ],
)
def test_kind(kind: PathKind, paths: str) -> None:
    assert {path: path_kind(path) for path in paths.split()} == dict.fromkeys(paths.split(), kind)
