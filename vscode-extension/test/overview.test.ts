import { beforeEach, expect, test, vi } from "vitest";
import type { Daemon } from "../src/daemon/client";
import type { Chat, Notification } from "../src/chat/chat";
import { IGNORED } from "../src/labels";
import { Overview } from "../src/sessions/overview";
import type { Approval, Line, SessionSummary } from "../src/protocol";
import type { Session } from "../src/sessions/session";
import { question, state, summary } from "./states";
import { notifications } from "./vscode";

vi.mock("vscode-languageclient/node", () => ({})); // wants the real VS Code

beforeEach(() => void notifications.splice(0));

/** A session that waits with these questions. */
function session(sessionId: string, ...questions: string[]): SessionSummary {
  return summary({
    sessionId,
    title: `Title of ${sessionId}`,
    status: questions.length > 0 ? "waiting" : "idle",
    questions: questions.map((title) => ({ toolCallId: `c-${title}`, title, questionId: null })),
  });
}

/** What waits in whichever session, and what the daemon answers to a yes. */
function overview(shown = "a", approval: Partial<Approval> = {}, status = "ok") {
  let listed: SessionSummary[] = [];
  const chat = { state: state({ sessionId: shown }), visible: true } as Chat;
  const told: string[] = [];
  const openChats = {
    open: [chat],
    state: chat.state,
    attempt: async <T>(work: () => Promise<T>) => work(),
    tell: ({ text }: Notification) => void told.push(text),
  };
  const session = { state: state({ approvals: [question({ toolCallId: "c-Run make", ...approval })] }) };
  const sessions = { follow: async () => undefined, get: () => session as Session };
  const went: (string | undefined)[] = [];
  const answers: unknown[] = [];
  const request = async (method: string, params: unknown) => {
    if (method === "amanu/session/list") return { sessions: listed };
    answers.push(params);
    return { status, summary: "" };
  };
  const show = async (sessionId: string | undefined) => void went.push(sessionId);
  const made = new Overview({ request: request as Daemon["request"] }, sessions, openChats, show);
  const list = async (...sessions: SessionSummary[]) => {
    listed = sessions;
    await made.refresh();
    return notifications.splice(0);
  };
  return { made, openChats, chat, went, list, answers, told };
}

test("a session that is not shown is announced, once for each question", async () => {
  const { list } = overview();
  expect(await list(session("a", "Run x"), session("b"))).toEqual([]);
  const [first, ...rest] = await list(session("a"), session("b", "Run make"));
  expect(first?.text).toBe("“Title of b” is waiting for you: Run make");
  expect(rest).toEqual([]);
  expect(await list(session("a"), session("b", "Run make"))).toEqual([]);
  const more = await list(session("a"), session("b", "Run make", "Run ls", "Edit x"));
  expect(more.map(({ text }) => text)).toEqual(["“Title of b” is waiting for you: Run ls (and 1 more)"]);
});

test("what was on the screen is not announced when another session is shown", async () => {
  const { list, openChats } = overview("b");
  expect(await list(session("b", "Run make"))).toEqual([]);
  openChats.open = [];
  expect(await list(session("b", "Run make"))).toEqual([]);
});

test("one that a chat shows is announced while the chat is not on the screen", async () => {
  const { list, chat } = overview("b");
  chat.visible = false;
  expect((await list(session("b", "Run make"))).map(({ text }) => text)).toEqual([
    "“Title of b” is waiting for you: Run make",
  ]);
});

const WHERE: Line[] = ["The model says: build", "In: /w"].map((text) => ({ tone: "plain", text }));

