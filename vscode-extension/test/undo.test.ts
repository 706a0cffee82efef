import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { Daemon } from "../src/daemon/client";
import type { Notification } from "../src/chat/chat";
import type { OpenChats } from "../src/chat/openChats";
import { entries, targets } from "../src/review/changes";
import { Edits } from "../src/review/edits";
import { WayBack } from "../src/review/wayBack";
import { IGNORED } from "../src/labels";
import type { UndoneFile } from "../src/protocol";
import type { Session } from "../src/sessions/session";
import type { Sessions } from "../src/sessions/sessions";
import { file, hunk, proposal } from "./edits";
import { state } from "./states";
import { picks, window } from "./vscode";

const FILE: UndoneFile = {
  path: "/w/a.py",
  newPath: null,
  action: "edit",
  diff: "",
  undone: [{ proposalId: "p", hunkId: "a" }],
  skipped: [],
};
const LEFT = {
  ...FILE,
  undone: [],
  skipped: [{ proposalId: "p", hunkId: "b", reason: "You changed these lines." }],
};

vi.mock("vscode-languageclient/node", () => ({})); // wants the real VS Code

beforeEach(() => picks.splice(0));
afterEach(() => vi.restoreAllMocks());

/** The user's side, with a daemon that answers so. */
function at(answers: Record<string, unknown>) {
  const asked: [string, Record<string, unknown>][] = [];
  const told: string[] = [];
  const back: [string, number][] = [];
  const proposals = [proposal("p", "t", [file("/w/a.py", "x\n", [hunk("a", 1, "x\n", "y\n", "applied")])])];
  const sessions = { get: () => ({ state: state({ proposals }) }) as Session };
  const openChats = { tell: ({ text }: Notification) => void told.push(text) };
  const daemon = {
    request: async (method: string, { sessionId, ...params }: Record<string, unknown>) => {
      expect(sessionId).toBe("s1");
      asked.push([method, params]);
      return answers[method.replace("amanu/", "")];
    },
  };
  const edits = new Edits(sessions, openChats, daemon as unknown as Daemon, (_, text, attachments) =>
    back.push([text, attachments.length]),
  );
  return { edits, asked, told, back };
}

test("a hunk is undone at once, and what could not be is said", async () => {
  const { edits, asked, told } = at({ "proposal/undo": { files: [LEFT] } });
  const scope = { proposalId: "p", hunkIds: ["b"] };
  await edits.undo("s1", scope);
  expect(asked).toEqual([["amanu/proposal/undo", { scope, dryRun: false }]]);
  expect(told).toEqual(["Not undone in a.py: You changed these lines."]);
});

test.each([
  ["Enter", 0, [true, false]],
  ["a row that is only there to be read, then Escape", 2, [true]],
  ["Escape", undefined, [true]],
])("a turn is undone after a look at the list: %s", async (_, row, dryRuns) => {
  const { edits, asked } = at({ "proposal/undo": { files: [FILE] } });
  const done = edits.undo("s1", { turnId: "t" }, "Undo this turn");
  await expect.poll(() => picks.length).toBe(1);
  expect(picks[0]?.items.map(({ label }) => label)).toEqual([
    "$(discard) Undo this turn: 1 change in 1 file",
    "files",
    "$(file) a.py",
  ]);
  if (row !== undefined) picks[0]?.choose(row);
  picks[0]?.hide();
  await done;
  expect(asked.map(([, params]) => params.dryRun)).toEqual(dryRuns);
});

test("nothing is asked when nothing can be taken back", async () => {
  const { edits, told } = at({ "proposal/undo": { files: [LEFT] } });
  await edits.undo("s1", { turnId: "t" }, "Undo this turn");
  expect(picks).toEqual([]);
  expect(told).toHaveLength(1);
});

test.each([
  ["files alone", 0, { files: true, conversation: false }, null, []],
  ["the conversation too", 1, { files: true, conversation: true }, "do it", [["do it", 1]]],
] as const)("going back: %s", async (_, row, how, text, given) => {
  const picture = { kind: "image", name: "p", mediaType: "image/png", data: null, blob: null };
  const attachments = [{ kind: "file", path: "/w/a.py", lines: null }, picture];
  const { edits, asked, told, back } = at({
    "checkpoint/preview": { files: [FILE], commands: ["make $(x)"], turns: 2 },
    "checkpoint/restore": { files: [FILE], text, attachments: text === null ? [] : attachments },
  });
  const done = edits.restore("s1", "t");
  await expect.poll(() => picks.length).toBe(1);
  expect(picks[0]?.items.at(-1)?.label).toBe("$(terminal) make \\$(x)");
  picks[0]?.choose(row);
  await done;
  expect(asked[1]).toEqual(["amanu/checkpoint/restore", { turnId: "t", ...how }]);
  expect(back).toEqual(given);
  expect(told).toEqual(text === null ? [] : ["Images have to be attached again."]);
});

test("what is decided counts for the versions that were seen", async () => {
  const { edits, asked, told } = at({
    "proposal/decide": { status: "tooSoon", proposals: [] },
  });
  await edits.decide("s1", { turnId: "t" }, "keep");
  await edits.decide("s1", { turnId: "elsewhere" }, "keep");
  const seen = [{ proposalId: "p", version: 1 }];
  expect(asked).toEqual([["amanu/proposal/decide", { scope: { turnId: "t" }, decision: "keep", seen }]]);
  expect(told).toEqual([IGNORED.tooSoon, "There are no such changes."]);
});

test.each<[string, string[], string[]]>([
  ["an entry of one session's group", ["s1"], ["s1"]],
  ["entries of two groups", ["s1", "s2"], ["s1", "s2"]],
  ["the file in front", [], ["s1", "s2"]],
])("a file that two sessions changed is undone in those it was asked of: %s", async (_, listed, expected) => {
  const applied = file("/w/a.py", "x\n", [hunk("a", 1, "x\n", "y\n", "applied")]);
  const states = ["s1", "s2"].map((sessionId) =>
    state({ sessionId, proposals: [proposal("p", "t", [applied])] }),
  );
  const undone: [string, unknown][] = [];
  const proposals = { all: targets(states), target: () => undefined };
  const edits = { undo: async (sessionId: string, scope: unknown) => undone.push([sessionId, scope]) };
  const document = { uri: { scheme: "file", path: "/w/a.py" } };
  vi.spyOn(window, "activeTextEditor", "get").mockReturnValue({ document });
  const wayBack = new WayBack({} as Sessions, {} as OpenChats, proposals as never, edits as never);
  const groups = states.filter(({ sessionId }) => listed.includes(sessionId));
  await wayBack.undoFiles(
    groups.flatMap((each) => entries([each]).map((entry) => ({ id: each.sessionId, entry }))),
  );
  expect(undone).toEqual(expected.map((sessionId) => [sessionId, { path: "/w/a.py" }]));
});
