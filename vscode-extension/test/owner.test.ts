import { afterEach, expect, test, vi } from "vitest";
import { OpenChats } from "../src/chat/openChats";
import type { Chat } from "../src/chat/chat";
import { PROPOSED } from "../src/review/proposals";
import type { Proposals } from "../src/review/proposals";
import { Owner } from "../src/review/owner";
import { Places } from "../src/review/places";
import { sessionOf } from "../src/review/list";
import { file, hunk, proposal } from "./edits";
import { state } from "./states";
import { edited, EventEmitter, window } from "./vscode";

afterEach(() => vi.restoreAllMocks());

const BASE = Array.from({ length: 20 }, (_, at) => `line ${at + 1}\n`).join("");

/** A file of which the session Alpha changes line 3, Beta line 9, and both line 15. */
const TARGETS = [
  ["alpha", 3],
  ["beta", 9],
  ["alpha", 15],
  ["beta", 15],
].map(([sessionId, line], at) => ({
  sessionId: String(sessionId),
  proposal: proposal(`p${at}`, "t", []),
  file: file("/w/a", BASE, [hunk("h", Number(line), `line ${line}\n`, "new\n")]),
}));

/** Chats of these sessions, the first of them in front. */
function chats(...sessions: string[]) {
  const openChats = new OpenChats();
  const all = sessions.map(
    (sessionId) =>
      ({
        state: state({ sessionId, parentSessionId: sessionId === "child" ? "alpha" : null }),
        onEvent: new EventEmitter().event,
        onReset: new EventEmitter().event,
      }) as unknown as Chat,
  );
  for (const chat of all) openChats.add(chat);
  const proposals = {
    all: TARGETS,
    waiting: TARGETS,
    target: () => TARGETS[1],
    shown: () => [],
    since: () => null,
  } as unknown as Proposals;
  return { openChats, all, owner: new Owner(openChats, new Places(proposals)) };
}

/** The user goes to an editor: the file itself or the diff of what Beta proposes. */
function edits(scheme: string, line = 1, path = "/w/a") {
  const editor = {
    document: { uri: { scheme, path }, getText: () => BASE, lineCount: 20 },
    selection: { active: { line: line - 1 } },
  };
  vi.spyOn(window, "activeTextEditor", "get").mockReturnValue(editor);
  edited.fire({ kind: 2 });
}

test.each<[string, string, () => void, string]>([
  ["no editor", "gamma", () => undefined, "gamma"],
  ["a file without changes", "gamma", () => edits("file", 3, "/w/b"), "gamma"],
  ["another's diff", "gamma", () => edits(PROPOSED), "beta"],
  ["a line that one of them changes", "gamma", () => edits("file", 9), "beta"],
  ["the line of another's change", "beta", () => edits("file", 3), "alpha"],
  ["a line that both change", "beta", () => edits("file", 15), "beta"],
  ["a file that the one in front changes", "beta", () => edits("file", 1), "beta"],
  ["the chat of a sub-agent", "child", () => undefined, "alpha"],
])("in %s, with %s in front, a command is about its session", (_, front, go, expected) => {
  const { owner } = chats(front);
  go();
  expect(owner.sessionId).toBe(expected);
});

test("who goes back to a chat means that one, whatever the editor shows", () => {
  const { owner, openChats, all } = chats("gamma", "beta");
  edits(PROPOSED);
  for (const chat of all) openChats.activate(chat);
  expect(owner.sessionId).toBe("beta");
  openChats.activate(all[0] as Chat);
  expect(owner.sessionId).toBe("gamma");
  edits(PROPOSED);
  expect(owner.sessionId).toBe("beta");
});

test("an editor that comes to the front beside a chat with the focus changes nothing", () => {
  const { owner, openChats, all } = chats("gamma");
  openChats.activate(all[0] as Chat);
  openChats.focused = all[0];
  edits(PROPOSED);
  openChats.activate(all[0] as Chat);
  window.shown.fire(window.activeTextEditor);
  expect(owner.sessionId).toBe("gamma");
  openChats.focused = undefined;
  window.shown.fire(window.activeTextEditor);
  expect(owner.sessionId).toBe("beta");
});

test.each<[string, unknown, string | undefined]>([
  ["a group", { id: "review:beta", owner: state({ sessionId: "beta" }) }, "beta"],
  ["an entry", { id: "beta text /w/a", entry: {} }, undefined],
  ["no list", "t-1", undefined],
  ["nothing", undefined, undefined],
])("the session that a menu of the list is about: %s", (_, given, expected) => {
  expect(sessionOf(given)).toBe(expected);
});
