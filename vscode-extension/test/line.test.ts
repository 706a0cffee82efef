import { beforeEach, expect, test, vi } from "vitest";
import { Daemon } from "../src/daemon/client";
import { Chat } from "../src/chat/chat";
import { PROTOCOL_VERSION, type SessionCreateParams, type SessionState } from "../src/protocol";
import { Sessions } from "../src/sessions/sessions";
import { state } from "./states";

/** What the language clients did, in order. */
let done: string[] = [];
/** How the daemon answers. */
let answers: Record<string, (params: { sessionId: string }) => unknown> = {};
/** What the window showed, one after the other. */
let shown: (string | undefined)[] = [];
let slow: Promise<void> = Promise.resolve();
/** What the daemon says of itself. */
let experimental: unknown;

vi.mock("vscode-languageclient/node", () => ({
  CloseAction: {},
  ErrorAction: {},
  ResponseError: class extends Error {},
  LanguageClient: class {
    initializeResult = { capabilities: { experimental } };
    registerFeature() {}
    onNotification() {}
    onRequest() {}
    onDidChangeState() {}
    async start() {
      done.push("start");
      await slow;
    }
    async stop() {
      done.push("stop");
      await slow;
    }
    async sendNotification(method: string, params: unknown) {
      done.push(`${method.replace("amanu/", "")} ${JSON.stringify(params)}`);
    }
    async sendRequest(method: string, params: { sessionId: string }) {
      const name = method.replace("amanu/", "");
      done.push(`${name} ${params.sessionId}`);
      return answers[name]?.(params) ?? {};
    }
  },
}));

const log = { info: () => undefined, warn: () => undefined } as never;
const program = { command: "amanu", options: { env: {} } };

beforeEach(() => {
  done = [];
  shown = [];
  slow = Promise.resolve();
  experimental = { amanu: { protocol: PROTOCOL_VERSION } };
  const result = (given: Partial<SessionState>) => ({ state: state(given), epoch: 1, fromSeq: 1 });
  answers = {
    "session/attach": ({ sessionId }) => result({ sessionId }),
    "session/create": () => result({ sessionId: "new" }),
  };
});

function line(resolve: () => unknown = () => program) {
  return new Daemon(resolve as never, log, {}, {} as never);
}

function makeChat(daemon: Daemon, last?: string): Chat {
  const made = new Chat(daemon, new Sessions(daemon), {
    get: () => last,
    set: (sessionId) => shown.push(sessionId),
  });
  daemon.onConnection(({ status }) => {
    if (status === "ready") void made.connected();
  });
  return made;
}

test.each([
  ["an earlier session", "old", ["session/attach old", "prompt/send old"]],
  ["no session yet", undefined, ["settings/list undefined", "session/create", "prompt/send new"]],
])("a prompt before the line stands goes into %s", async (_, last, expected) => {
  const daemon = line();
  const said = makeChat(daemon, last).prompt("hello", [], "send");
  void daemon.start();
  await said;
  expect(done.filter((each) => each !== "start").map((each) => each.replace(/create .*/, "create"))).toEqual(
    expected,
  );
});

test("a session is remembered before it is asked for: a reload meanwhile comes back to it", async () => {
  let remembered: typeof shown = [];
  answers["session/create"] = ({ sessionId }) => {
    remembered = [...shown];
    return { state: state({ sessionId }), epoch: 1, fromSeq: 1 };
  };
  const daemon = line();
  await daemon.start();
  const made = makeChat(daemon);
  await made.prompt("hello", [], "send");
  expect(remembered).toEqual([made.state.sessionId]);
});

