import { expect, test, vi } from "vitest";
import { meaning } from "./edits";
import type { Event, Proposal } from "../src/protocol";

vi.mock("vscode", () => ({
  window: { visibleTextEditors: [{ document: { uri: { scheme: "file", fsPath: "/w/open.py" } } }] },
  workspace: { fs: { stat: () => Promise.resolve({}) } },
  Uri: { file: (fsPath: string) => ({ fsPath }) },
}));

const { BlockActions } = await import("../src/chat/blocks");
const { application, commandOf } = await import("../src/chat/code");

test.each([
  ["make\n", "bash", "make"],
  ["cd a\nmake", "sh", "cd a\nmake"],
  ["$ make\nall is well\n$ make test", "console", "make\nmake test"],
  ["make", "console", "make"],
  ["$ make", "bash", "$ make"],
  ["ls \u200b-a", "bash", undefined],
  ["ls\u0007", "bash", undefined],
  ["  \n", "bash", undefined],
])("the commands of a block: %j as %s", (text, language, expected) => {
  expect(commandOf(text, language)).toBe(expected);
});

test.each([
  ["/w/src/a.py", ["/w"], "x", "py", "/apply src/a.py\n\n```py\nx\n```"],
  ["/w/src/a.py", ["/w", "/v"], "x", "", "/apply /w/src/a.py\n\n```\nx\n```"],
  ["/w/a.md", ["/w"], "````py\n````", "md", "/apply a.md\n\n`````md\n````py\n````\n`````"],
])("the prompt that applies a block to %s", (file, folders, code, language, expected) => {
  expect(application(file, folders, code, language)).toBe(expected);
});

/** The actions, what was said by them, and what was shown. */
function actions(): { blocks: InstanceType<typeof BlockActions>; said: string[][]; shown: string[] } {
  const said: string[][] = [];
  const shown: string[] = [];
  const view = {
    prompt: async (text: string, _: unknown, how: string, promptId = "") =>
      void said.push([text, how, promptId]),
    tell: ({ text }: { text: string }) => void said.push([text]),
  };
  return { blocks: new BlockActions(view, async (proposalId) => void shown.push(proposalId)), said, shown };
}

function proposed(turnId: string, state: "pending" | "applied"): Event {
  const files = [{ path: "/w/a.py", hunks: [{ hunkId: "h", state, ...meaning(state, true) }] }];
  return {
    kind: "proposalChanged",
    proposal: { proposalId: `p-${turnId}`, turnId, files } as unknown as Proposal,
  };
}

test("a block goes to the file it names, else to the one in the editor, and what it proposes is shown once", async () => {
  const { blocks, said, shown } = actions();
  const block = { text: "x", language: "py" };
  await blocks.apply(block, "src/a.py", ["/w"]);
  await blocks.apply(block, null, ["/w"]);
  await blocks.apply(block, null, ["/elsewhere"]);
  expect(said.map(([text, how]) => [text?.split("\n")[0], how])).toEqual([
    ["/apply src/a.py", "queue"],
    ["/apply open.py", "queue"],
    ["Open the file that this code is for, then try again.", undefined],
  ]);
  for (const [at, turnId] of ["one", "two"].entries())
    await blocks.heard({ kind: "turnStarted", turnId, promptId: said[at]?.[2] ?? "", modelId: "m" });
  await blocks.heard({ kind: "turnStarted", turnId: "other", promptId: "other", modelId: "m" });
  await blocks.heard(proposed("other", "pending"));
  await blocks.heard(proposed("one", "pending"));
  await blocks.heard(proposed("one", "pending"));
  await blocks.heard(proposed("two", "applied"));
  expect(shown).toEqual(["p-one"]);
});

test("a block of commands is said as a command line, or refused", async () => {
  const { blocks, said } = actions();
  await blocks.run({ text: "$ make", language: "console" });
  await blocks.run({ text: "ls \u200b-a", language: "bash" });
  expect(said).toEqual([
    ["! make", "queue", ""],
    ["These lines contain invisible characters, so they were not run. Copy them instead."],
  ]);
});
