import { expect, test, vi } from "vitest";
import type { Daemon } from "../src/daemon/client";
import { Chat } from "../src/chat/chat";
import { OpenChats } from "../src/chat/openChats";
import type { Event, Proposal, SessionState, SessionSummary } from "../src/protocol";
import { Sessions } from "../src/sessions/sessions";
import { file, hunk, proposal } from "./edits";
import { APPROVAL, state, summary } from "./states";

vi.mock("vscode-languageclient/node", () => ({})); // wants the real VS Code

const CHANGES = [proposal("p", "t", [file("/w/a.py", "x\n", [hunk("a", 1, "x\n", "y\n")])])];
const DECIDED = [proposal("p", "t", [file("/w/a.py", "x\n", [hunk("a", 1, "x\n", "y\n", "rejected")])])];

/** The sessions of a window, with a daemon that has these. */
function window(given: Record<string, Partial<SessionState>> = {}) {
  const asked: string[] = [];
  const acks: string[] = [];
  const daemon = {
    connection: { status: "ready" },
    settled: async () => undefined,
    request: async (method: string, { sessionId }: { sessionId: string }) => {
      if (method === "amanu/settings/list") return { settings: [{ key: "mode", value: "ask" }] };
      asked.push(`${method.replace("amanu/session/", "")} ${sessionId}`);
      if (given[sessionId] === undefined) throw new Error("There is no such session.");
      return { state: state({ sessionId, ...given[sessionId] }), epoch: 1, fromSeq: 1 };
    },
    notify: (_: string, { sessionId, seq }: { sessionId: string; seq: number }) =>
      acks.push(`${sessionId} ${seq}`),
  } as unknown as Daemon;
  const sessions = new Sessions(daemon);
  const log: string[] = [];
  sessions.onEvent(({ sessionId, event }) => log.push(`${sessionId} ${event.kind}`));
  sessions.onReset((sessionId) => log.push(`${sessionId} reset`));
  sessions.onLeft(({ sessionId }) => log.push(`${sessionId} left`));
  const say = (sessionId: string, seq: number, event: Event) =>
    sessions.receive({ sessionId, epoch: 1, seq, at: 0, event });
  const makeChat = () => new Chat(daemon, sessions, { get: () => undefined, set: () => undefined });
  return { sessions, asked, acks, log, say, makeChat };
}

function listed(sessionId: string, given: Partial<SessionSummary> = {}): SessionSummary {
  return summary({ sessionId, ...given });
}

const ended: Event = {
  kind: "turnEnded",
  turnId: "t",
  reason: "completed",
  message: "",
  canContinue: false,
  usage: null,
};
const changed = (proposals: Proposal[]): Event[] =>
  proposals.map((each) => ({ kind: "proposalChanged", proposal: each }));

test("what waits or has changes to review is followed though no chat shows it", async () => {
  const { sessions, asked, log } = window({ a: { proposals: CHANGES }, b: { approvals: [APPROVAL] } });
  const question = { toolCallId: "c1", title: "Run make", questionId: null };
  sessions.follow([
    listed("a", { changes: 1 }),
    listed("b", { status: "waiting", questions: [question] }),
    listed("c", { status: "running" }),
  ]);
  await vi.waitFor(() => expect(log).toEqual(["a reset", "b reset"]));
  expect(asked).toEqual(["attach a", "attach b"]);
  expect(sessions.states.flatMap(({ proposals }) => proposals)).toEqual(CHANGES);
});

test("it is left when nothing of it waits any more", async () => {
  const { sessions, asked, log, say } = window({ a: { proposals: CHANGES } });
  sessions.follow([listed("a", { changes: 1 })]);
  await vi.waitFor(() => expect(sessions.get("a")).toBeDefined());
  for (const event of changed(DECIDED)) say("a", 1, event);
  sessions.follow([listed("a")]);
  expect(log).toEqual(["a reset", "a proposalChanged", "a left"]);
  expect(asked).toEqual(["attach a", "detach a"]);
});

