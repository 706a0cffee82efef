import { expect, test } from "vitest";
import { compose, DONE, locate, ownTexts, SHOWN, split } from "../src/review/hunks";
import { newLines } from "../src/review/newLines";
import { hunk } from "./edits";

const BASE = "one\ntwo\nthree\nfour\nfive\nsix\n";

const TWO = hunk("a", 2, "two\n", "zwei\nund mehr\n");
const FIVE = hunk("b", 5, "five\n", "fünf\n");

test("lines keep their ends", () => {
  expect(split("a\r\nb\rc\nd")).toEqual(["a\r\n", "b\r", "c\n", "d"]);
  expect(split("")).toEqual([]);
});

test("the proposed text, with what is refused left out", () => {
  const { text, places } = compose(BASE, [FIVE, TWO], SHOWN);
  expect(text).toBe("one\nzwei\nund mehr\nthree\nfour\nfünf\nsix\n");
  expect(places.map(({ hunk: { hunkId }, start, lines }) => [hunkId, start, lines])).toEqual([
    ["a", 1, 2],
    ["b", 5, 1],
  ]);
  expect(compose(BASE, [{ ...TWO, state: "rejected" }, FIVE], SHOWN).text).toBe(BASE.replace("five", "fünf"));
  expect(compose(BASE, [{ ...TWO, state: "applied" }, FIVE], DONE).text).toBe(
    BASE.replace("two\n", "zwei\nund mehr\n"),
  );
});

test("insertions and deletions", () => {
  expect(compose(BASE, [hunk("i", 0, "", "zero\n")], SHOWN).text).toBe(`zero\n${BASE}`);
  expect(compose(BASE, [hunk("i", 6, "", "seven\n")], SHOWN).text).toBe(`${BASE}seven\n`);
  expect(compose(BASE, [hunk("d", 3, "three\n", "")], SHOWN).text).toBe(BASE.replace("three\n", ""));
  expect(compose("", [hunk("n", 0, "", "new\n")], SHOWN).text).toBe("new\n");
});

test.each<[string, (text: string) => string, Record<string, string>, boolean]>([
  ["nothing edited", (text) => text, {}, false],
  ["one line of a hunk", (text) => text.replace("und mehr", "and more"), { a: "zwei\nand more\n" }, false],
  ["a line added in it", (text) => text.replace("mehr\n", "mehr\n!\n"), { a: "zwei\nund mehr\n!\n" }, false],
  ["both", (t) => t.replace("zwei", "2").replace("fünf", "5"), { a: "2\nund mehr\n", b: "5\n" }, false],
  [
    "first grows, second moves",
    (t) => t.replace("zwei\n", "2\n2\n").replace("fünf", "5"),
    { a: "2\n2\nund mehr\n", b: "5\n" },
    false,
  ],
  ["a hunk emptied", (text) => text.replace("fünf\n", ""), { b: "" }, false],
  ["outside", (text) => text.replace("three", "3"), {}, true],
  ["outside and inside", (t) => t.replace("one", "1").replace("fünf", "5"), { b: "5\n" }, true],
  ["line ends alone", (text) => text.replaceAll("\n", "\r\n"), {}, false],
])("what the user made of it: %s", (_, edit, texts, outside) => {
  const { text, places } = compose(BASE, [TWO, FIVE], SHOWN);
  const own = ownTexts(text, places, edit(text));
  expect(Object.fromEntries(own.texts)).toEqual(texts);
  expect(own.outside).toBe(outside);
});

test("what is decided already is not taken from an edit", () => {
  const decided = hunk("a", 2, "two\n", "zwei\nund mehr\n", "applied");
  const { text, places } = compose(BASE, [decided, FIVE], SHOWN);
  expect(ownTexts(text, places, text.replace("zwei", "2"))).toMatchObject({ outside: true });
});

test.each<[string, string, [string, number][]]>([
  [
    "untouched",
    BASE,
    [
      ["a", 1],
      ["b", 4],
    ],
  ],
  [
    "lines above",
    `x\ny\n${BASE}`,
    [
      ["a", 3],
      ["b", 6],
    ],
  ],
  [
    "other line ends",
    BASE.replaceAll("\n", "\r\n"),
    [
      ["a", 1],
      ["b", 4],
    ],
  ],
  ["its lines edited", BASE.replace("two", "2"), [["b", 4]]],
  ["everything gone", "", []],
])("where pending hunks stand in the file: %s", (_, text, expected) => {
  for (const base of [BASE, undefined])
    expect(locate(text, base, [TWO, FIVE]).map(({ hunk: { hunkId }, start }) => [hunkId, start])).toEqual(
      expected,
    );
});

test.each<[string, string, string, [from: number, lines: number][]]>([
  ["replaced", "a\n", "b\n", [[0, 1]]],
  ["new before lines that stay", "\n\n", "x\n\ny\n\n\n", [[0, 3]]],
  ["new around a line that stays", "a\nm\nb\n", "x\nm\ny\nz\n", [[0, 1], [2, 2]]], // prettier-ignore
  ["nothing new", "a\nm\nb\n", "a\nb\n", [[0, 2]]],
])("what of a hunk is new: %s", (_, oldText, newText, expected) => {
  expect(newLines(hunk("h", 1, oldText, newText)).map(({ from, lines }) => [from, lines])).toEqual(expected);
});
