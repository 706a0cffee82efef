import { expect, test, vi } from "vitest";
import type * as vscode from "vscode";
import { activeEditor, selection } from "../src/editor/context";
import { window } from "./vscode";

vi.mock("vscode-languageclient/node", () => ({})); // wants the real VS Code

function editor(start: [line: number, character: number], end: [line: number, character: number]) {
  const [from, to] = [start, end].map(([line, character]) => ({ line, character }));
  const isEmpty = `${start}` === `${end}`;
  const document = { uri: { scheme: "file", fsPath: "/w/a.py" }, fileName: "a.py", getText: () => "text" };
  return { selection: { start: from, end: to, isEmpty }, document } as unknown as vscode.TextEditor;
}

test.each<[string, vscode.TextEditor, [number, number]]>([
  ["whole lines, the caret before the next", editor([45, 0], [53, 0]), [45, 53]],
  ["into a line", editor([45, 3], [53, 1]), [45, 54]],
  ["within one line", editor([4, 0], [4, 3]), [4, 5]],
  ["one whole line", editor([4, 0], [5, 0]), [4, 5]],
])("the lines of a selection: %s", (_, given, [start, end]) => {
  expect(activeEditor(given).lines).toEqual({ start, end });
  vi.spyOn(window, "activeTextEditor" as never, "get").mockReturnValue(given as never);
  const attached = selection();
  expect(attached).toMatchObject({ kind: "selection", lines: { start, end } });
});

test("the caret alone is in its own line", () => {
  const { lines, selectedText } = activeEditor(editor([4, 0], [4, 0]));
  expect([lines, selectedText]).toEqual([{ start: 4, end: 5 }, null]);
});
