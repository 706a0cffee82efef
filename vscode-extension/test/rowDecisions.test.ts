// @vitest-environment happy-dom
import { afterEach, expect, test, vi } from "vitest";
import type * as vscode from "vscode";
import { entries, targets } from "../src/review/changes";
import type { ToHost } from "../src/chat/messages";
import { ChangesBar } from "../src/chat/view/changesBar";
import { HunksBox } from "../src/chat/view/hunks";
import type { Daemon } from "../src/daemon/client";
import type { Notification } from "../src/chat/chat";
import type { OpenChats } from "../src/chat/openChats";
import { Edits } from "../src/review/edits";
import { Folded } from "../src/sessions/fold";
import { split } from "../src/review/hunks";
import { describesRow, Proposals, proposedUri, sides } from "../src/review/proposals";
import type { Proposal, ProposedFile, Row, SessionState } from "../src/protocol";
import { Decisions } from "../src/review/decisions";
import { Lenses } from "../src/review/lenses";
import type { Merge } from "../src/review/merge";
import type { Navigation } from "../src/review/navigation";
import type { Owner } from "../src/review/owner";
import { Places } from "../src/review/places";
import { Seen } from "../src/review/seen";
import { Texts } from "../src/review/texts";
import { WayBack } from "../src/review/wayBack";
import { ChangesList } from "../src/review/list";
import type { Session } from "../src/sessions/session";
import type { Sessions } from "../src/sessions/sessions";
import { file, hunk, proposal, row } from "./edits";
import { state } from "./states";
import { EventEmitter, Uri, window } from "./vscode";

vi.mock("vscode-languageclient/node", () => ({})); // wants the real VS Code

afterEach(() => vi.restoreAllMocks());

const MODE: Partial<Row> = { kind: "mode", title: "becomes executable" };

/** The chat and the extension behind it, with a daemon that takes every answer. */
function at(given: Proposal) {
  const asked: [string, unknown][] = [];
  const told: string[] = [];
  const session = new Folded(state({ proposals: [given] }));
  const sessions = { states: [session.state], get: () => ({ state: session.state }) as Session };
  const openChats = { tell: ({ text }: Notification) => void told.push(text) } as unknown as OpenChats;
  const daemon = {
    request: async (method: string, { sessionId, ...params }: Record<string, unknown>) => {
      asked.push([method.replace("amanu/proposal/", ""), params]);
      return { status: "resolved", proposal: given, proposals: [], files: [], note: "" };
    },
  };
  const edits = new Edits(sessions, openChats, daemon as unknown as Daemon, () => undefined);
  const texts = new Texts(daemon as unknown as Daemon);
  const proposals = new Proposals(sessions as unknown as Sessions, openChats, edits, texts);
  const places = new Places(proposals);
  const navigation = {
    inEditor: (decide: () => Promise<void>) => decide(),
    go: async () => true,
  } as unknown as Navigation;
  const owner = { of: () => "s1", sessionId: "s1" } as unknown as Owner;
  const seen = new Seen(places);
  const merge: Pick<Merge, "fits"> = { fits: () => false };
  const decisions = new Decisions(
    openChats,
    proposals,
    edits,
    places,
    navigation,
    seen,
    owner,
    merge as Merge,
  );
  const wayBack = new WayBack(sessions as unknown as Sessions, openChats, proposals, edits);
  const lenses = new Lenses(places, proposals, sessions, merge);
  /** What the extension does at a message of the chat. */
  const receive = async (message: ToHost) => {
    if (message.type === "hunks") await edits.resolve("s1", message, message);
    if (message.type === "decide") await edits.decide("s1", message.scope, message.decision, message.seen);
    if (message.type === "retryChange")
      await edits.retry("s1", { version: message.version, proposalId: "p" }, message.scope);
    if (message.type === "undo") await edits.undo("s1", message.scope);
    if (message.type === "settle")
      await decisions.settleSeen(message.files, message.yes, message.only ?? undefined);
  };
  const chat = (posted: ToHost[]) => ({ session, client: "here", post: (m: ToHost) => posted.push(m) });
  return { asked, told, session, proposals, decisions, wayBack, places, lenses, receive, chat };
}