test("what a chat leaves is followed while it works", async () => {
  const turn = { turnId: "t", modelId: "m", steps: 0, routed: null };
  const { sessions, makeChat, asked, say } = window({ a: { turn }, b: {} });
  const chat = makeChat();
  await chat.open("a");
  await chat.open("b");
  expect(asked).toEqual(["attach a", "attach b"]);
  sessions.follow([listed("a", { status: "running" }), listed("b")]);
  say("a", 1, ended);
  sessions.follow([listed("a"), listed("b")]);
  expect(asked).toEqual(["attach a", "attach b", "detach a"]);
});

test("two chats of one session attach once, and the last one lets it go", async () => {
  const { makeChat, asked, say } = window({ a: {}, b: {} });
  const [one, other] = [makeChat(), makeChat()];
  await Promise.all([one.open("a"), other.open("a")]);
  const heard: string[] = [];
  one.onEvent(({ event }) => heard.push(`one ${event.kind}`));
  other.onEvent(({ event }) => heard.push(`other ${event.kind}`));
  say("a", 1, ended);
  await one.open("b");
  say("a", 2, ended);
  say("b", 1, ended);
  expect(heard).toEqual(["one turnEnded", "other turnEnded", "other turnEnded", "one turnEnded"]);
  expect(asked).toEqual(["attach a", "attach b"]);
  await other.fresh();
  expect(asked).toEqual(["attach a", "attach b", "detach a"]);
});

test("what nobody draws is acknowledged at once, what a chat draws is not", async () => {
  vi.useFakeTimers();
  const { sessions, makeChat, acks, say } = window({ a: { proposals: CHANGES }, b: {} });
  sessions.follow([listed("a", { changes: 1 })]);
  await makeChat().open("b");
  say("a", 1, ended);
  say("b", 1, ended);
  vi.runAllTimers();
  vi.useRealTimers();
  expect(acks).toEqual(["a 1"]);
});

test("a session that cannot be opened is not counted as shown", async () => {
  const { sessions, makeChat } = window();
  await expect(makeChat().open("gone")).rejects.toThrow("no such session");
  sessions.follow([listed("gone", { changes: 1 })]); // fails as well: nothing is thrown
  await vi.waitFor(() => expect(sessions.states).toEqual([]));
});

test("no more than twenty are followed", async () => {
  const ids = Array.from({ length: 30 }, (_, at) => `s${at}`);
  const { sessions } = window(Object.fromEntries(ids.map((id) => [id, { proposals: CHANGES }])));
  sessions.follow(ids.map((id) => listed(id, { changes: 1 })));
  await vi.waitFor(() => expect(sessions.states).toHaveLength(20));
});

test("the active chat is the one that was gone to last, and what is said of a session is said where it shows", async () => {
  const { makeChat } = window({ a: {}, b: {} });
  const [side, tab] = [makeChat(), makeChat()];
  const openChats = new OpenChats();
  openChats.add(side);
  openChats.add(tab);
  await side.open("a");
  await tab.open("b");
  const told: string[] = [];
  side.onNotification(({ text }) => told.push(`side ${text}`));
  tab.onNotification(({ text }) => told.push(`tab ${text}`));
  const resets = vi.fn();
  openChats.onReset(resets);
  openChats.tell({ level: "info", text: "1" });
  openChats.tell({ level: "info", text: "2" }, "b");
  openChats.activate(tab);
  openChats.tell({ level: "info", text: "3" });
  expect([openChats.state.sessionId, resets.mock.calls.length]).toEqual(["b", 1]);
  openChats.remove(tab);
  openChats.tell({ level: "info", text: "4" });
  expect([openChats.state.sessionId, resets.mock.calls.length]).toEqual(["a", 2]);
  expect(told).toEqual(["side 1", "tab 2", "tab 3", "side 4"]);
});
