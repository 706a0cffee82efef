import { expect, test } from "vitest";
import { lineEdit, LineEdits, shifted } from "../src/review/lineEdits";

type Edit = [start: number, end: number, added: number];
const change = ([from, at, to, end]: [number, number, number, number], text: string) => ({
  range: { start: { line: from, character: at }, end: { line: to, character: end } },
  text,
});

test.each<[string, Edit, [number, number], [number, number]]>([
  ["lines typed above", [1, 1, 2], [3, 5], [5, 7]],
  ["lines deleted above", [0, 2, 0], [3, 5], [1, 3]],
  ["a line edited above", [2, 3, 1], [3, 5], [3, 5]],
  ["a line typed right before them", [3, 3, 1], [3, 5], [4, 6]],
  ["a line typed right after them", [5, 5, 1], [3, 5], [3, 5]],
  ["lines deleted below", [7, 9, 0], [3, 5], [3, 5]],
  ["one of them edited", [4, 5, 1], [3, 5], [3, 5]],
  ["all of them edited", [3, 5, 2], [3, 5], [3, 5]],
  ["a line typed among them", [4, 4, 2], [3, 5], [3, 7]],
  ["one of them deleted", [3, 4, 0], [3, 5], [3, 4]],
  ["all of them deleted", [3, 5, 0], [3, 5], [3, 3]],
  ["deleted with lines around them", [1, 9, 0], [3, 5], [1, 1]],
  ["the first of them deleted with a line above", [2, 4, 0], [3, 5], [2, 3]],
  ["the last of them deleted with a line below", [4, 6, 0], [3, 5], [3, 4]],
  ["lines around them written anew", [0, 9, 9], [3, 5], [3, 5]],
  ["lines around them written anew, fewer", [2, 9, 2], [3, 5], [3, 4]],
  ["a place between lines, above which lines are typed", [1, 1, 2], [3, 3], [5, 5]],
  ["a place at which a line is typed goes with the line below it", [3, 3, 1], [3, 3], [4, 4]],
  ["a place below which a line is edited", [3, 4, 1], [3, 3], [3, 3]],
  ["a place among lines that are deleted", [1, 5, 0], [3, 3], [1, 1]],
])("where lines are after an edit: %s", (_, [start, end, added], [from, to], expected) => {
  const { start: first, end: last } = shifted({ start: from, end: to }, { start, end, added });
  expect([first, last]).toEqual(expected);
});

test.each<[string, [number, number, number, number], string, Edit]>([
  ["a letter", [2, 4, 2, 4], "x", [2, 3, 1]],
  ["a whole line before another", [2, 0, 2, 0], "x\n", [2, 2, 1]],
  ["a line end inside a line", [2, 4, 2, 4], "\r\n  ", [2, 3, 2]],
  ["whole lines deleted", [2, 0, 4, 0], "", [2, 4, 0]],
  ["whole lines replaced", [2, 0, 4, 0], "a\nb\nc\n", [2, 4, 3]],
  ["text without a line end before a line", [2, 0, 4, 0], "a", [2, 5, 1]],
  ["lines joined", [2, 4, 3, 0], "", [2, 4, 1]],
])("the lines of a change: %s", (_, range, text, [start, end, added]) => {
  expect(lineEdit(change(range, text))).toEqual({ start, end, added });
});

test("what the daemon says of a version is shifted by all that came after it", () => {
  const edits = new LineEdits();
  edits.add(2, [change([9, 0, 9, 0], "below\n"), change([0, 0, 0, 0], "a\n")]);
  edits.add(3, [change([0, 0, 0, 0], "b\nc\n")]);
  const starts = [null, 0, 1, 2, 3].map((version) => edits.shift({ start: 4, end: 5 }, version).start);
  expect(starts).toEqual([7, 7, 7, 6, 4]);
  // the document was closed since, and its versions are counted anew
  expect(edits.shift({ start: 4, end: 5 }, 40)).toEqual({ start: 7, end: 8 });
  edits.clear();
  expect(edits.shift({ start: 4, end: 5 }, null)).toEqual({ start: 4, end: 5 });
});