/** Press those buttons of the bar over the prompt box, or of the card. */
async function press(given: Proposal, where: "bar" | "card", ...labels: string[]) {
  const shown = at(given);
  const posted: ToHost[] = [];
  const bar = new ChangesBar(shown.chat(posted));
  const box = new HunksBox(shown.chat(posted));
  bar.reset();
  bar.update();
  box.update(given, undefined);
  const element = where === "bar" ? bar.element : box.element;
  for (const label of labels)
    [...element.querySelectorAll("button")]
      .find((each) => (each.getAttribute("aria-label") ?? each.textContent) === label)
      ?.click();
  for (const message of posted) await shown.receive(message);
  return shown;
}

const EDIT = file("/w/run.sh", "a\n", [hunk("h", 1, "a\n", "b\n")]);
const both = (more: Partial<Row> = {}) =>
  proposal("p", "t", [EDIT], [row("r", "/w/run.sh", { ...MODE, ...more })]);
const alone = (more: Partial<Row> = {}) => proposal("p", "t", [], [row("r", "/w/x", more)]);
const VERSION = { proposalId: "p", version: 1 };
const yes = { hunkId: "h", decision: "accept" };
const no = { decision: "reject", reason: null };
const scope = { proposalId: "p", rowIds: ["r"] };
const seen = [VERSION];

test.each<[string, Proposal, "bar" | "card", string[], [string, unknown][]]>([
  [
    "all, hunks and rows in one answer",
    both(),
    "bar",
    ["Accept all"],
    [["resolve", { ...VERSION, hunks: [yes], rows: [{ rowId: "r", decision: "accept" }] }]],
  ],
  [
    "nothing of all",
    both(),
    "bar",
    ["Reject all"],
    [["resolve", { ...VERSION, hunks: [{ hunkId: "h", ...no }], rows: [{ rowId: "r", ...no }] }]],
  ],
  [
    "the hunks of a file without its bits",
    both(),
    "bar",
    ["Accept run.sh"],
    [["resolve", { ...VERSION, hunks: [yes], rows: [] }]],
  ],
  [
    "the bits without the hunks",
    both(),
    "bar",
    ["Reject run.sh, becomes executable"],
    [["resolve", { ...VERSION, hunks: [], rows: [{ rowId: "r", ...no }] }]],
  ],
  [
    "what a rule applied, kept",
    alone({ state: "applied" }),
    "bar",
    ["Keep all"],
    [["decide", { scope, decision: "keep", seen }]],
  ],
  [
    "undone",
    alone({ state: "applied" }),
    "bar",
    ["Undo x, binary file, 4,096 bytes"],
    [["undo", { scope, dryRun: false }]],
  ],
  [
    "what is open and what is applied",
    both({ state: "applied" }),
    "bar",
    ["Accept all"],
    [
      ["resolve", { ...VERSION, hunks: [yes], rows: [] }],
      ["decide", { scope, decision: "keep", seen }],
    ],
  ],
  ["what nobody can decide", alone({ undecidable: "Too late." }), "bar", ["Accept all", "Reject all"], []],
  [
    "one, on its card",
    alone(),
    "card",
    ["Accept"],
    [["resolve", { ...VERSION, hunks: [], rows: [{ rowId: "r", decision: "accept" }] }]],
  ],
  [
    "again, on its card",
    alone({ state: "conflicted" }),
    "card",
    ["Try again"],
    [["resolve", { ...VERSION, hunks: [], rows: [{ rowId: "r", decision: "accept" }] }]],
  ],
  [
    "made again by the model, on its card",
    alone({ state: "conflicted" }),
    "card",
    ["Ask Amanu to redo this change"],
    [["retry", { ...VERSION, hunkIds: null, rowIds: ["r"] }]],
  ],
  [
    "redone, on its card",
    alone({ state: "reverted" }),
    "card",
    ["Redo"],
    [["decide", { scope, decision: "redo", seen }]],
  ],
])("what the user answers in the chat reaches the daemon: %s", async (_, given, where, labels, expected) => {
  expect((await press(given, where, ...labels)).asked).toEqual(expected);
});

