"""The project that the commands are about: a shop, of Python, TypeScript, C and Rust."""

import json
from collections.abc import Mapping
from typing import Any

FIRST = {
    "README.md": "# Shop\n\nCounts what is in a cart.\n",
    ".gitignore": """\
.env
.venv/
node_modules/
__pycache__/
.pytest_cache/
.ruff_cache/
*.egg-info/
.coverage
/build/
/dist/
/engine/target/
*.tsbuildinfo
""",
    ".env": "SHOP_API_KEY=sk-000000000000\nDEBUG=1\n",
    ".env.example": "SHOP_API_KEY=\nDEBUG=0\n",
    ".github/workflows/ci.yml": "name: ci\non: push\njobs:\n  test:\n    runs-on: ubuntu-latest\n    steps:\n"
    "      - uses: actions/checkout@v4\n      - run: make test\n",
    "Dockerfile": 'FROM python:3.11-slim\nCOPY . /app\nCMD ["python", "-m", "shop"]\n',
    "docker-compose.yml": "services:\n  db:\n    image: postgres:16\n",
    "pyproject.toml": """\
[project]
name = "shop"
version = "0.1.0"
requires-python = ">=3.11"

[project.scripts]
shop = "shop.__main__:main"

[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[tool.pytest.ini_options]
testpaths = ["tests"]
pythonpath = ["."]

[tool.ruff]
line-length = 100
""",
    "requirements.txt": "money-words==1.0.0\n",
    "shop/__init__.py": "",
    "shop/__main__.py": """\
from shop.cart import Cart


def main() -> None:
    cart = Cart()
    cart.add("tea", 2, 350)
    print(f"total: {cart.total()}")


if __name__ == "__main__":
    main()
""",
    "shop/cart.py": """\
from dataclasses import dataclass, field


@dataclass
class Cart:
    lines: dict[str, tuple[int, int]] = field(default_factory=dict)

    def add(self, name: str, count: int, cents: int) -> None:
        self.lines[name] = (count, cents)

    def total(self) -> int:
        return sum(count * cents for count, cents in self.lines.values())
""",
    "shop/prices.py": 'import json\n\n\ndef read(text: str) -> dict[str, int]:\n    return json.loads(text or "{}")\n',
    "tests/test_cart.py": """\
from shop.cart import Cart


def test_total() -> None:
    cart = Cart()
    cart.add("tea", 2, 350)
    assert cart.total() == 700


def test_empty() -> None:
    assert Cart().total() == 0
""",
    "tests/test_prices.py": """\
from pathlib import Path

from shop.prices import read


def test_read(tmp_path: Path) -> None:
    file = tmp_path / "prices.json"
    file.write_text('{"tea": 350}')
    assert read(file.read_text()) == {"tea": 350}
""",
    "data/prices.json": '{"tea": 350, "coffee": 420}\n',
    "scripts/report.sh": '#!/bin/sh\nset -e\ncd "$(dirname "$0")/.."\npython -m shop > report.txt\ncat report.txt\n',
    "scripts/count.py": """\
import pathlib

print(sum(len(p.read_text().splitlines()) for p in pathlib.Path("shop").glob("*.py")))
""",
    "logs/app.log": "2026-03-02 10:00:01 INFO start\n2026-03-02 10:00:04 ERROR no price for milk\n",
}
NATIVE = {
    "Makefile": """\
CC ?= cc
CFLAGS ?= -O1 -Wall

all: build/weigh

build/weigh: native/weigh.c
\tmkdir -p build
\t$(CC) $(CFLAGS) -o $@ $<

test: all
\t./build/weigh 3 4
\tpython -m pytest -q

lint:
\truff check shop tests

clean:
\trm -rf build dist

.PHONY: all test lint clean
""",
    "CMakeLists.txt": "cmake_minimum_required(VERSION 3.16)\nproject(weigh C)\nadd_executable(weigh native/weigh.c)\n",
    "native/weigh.c": """\
#include <stdio.h>
#include <stdlib.h>

int main(int count, char **words) {
    int sum = 0;
    for (int at = 1; at < count; at++)
        sum += atoi(words[at]);
    printf("%d\\n", sum);
    return 0;
}
""",
    "engine/Cargo.toml": '[package]\nname = "engine"\nversion = "0.1.0"\nedition = "2021"\n',
    "engine/Cargo.lock": 'version = 3\n\n[[package]]\nname = "engine"\nversion = "0.1.0"\n',
    "engine/src/lib.rs": """\
pub fn total(prices: &[u32]) -> u32 {
    prices.iter().sum()
}

#[cfg(test)]
mod tests {
    #[test]
    fn adds() {
        assert_eq!(super::total(&[1, 2]), 3);
    }
}
""",
    "go.mod": "module example.org/shop\n\ngo 1.22\n",
}
WEB = {
    "tsconfig.json": """\
{
  "compilerOptions": {
    "target": "ES2022",
    "module": "NodeNext",
    "lib": ["ES2022"],
    "types": [],
    "strict": true,
    "outDir": "dist"
  },
  "include": ["web/**/*.ts"]
}
""",
    "web/price.ts": "export function euros(cents: number): string {\n  return (cents / 100).toFixed(2);\n}\n",
    "web/total.js": "export const total = (prices) => prices.reduce((sum, each) => sum + each, 0);\n",
    "web/total.test.js": """\
import assert from "node:assert/strict";
import { test } from "node:test";
import { total } from "./total.js";

test("adds up", () => {
  assert.equal(total([350, 420]), 770);
});
""",
}
PACKAGE: dict[str, Any] = {
    "name": "shop-web",
    "version": "0.1.0",
    "private": True,
    "type": "module",
    "scripts": {
        "build": "tsc -p tsconfig.json",
        "typecheck": "tsc --noEmit",
        "test": "node --test web/",
        "format": "prettier --write web",
        "start": "node web/total.js",
    },
}
DISCOUNT = {"shop/discount.py": "def percent(cents: int, by: int) -> int:\n    return cents * (100 - by) // 100\n"}
UNCOMMITTED = {
    "shop/prices.py": FIRST["shop/prices.py"].replace("json.loads(text or", "json.loads(text.strip() or"),
    "shop/tax.py": "def vat( cents:int )->int:\n    return cents*19//100\n",
}
"""What is being worked on: a change, and a new file that is not formatted."""


def packages(installed: Mapping[str, str]) -> dict[str, str]:
    """`package.json` and its lock. `installed`: name → version."""
    depends = {"devDependencies": dict(installed)} if installed else {}
    locked = {f"node_modules/{name}": {"version": version, "dev": True} for name, version in installed.items()}
    about = {"name": PACKAGE["name"], "version": PACKAGE["version"]}
    lock = {**about, "lockfileVersion": 3, "requires": True, "packages": {"": {**about, **depends}, **locked}}
    texts = {"package.json": {**PACKAGE, **depends}, "package-lock.json": lock}
    return {name: json.dumps(value, indent=2) + "\n" for name, value in texts.items()}
