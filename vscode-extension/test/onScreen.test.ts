import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { OpenChats } from "../src/chat/openChats";
import type { Edits } from "../src/review/edits";
import type { HunkState } from "../src/protocol";
import { PROPOSED, type Proposals } from "../src/review/proposals";
import { Decisions } from "../src/review/decisions";
import type { Merge } from "../src/review/merge";
import type { Navigation } from "../src/review/navigation";
import { type LocatedChange, Places } from "../src/review/places";
import type { Owner } from "../src/review/owner";
import { Seen } from "../src/review/seen";
import { file, hunk, proposal } from "./edits";
import type { Target } from "../src/review/changes";
import { notifications, TabInputNotebookDiff, Uri, window } from "./vscode";

beforeEach(() => notifications.splice(0));
afterEach(() => vi.restoreAllMocks());

const BASE = Array.from({ length: 200 }, (_, at) => `line ${at + 1}\n`).join("");

/** A file with changes of lines 2, 50 and 150, in an editor that shows some of its lines, from 0. */
function editor(scheme: string, state: HunkState, cursor: number, shown: [from: number, to: number]) {
  const hunks = [2, 50, 150].map((line) => hunk(`h${line}`, line, `line ${line}\n`, `LINE ${line}\n`, state));
  const target = { sessionId: "s1", proposal: proposal("p", "t", []), file: file("/w/a", BASE, hunks) };
  const range = ([from, to]: [number, number]) => ({ start: { line: from }, end: { line: to } });
  const look = (lines: [number, number]) => [range(lines)];
  const shownEditor = {
    document: { uri: { scheme, path: "/w/a" }, lineCount: 200 },
    selection: { active: { line: cursor } },
    visibleRanges: look(shown),
  };
  vi.spyOn(window, "activeTextEditor", "get").mockReturnValue(shownEditor);
  const said: string[] = [];
  const proposals = {
    all: [target],
    waiting: [target],
    target: () => target,
    shown: () => target.file.hunks,
    since: () => null,
    settle: async (chosen: Target[], wanted: (each: unknown) => boolean, yes: boolean) => {
      const decided = chosen.flatMap(({ file }) => file.hunks.filter(wanted));
      said.push(`${yes ? "yes" : "no"} ${decided.map(({ hunkId }) => hunkId)}`);
    },
  } as unknown as Proposals;
  const navigation = {
    reveal: async (_: unknown, { hunk: { hunkId } }: LocatedChange) => said.push(`show ${hunkId}`),
    go: async () => said.push("next"),
    inEditor: (decide: () => Promise<void>) => decide(),
  } as unknown as Navigation;
  const places = new Places(proposals);
  const decisions = new Decisions(
    {} as OpenChats,
    proposals,
    {} as Edits,
    places,
    navigation,
    new Seen(places),
    {
      of: () => "s1",
    } as unknown as Owner,
    {} as Merge,
  );
  const scroll = (lines: [number, number]) => (shownEditor.visibleRanges = look(lines));
  return { decisions, said, scroll, proposals };
}

test.each<[string, string, HunkState, number, [number, number], boolean, string]>([
  ["yes in the diff", PROPOSED, "pending", 1, [0, 40], true, "yes h2"],
  ["no in the diff", PROPOSED, "pending", 1, [0, 40], false, "no h2"],
  ["a cursor that was scrolled away", PROPOSED, "pending", 1, [80, 120], true, "show h2"],
  ["the file itself, where its text is not", "file", "pending", 1, [0, 40], true, "show h2"],
  ["text a rule applied, in the file", "file", "applied", 1, [0, 40], true, "yes h2"],
  ["applied text that was scrolled away", "file", "applied", 49, [80, 120], true, "show h50"],
  ["a line of no change", PROPOSED, "pending", 20, [0, 40], true, "next"],
])(
  "a key decides what is on screen and shows what is not: %s",
  async (_, scheme, state, cursor, shown, yes, expected) => {
    const { decisions, said } = editor(scheme, state, cursor, shown);
    await decisions.decide(yes);
    expect(said).toEqual([expected]);
  },
);

test("all of a file is accepted when all of it was on screen", async () => {
  const { decisions, said, scroll } = editor(PROPOSED, "pending", 1, [0, 60]);
  await decisions.settleFile(true);
  expect(said.splice(0)).toEqual(["show h150"]);
  expect(notifications.map(({ text }) => text)).toEqual([
    "$(eye) 1 of 3 changes not seen yet: look at them, then accept again",
  ]);
  scroll([140, 190]);
  await decisions.settleFile(true);
  expect(said).toEqual(["yes h2,h50,h150"]);
});

test("a no needs no look", async () => {
  const { decisions, said } = editor(PROPOSED, "pending", 1, [0, 10]);
  await decisions.settleFile(false);
  expect(said).toEqual(["no h2,h50,h150"]);
});

test.each([true, false])("a file's changes that its text does not show are left: %s", async (yes) => {
  const { decisions, said, proposals } = editor(PROPOSED, "pending", 1, [0, 190]);
  const [first, second] = proposals.shown(Uri.file("/w/a") as never);
  Object.assign(proposals, { shown: () => [first, second] });
  await decisions.settleFile(yes);
  expect(said).toEqual([`${yes ? "yes" : "no"} h2,h50`]);
});

test("a list decides the versions that were seen in it", async () => {
  const { decisions, said } = editor(PROPOSED, "pending", 1, [0, 10]);
  Object.assign(decisions, { openChats: { tell: ({ text }: { text: string }) => said.push(text) } });
  const seen = { proposalId: "p", path: "/w/a" };
  await decisions.settleSeen([{ ...seen, version: 0 }], true);
  await decisions.settleSeen([{ ...seen, version: 1 }], true);
  expect(said).toEqual(["Some changes were updated in the meantime. Review them again.", "yes h2,h50,h150"]);
});

test("a notebook whose cells are compared is decided as a whole: no editor has its lines", async () => {
  const { decisions, said } = editor(PROPOSED, "pending", 20, [0, 10]);
  const uri = Uri.from({ scheme: PROPOSED, path: "/w/a", query: "p" });
  const input = new TabInputNotebookDiff(uri, uri);
  vi.spyOn(window.tabGroups.activeTabGroup, "activeTab", "get").mockReturnValue({ input });
  await decisions.decide(true);
  await decisions.settleFile(false);
  expect(said).toEqual(["yes h2,h50,h150", "no h2,h50,h150"]);
});