test("a row in conflict says why", async () => {
  const { told } = await press(
    alone({ state: "conflicted", reason: "It is there already." }),
    "card",
    "Reject",
  );
  expect(told).toEqual(["It is there already."]);
});

test("what nobody can decide says so, to a key as well", async () => {
  const { proposals, decisions, asked, told } = at(alone({ undecidable: "Too late." }));
  await decisions.settle(proposals.waiting, true);
  expect([asked, told]).toEqual([[], ["Too late."]]);
});

test.each<[string, unknown, boolean]>([
  ["its own group", { id: "review:s1", owner: state({}) }, true],
  ["no group", undefined, true],
  ["a group of which nothing waits any more", { id: "review:s2", owner: state({ sessionId: "s2" }) }, false],
])("all of a session is accepted, and never that of another: %s", async (_, group, accepted) => {
  const { decisions, asked, told } = at(alone());
  await decisions.settleSession(group, true);
  const answer = { ...VERSION, hunks: [], rows: [{ rowId: "r", decision: "accept" }] };
  expect(asked).toEqual(accepted ? [["resolve", answer]] : []);
  expect(told).toEqual(accepted ? [] : [expect.stringContaining("nothing to review in this session")]);
});

/** The document that tells of the first row. */
function description(given: Proposal) {
  const shown = at(given);
  const target = targets([shown.session.state]).find((each) => each.row !== undefined);
  if (target === undefined) throw new Error("no row");
  const uri = proposedUri(target);
  const text = target.file.hunks[0]?.newText ?? "";
  const document = {
    uri,
    isDirty: false,
    lineCount: split(text).length + 1,
    getText: () => text,
  } as unknown as vscode.TextDocument;
  return { ...shown, target, uri, document };
}

test.each<[string, Proposal, string[]]>([
  ["open", alone(), ["$(check) Accept", "$(x) Reject"]],
  [
    "among others",
    both({ needs: ["h"] }),
    ["$(check) Accept with 1 change it needs", "$(x) Reject", "2 of 2", "$(arrow-up)", "$(arrow-down)"],
  ],
  ["a deletion", alone({ kind: "deletion" }), ["$(check) Accept the deletion", "$(x) Reject the deletion"]],
  [
    "in conflict",
    alone({ state: "conflicted" }),
    ["$(check) Try again", "$(sparkle) Ask Amanu to redo it", "$(x) Reject"],
  ],
  ["applied by a rule", alone({ state: "applied" }), ["$(check) Keep", "$(discard) Undo"]],
  ["kept", alone({ state: "applied", reviewed: true }), ["$(pass) applied"]],
  ["that nobody can decide", alone({ undecidable: "$(x) late" }), ["\\$(x) late"]],
])("above a row stands what can be done: %s", (_, given, expected) => {
  const { lenses, document } = description(given);
  expect(lenses.provideCodeLenses(document).map(({ command }) => command?.title)).toEqual(expected);
});

test("a key at a row decides it", async () => {
  const { decisions, document, asked } = description(both());
  const visible = [{ start: { line: 0 }, end: { line: 9 } }];
  const editor = { document, selection: { active: { line: 0 } }, visibleRanges: visible };
  vi.spyOn(window, "activeTextEditor", "get").mockReturnValue(editor);
  await decisions.decide(true);
  await decisions.settleFile(false);
  expect(asked).toEqual([
    ["resolve", { ...VERSION, hunks: [], rows: [{ rowId: "r", decision: "accept" }] }],
    ["resolve", { ...VERSION, hunks: [], rows: [{ rowId: "r", ...no }] }],
  ]);
});

test("what describes a row is a document of its own, which nobody can write", async () => {
  const { proposals, target, uri } = description(both());
  const [before, after] = sides({ ...target, row: { ...target.row!, state: "applied" } });
  expect([before?.path, after.path]).toEqual(["/run.sh.mode", "/run.sh.mode"]);
  expect(after.scheme).toBe("amanu-proposal");
  expect(proposals.target(uri)?.row?.rowId).toBe("r");
  expect(proposals.target(proposedUri({ proposal: target.proposal, file: EDIT }))?.row).toBeUndefined();
  expect(await proposals.stat(uri)).toMatchObject({ permissions: 1 });
  await expect(proposals.writeFile(uri, Buffer.from("mine"))).rejects.toThrow("NoPermissions");
  expect(describesRow(uri)).toBe(true);
  expect(describesRow(proposedUri({ proposal: target.proposal, file: EDIT }))).toBe(false);
});