test("a new session begins in the configured mode, not in that of the last one", async () => {
  const created: unknown[] = [];
  answers["session/create"] = (params) => {
    const { sessionId, mode } = params as SessionCreateParams;
    created.push(mode);
    return { state: state({ sessionId, mode: "draft" }), epoch: 1, fromSeq: 1 };
  };
  const daemon = line();
  const made = makeChat(daemon);
  await daemon.start();
  answers["settings/list"] = () => ({ path: "", settings: [{ key: "mode", value: "plan" }] });
  await made.connected();
  await vi.waitFor(() => expect(made.state.mode).toBe("plan"));
  await made.prompt("hello", [], "send");
  expect(made.state.mode).toBe("draft");
  await made.fresh();
  await vi.waitFor(() => expect(made.state.mode).toBe("plan"));
  await made.setMode("auto");
  await made.connected();
  await vi.waitFor(() => expect(done.at(-1)).toContain("settings/list"));
  expect(made.state.mode).toBe("auto");
  await made.prompt("hello", [], "send");
  await made.fresh();
  await made.prompt("hello", [], "send");
  expect(created).toEqual([null, "auto", null]);
});

test("settings that make no sense are a sentence, and a prompt is refused with it", async () => {
  const daemon = line(() => {
    throw new Error("path is null");
  });
  const said = makeChat(daemon).prompt("hello", [], "send");
  void daemon.start();
  await expect(said).rejects.toThrow("settings cannot be used: path is null");
});

test("a daemon that never answers is given up", async () => {
  vi.useFakeTimers();
  slow = new Promise(() => undefined);
  const daemon = line();
  void daemon.start();
  for (let attempt = 0; attempt < 6; attempt++) await vi.advanceTimersByTimeAsync(60_000);
  vi.useRealTimers();
  expect(daemon.connection.status).toBe("lost");
});

test.each([
  ["none of ours", undefined],
  ["an older one", { amanu: { protocol: PROTOCOL_VERSION - 1 } }],
])("a daemon of another version, %s, is named and not asked again", async (_, answered) => {
  experimental = answered;
  const daemon = line();
  const said = makeChat(daemon).prompt("hello", [], "send");
  await daemon.start();
  await expect(said).rejects.toThrow(/amanu does not speak version \d .*Update Amanu and this extension/);
  expect(daemon.connection.status).toBe("lost");
  expect(done).toEqual(["start", "stop"]);
});

test("two wishes to reconnect are one", async () => {
  const daemon = line();
  await daemon.start();
  let stopped = () => undefined as void;
  slow = new Promise((resolve) => (stopped = resolve));
  const both = [daemon.restart(), daemon.restart()];
  await Promise.resolve();
  stopped();
  await Promise.all(both);
  expect(done).toEqual(["start", "stop", "start"]);
});

test("what a line that is given up never answers is asked of the next one", async () => {
  const daemon = line();
  await daemon.start();
  answers["session/attach"] = () => new Promise(() => undefined);
  const asked = daemon.request("amanu/session/attach", { sessionId: "s" });
  await Promise.resolve();
  answers["session/attach"] = () => ({ epoch: 2 });
  await daemon.restart();
  expect(await asked).toEqual({ epoch: 2 });
  expect(done.filter((each) => each.startsWith("session"))).toEqual(["session/attach s", "session/attach s"]);
});

test.each([
  ["started", []],
  ["queued", ["The conversation is compacted at the next step of the running turn."]],
])("a compaction that is %s", async (status, told) => {
  answers["session/compact"] = () => ({ status });
  const daemon = line();
  const made = makeChat(daemon, "old");
  await daemon.start();
  await made.connected();
  const heard: string[] = [];
  made.onNotification(({ text }) => heard.push(text));
  await made.compact();
  expect(done.at(-1)).toBe("session/compact old");
  expect(heard).toEqual(told);
});

test.each([
  ["a session", "old", '{"sessionId":"old"}'],
  ["no session yet, of its model", undefined, '{"modelId":"a:b"}'],
])("the daemon is told that the user types, once a minute: of %s", async (_, last, expected) => {
  vi.useFakeTimers({ toFake: ["Date"] });
  const daemon = line();
  const chat = makeChat(daemon, last);
  await daemon.start();
  await vi.waitFor(() => expect(chat.state.sessionId).toBe(last ?? ""));
  if (last === undefined) await chat.setModel("a:b");
  done = [];
  for (const seconds of [0, 30, 31]) {
    vi.setSystemTime(Date.now() + seconds * 1000);
    chat.beginPrompt();
  }
  await vi.waitFor(() => expect(done).toEqual([`prompt/begin ${expected}`, `prompt/begin ${expected}`]));
  vi.useRealTimers();
});
