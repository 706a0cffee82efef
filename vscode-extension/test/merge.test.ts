import { expect, test, vi } from "vitest";
import type * as vscode from "vscode";
import type { Pages } from "../src/editor/pages";
import { targets } from "../src/review/changes";
import { Merge, mergedTexts } from "../src/review/merge";
import { file, hunk, proposal } from "./edits";
import { state } from "./states";
import { commands, saved, tabs, Uri } from "./vscode";

vi.mock("vscode-languageclient/node", () => ({})); // wants the real VS Code

const CONFLICT = hunk("h", 2, "two\n", "zwei\n", "conflicted");

test.each<[string, string, number, number, string, string]>([
  ["lines the user changed", "one\nmine\nthree\n", 1, 1, "one\ntwo\nthree\n", "one\nzwei\nthree\n"],
  ["lines that are gone", "one\nthree\n", 1, 0, "one\ntwo\nthree\n", "one\nzwei\nthree\n"],
  ["Windows' line ends", "one\r\nmine\r\n", 1, 1, "one\r\ntwo\r\n", "one\r\nzwei\r\n"],
])("three texts are merged: %s", (_, text, start, lines, base, proposed) => {
  expect(mergedTexts(text, { hunk: CONFLICT, start, lines })).toEqual({ base, proposed });
});

test.each<[string, boolean, boolean, boolean]>([
  ["saved and closed", true, true, true],
  ["closed as it was", false, true, false],
  ["saved, and still open", true, false, false],
])("a conflict is over when its result is in the file: %s", async (_, saves, closes, settles) => {
  const given = proposal("p", "t", [file("/w/a", "one\nmine\n", [CONFLICT])]);
  const [target] = targets([state({ proposals: [given] })]);
  if (target === undefined) throw new Error("no change");
  const asked: unknown[] = [];
  const pages = { keep: (name: string) => Uri.file(`/${name}`) } as unknown as Pages;
  const resolve = async (...params: unknown[]) => void asked.push(params);
  const merge = new Merge(pages, { resolve }, { waiting: [target] });
  await vi.waitFor(() => expect(merge.fits({ target, hunk: CONFLICT })).toBe(true));
  expect(merge.fits({ target, hunk: { ...CONFLICT, state: "pending" } })).toBe(false);

  const uri = Uri.file("/w/a");
  const document = { uri, save: async () => true, getText: () => "one\nmine\n" };
  const change = { target, hunk: CONFLICT, start: 1, lines: 1 };
  await merge.open(change, document as unknown as vscode.TextDocument);
  expect(commands.ran.at(-1)).toMatchObject(["_open.mergeEditor", { output: uri }]);
  if (saves) saved.fire({ uri });
  if (closes) tabs.fire({ closed: [{ input: { result: uri } }] });
  const answer = { hunkId: "h", decision: "reject", reason: expect.stringContaining("by hand") };
  await vi.waitFor(() =>
    expect(asked).toEqual(settles ? [["s1", given, { hunks: [answer], rows: [] }]] : []),
  );
  merge.dispose();
});