test.each<[string, Partial<Approval>, boolean]>([
  ["a short command", {}, true],
  [
    "one whose part needs the yes",
    {
      parts: [{ text: "make", decision: "ask", rule: "", reason: "no rule" }],
      lines: [
        { tone: "warning", text: "? make" },
        { tone: "plain", text: "Needs approval: no rule allows it" },
      ],
    },
    true,
  ],
  ["a command with where it runs", { lines: WHERE }, true],
  ["a command whose line says where it would run", { detail: "make\nIn: /w" }, false],
  ["an edit", { proposalId: "p" }, false],
  ["a plan", { document: "/w/plan.md" }, false],
  ["what comes with a warning", { lines: [{ tone: "warning", text: "! Not sandboxed" }] }, false],
  ["what a yes would grant more", { grants: ["network"], likelyGrants: ["network"] }, false],
  ["a command that is cut", { detail: "x".repeat(201) }, false],
  ["a command of two lines", { detail: "make\nrm -r x", command: "make\nrm -r x" }, false],
  ["a command with something hidden", { detail: "make \u202ex" }, false],
  ["what is refused in part", { parts: [{ text: "rm", decision: "deny", rule: "", reason: "" }] }, false],
  ["nothing that could be read", { detail: "" }, false],
])("it is allowed beside the question only when that says all of it: %s", async (_, approval, offered) => {
  const { list } = overview("a", approval);
  const [shown] = await list(session("b", "Run make"));
  expect(shown?.buttons).toEqual(offered ? ["Allow", "Show"] : ["Show"]);
});

test("where a command runs is said", async () => {
  const { list } = overview("a", { lines: WHERE });
  const [shown] = await list(session("b", "Run make"));
  expect(shown?.text).toBe("“Title of b” is waiting for you: Run make · The model says: build · In: /w");
});

test("what the title does not say stands behind it", async () => {
  const { list } = overview("a", { title: "Call a tool", detail: "make" });
  const [shown] = await list(session("b", "Run make"));
  expect(shown?.text).toBe("“Title of b” is waiting for you: Call a tool: make");
});

test.each<[string, number, string, unknown[], string[], string[]]>([
  ["is for what was shown, once", 600, "ok", ["d1"], [], []],
  ["at once counts for nothing", 100, "ok", [], ["b"], [IGNORED.tooSoon]],
  ["to what has changed counts for nothing", 600, "stale", ["d1"], ["b"], [IGNORED.stale]],
])("a yes beside the question %s", async (_, after, status, digests, shown, words) => {
  vi.useFakeTimers({ toFake: ["Date"] });
  const { list, answers, went, told } = overview("a", {}, status);
  const [asked] = await list(session("b", "Run make"));
  vi.setSystemTime(Date.now() + after);
  asked?.press("Allow");
  await new Promise((done) => setTimeout(done));
  vi.useRealTimers();
  const yes = { sessionId: "b", toolCallId: "c-Run make", decision: "allow", scope: "once", grants: [] };
  expect(answers).toEqual(digests.map((digest) => ({ ...yes, digest })));
  expect([went, told]).toEqual([shown, words]);
});

test("its button leads there, and to the list where several wait", async () => {
  const { list, went } = overview();
  const [one] = await list(session("b", "Run make"));
  one?.press("Show");
  const [two] = await list(session("c", "1"), session("d", "2"));
  expect(two?.text).toBe("2 sessions are waiting for you: “Title of c”, “Title of d”");
  two?.press("Show");
  const [left] = await list(session("e", "3"));
  left?.press(undefined);
  await vi.waitFor(() => expect(went).toEqual(["b", undefined]));
});

test("what waits elsewhere is answered there", async () => {
  const { made, list } = overview();
  await list(session("a", "Run x"));
  expect(made.waiting).toBeUndefined();
  await list(session("a"), session("c", "Run tests"), session("b", "Run make"));
  expect(made.waiting).toBe("b");
});

test("no text of a model's becomes a link of the notification", async () => {
  const { list } = overview();
  const [shown] = await list(session("b", "[Allow](command:amanu.acceptAll)\n\u202eline"));
  expect(shown?.text).toBe("“Title of b” is waiting for you: [Allow] (command:amanu.acceptAll) <U+202E>line");
});

test("a daemon that tells no questions announces none", async () => {
  const { list } = overview();
  const { questions: _, ...old } = session("b");
  expect(await list(old as SessionSummary)).toEqual([]);
});
