import { beforeEach, expect, test, vi } from "vitest";
import type { Daemon } from "../src/client";
import type { Desk } from "../src/desk";
import { Overview } from "../src/overview";
import type { SessionSummary } from "../src/protocol";
import { state } from "./states";
import { notifications } from "./vscode";

vi.mock("vscode-languageclient/node", () => ({})); // wants the real VS Code

beforeEach(() => void notifications.splice(0));

/** A session that waits with these questions. */
function session(sessionId: string, ...questions: string[]): SessionSummary {
  return {
    sessionId,
    title: `Title of ${sessionId}`,
    roots: ["/w"],
    modelId: "m",
    createdAt: 0,
    updatedAt: 0,
    status: questions.length > 0 ? "waiting" : "idle",
    questions: questions.map((title) => ({ toolCallId: `c-${title}`, title, questionId: null })),
    parentSessionId: null,
    agent: null,
    purpose: "chat",
    changes: 0,
  };
}

function overview(shown = "a") {
  let listed: SessionSummary[] = [];
  const desk = { state: state({ sessionId: shown }) } as Desk;
  const desks = { open: [desk], attempt: async <T>(work: () => Promise<T>) => work() };
  const followed: string[][] = [];
  const sessions = {
    follow: (list: SessionSummary[]) => void followed.push(list.map(({ sessionId }) => sessionId)),
  };
  const went: (string | undefined)[] = [];
  const request = (async () => ({ sessions: listed })) as unknown as Daemon["request"];
  const made = new Overview({ request }, sessions, desks, async (sessionId) => void went.push(sessionId));
  const list = async (...sessions: SessionSummary[]) => {
    listed = sessions;
    await made.refresh();
    return notifications.splice(0);
  };
  return { made, desks, went, list, followed };
}

test("a session that is not shown is announced, once for each question", async () => {
  const { list } = overview();
  expect(await list(session("a", "Run x"), session("b"))).toEqual([]);
  const [first, ...rest] = await list(session("a"), session("b", "Run make"));
  expect(first?.text).toBe("“Title of b” waits for you: Run make");
  expect(rest).toEqual([]);
  expect(await list(session("a"), session("b", "Run make"))).toEqual([]);
  const more = await list(session("a"), session("b", "Run make", "Run ls", "Edit x"));
  expect(more.map(({ text }) => text)).toEqual(["“Title of b” waits for you: Run ls (and 1 more)"]);
});

test("what was on the screen is not announced when another session is shown", async () => {
  const { list, desks } = overview("b");
  expect(await list(session("b", "Run make"))).toEqual([]);
  desks.open = [];
  expect(await list(session("b", "Run make"))).toEqual([]);
});

test("its button leads there, and to the list where several wait", async () => {
  const { list, went } = overview();
  const [one] = await list(session("b", "Run make"));
  one?.press("Show");
  const [two] = await list(session("c", "1"), session("d", "2"));
  expect(two?.text).toBe("2 sessions wait for you: “Title of c”, “Title of d”");
  two?.press("Show");
  const [left] = await list(session("e", "3"));
  left?.press(undefined);
  await vi.waitFor(() => expect(went).toEqual(["b", undefined]));
});

test("what waits elsewhere is answered there", async () => {
  const { made, list, went } = overview();
  await list(session("a", "Run x"));
  expect(await made.answer()).toBe(false);
  await list(session("a"), session("b", "Run make"));
  expect(await made.answer()).toBe(true);
  expect(went).toEqual(["b"]);
});

test("no text of a model's becomes a link of the notification", async () => {
  const { list } = overview();
  const [shown] = await list(session("b", "[Allow](command:amanu.acceptAll)\n\u202eline"));
  expect(shown?.text).toBe("“Title of b” waits for you: [Allow] (command:amanu.acceptAll) <U+202E>line");
});

test("a daemon that tells no questions announces none", async () => {
  const { list } = overview();
  const { questions: _, ...old } = session("b");
  expect(await list(old as SessionSummary)).toEqual([]);
});
