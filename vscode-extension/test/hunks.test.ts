import { expect, test } from "vitest";
import { split } from "../src/review/hunks";
import { newLines } from "../src/review/newLines";
import { hunk } from "./edits";

test("lines keep their ends", () => {
  expect(split("a\r\nb\rc\nd")).toEqual(["a\r\n", "b\r", "c\n", "d"]);
  expect(split("")).toEqual([]);
});

test.each<[string, string, string, [from: number, lines: number][]]>([
  ["replaced", "a\n", "b\n", [[0, 1]]],
  ["new before lines that stay", "\n\n", "x\n\ny\n\n\n", [[0, 3]]],
  ["new around a line that stays", "a\nm\nb\n", "x\nm\ny\nz\n", [[0, 1], [2, 2]]], // prettier-ignore
  ["nothing new", "a\nm\nb\n", "a\nb\n", [[0, 2]]],
])("what of a hunk is new: %s", (_, oldText, newText, expected) => {
  expect(newLines(hunk("h", 1, oldText, newText)).map(({ from, lines }) => [from, lines])).toEqual(expected);
});
