import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import python from "@shikijs/langs/python";
import { expect, test } from "vitest";
import { Grammars } from "../src/highlight/grammars";
import { type Kind, loadTheme } from "../src/highlight/themes";
import { Tokenizer } from "../src/highlight/tokenizer";

/** A folder with these files. */
function folder(files: Record<string, string>): string {
  const path = mkdtempSync(join(tmpdir(), "amanu-"));
  for (const [name, text] of Object.entries(files)) writeFileSync(join(path, name), text);
  return path;
}

function tokenizer(path?: string): Promise<Tokenizer> {
  const grammars = folder({
    "index.json": JSON.stringify({ python: "python", py: "python" }),
    "python.json": JSON.stringify(python[0]),
  });
  return Tokenizer.make(loadTheme({ kind: "vs-dark", path }), new Grammars(grammars));
}

const CODE = ['"""Several', "lines", '"""', "def f(x: int) -> str:", "", "    return f'{x}'  # done"];

test("code that arrives in pieces, its last line half, has the colours it has at once", async () => {
  const reader = await tokenizer();
  const ask = (block: string, start: number, lines: string[]) =>
    reader.paint({ block, language: "py", start, lines }).tokens;
  const whole = ask("whole", 0, CODE);
  expect(ask("grown", 0, [...CODE.slice(0, 1), "li"])).toHaveLength(2);
  expect(ask("grown", 1, CODE.slice(1, 4))).toEqual(whole?.slice(1, 4));
  expect(ask("grown", 4, CODE.slice(4))).toEqual(whole?.slice(4));
  for (const [at, spans] of (whole ?? []).entries()) {
    const length = spans.filter((_, index) => index % 2 === 0).reduce((sum, each) => sum + each, 0);
    expect(length).toBe(CODE[at]?.length);
  }
});

test("a place that was not read up to is asked for from the first line on; an unknown language has no colours", async () => {
  const reader = await tokenizer();
  expect(reader.paint({ block: "a", language: "py", start: 3, lines: CODE }).tokens).toEqual([]);
  for (const language of ["klingon", "constructor", "../python"])
    expect(reader.paint({ block: "b", language, start: 0, lines: CODE }).tokens).toBeNull();
});

test("the user's theme is read with what it includes, and only colours of it are handed on", async () => {
  const path = folder({
    "base.json": '{"tokenColors": [{"scope": "comment", "settings": {"foreground": "#111111"}}]}',
    "theme.json": `{ // a comment
      "include": "./base.json",
      "tokenColors": [
        {"scope": "storage", "settings": {"foreground": "#abc", "fontStyle": "bold italic"}},
        {"scope": "string", "settings": {"foreground": "red;} body {display: none"}},
      ],
    }`,
  });
  const reader = await tokenizer(join(path, "theme.json"));
  const { styles } = reader.paint({ block: "a", language: "python", start: 0, lines: [...CODE, "# x"] });
  expect(styles.filter((style) => style !== "").toSorted()).toEqual([
    "color:#111111",
    "color:#ABC;font-style:italic;font-weight:bold",
  ]);
});

test.each<[Kind, string]>([
  ["vs", "light"],
  ["vs-dark", "dark"],
  ["hc-black", "dark"],
  ["hc-light", "light"],
])("a theme %s whose file is not to be had is one of its kind", (kind, type) => {
  const old = folder({ "theme.json": '{"tokenColors": "./old.tmTheme"}', "broken.json": "\0" });
  for (const path of [undefined, join(old, "none.json"), join(old, "theme.json"), join(old, "broken.json")])
    expect(loadTheme({ kind, path }).type).toBe(type);
});