test("the file itself shows its hunks, and no row", () => {
  const { places } = at(both());
  const document = { uri: { scheme: "file", path: "/w/run.sh" }, getText: () => "a\n", lineCount: 2 };
  const found = places.in(document as unknown as vscode.TextDocument);
  expect(found.map((change) => change.hunk.hunkId)).toEqual(["h"]);
  expect([...places.numbers("s1").of.keys()]).toEqual(["p h", "p r"]);
});

test.each<[string, Proposal, [string, unknown][]]>([
  ["an entry of a row", alone({ state: "applied" }), [["undo", { scope, dryRun: false }]]],
  ["one that is open", alone(), []],
])("undone in Source Control: %s", async (_, given, expected) => {
  const { wayBack, session, asked } = at(given);
  const listed = entries([session.state as SessionState]).map((entry) => ({ entry }));
  await wayBack.undoFiles(listed);
  expect(asked).toEqual(expected);
});

test("undone from the document that describes it", async () => {
  const { wayBack, document, asked } = description(alone({ state: "applied" }));
  vi.spyOn(window, "activeTextEditor", "get").mockReturnValue({ document });
  await wayBack.undoFiles([]);
  expect(asked).toEqual([["undo", { scope, dryRun: false }]]);
});

test.each<[string, Row[], string[]]>([
  [
    "bits below their file",
    [row("r", "/w/run.sh", MODE)],
    ["/w/run.sh open run.sh: +1 −1, 1 to decide", "/w/run.sh open run.sh: becomes executable, 1 to decide"],
  ],
  [
    "elsewhere",
    [row("r", "/w/x", { state: "applied" })],
    [
      "/w/run.sh open run.sh: +1 −1, 1 to decide",
      "/w/x review x: binary file, 4,096 bytes, 1 to keep or undo",
    ],
  ],
  [
    "git, too late",
    [row("r", "/w", { kind: "git", title: "1 commit", undecidable: "Too late." })],
    [
      "/w/run.sh open run.sh: +1 −1, 1 to decide",
      "/w/.git undecidable the git repository: 1 commit, Too late.",
    ],
  ],
])("the list has rows, too: %s", (_, rows, expected) => {
  const { session, proposals } = at(proposal("p", "t", [EDIT], rows));
  const reset = new EventEmitter<void>();
  const never = new EventEmitter().event;
  const sessions = { states: [session.state], onReset: reset.event, onLeft: never, onEvent: never };
  const changes = new ChangesList(sessions as unknown as Sessions, proposals);
  reset.fire();
  const [group] = changes.getChildren();
  const listed = changes.getChildren(group).map((each) => changes.getTreeItem(each));
  expect(
    listed.map(
      ({ resourceUri, contextValue, label, description }) =>
        `${resourceUri?.path} ${contextValue} ${String(label)}: ${String(description)}`,
    ),
  ).toEqual(expected);
  expect(new Set(listed.map(({ id }) => id)).size).toBe(expected.length);
  const badge = (path: string) => changes.provideFileDecoration(Uri.file(path) as never)?.badge;
  expect(badge("/w/run.sh")).toBe(rows[0]?.kind === "mode" ? "2" : "1");
  changes.dispose();
});

test.each<[ProposedFile["change"], string[]]>([
  ["edit", ["/old.py", "/old.py"]],
  ["rename", ["/old.py", "/new.py"]],
  ["delete", ["/old.py", "/old.py"]],
  ["create", ["/old.py"]],
])("VS Code tells by its two sides what becomes of a file: %s", (change, expected) => {
  const changed = { ...file("/w/old.py", "a\n", [hunk("h", 1, "a\n", "b\n")]), change };
  const target = {
    sessionId: "s1",
    proposal: proposal("p", "t", [changed]),
    file: { ...changed, newPath: change === "rename" ? "/w/new.py" : null },
  };
  expect(sides(target).flatMap((side) => side?.path ?? [])).toEqual(expected);
});
