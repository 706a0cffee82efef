// @vitest-environment happy-dom
import { beforeEach, expect, test, vi } from "vitest";
import type { OpenChats } from "../src/chat/openChats";
import type { ToServersHost } from "../src/mcp/messages";
import { headline, needsUser, Servers } from "../src/mcp/servers";
import { ServersView } from "../src/mcp/view/list";
import type { McpListResult, McpServer } from "../src/protocol";
import { state } from "./states";
import { EventEmitter } from "./vscode";

const GIT: McpServer = {
  name: "git",
  state: "unapproved",
  reason: "",
  source: ".mcp.json of this workspace",
  target: "uvx mcp-server-git --repository .",
  access: "It reads the workspace, without network.",
  digest: "d1",
  tokens: 0,
  tools: [],
  changedTools: [],
  toolsDigest: "",
  lines: [{ tone: "warning", text: "git: needs your approval · .mcp.json of this workspace" }],
};
const READY: McpServer = {
  ...GIT,
  state: "ready",
  tools: [
    {
      name: "log",
      fullName: "mcp__git__log",
      title: "Log",
      description: "Shows <b>commits</b>.",
      readOnly: true,
      destructive: false,
      openWorld: false,
    },
  ],
  lines: [{ tone: "good", text: "git: ready · 1 tool, 120 tokens · .mcp.json of this workspace" }],
};
const CHANGED: McpServer = {
  ...READY,
  changedTools: [{ name: "push", diff: "--- approved\n+++ now\n@@\n-Pushes.\n+Pushes, and tells nobody.\n" }],
  toolsDigest: "t1",
};

function view(...servers: McpServer[]) {
  const posted: ToServersHost[] = [];
  const page = new ServersView((message) => posted.push(message));
  document.body.replaceChildren(page.element);
  const draw = (...listed: McpServer[]) =>
    page.receive({ type: "servers", servers: listed, deferred: false, nothing: "" });
  draw(...servers);
  const buttons = () => [...page.element.querySelectorAll<HTMLButtonElement>(".row button")];
  const press = (label: string) =>
    buttons()
      .find((each) => each.textContent === label)
      ?.click();
  const text = (selector: string) => page.element.querySelector(selector)?.textContent;
  return { page, posted, draw, buttons, press, text };
}

test.each<[Partial<McpServer>, string[]]>([
  [{}, ["Approve…", "Turn off", "Logs"]],
  [{ state: "off" }, ["Turn on…", "Logs"]],
  [{ state: "configured" }, ["Start now", "Turn off", "Logs"]],
  [{ state: "starting" }, ["Restart", "Turn off", "Logs"]],
  [{ state: "ready" }, ["Restart", "Turn off", "Logs"]],
  [{ state: "failed" }, ["Restart", "Turn off", "Logs"]],
  [{ state: "needsSignIn" }, ["Sign in", "Restart", "Turn off", "Logs"]],
  [{ ...CHANGED }, ["Approve changed tools…", "Restart", "Turn off", "Logs"]],
])("what can be decided of a server: %#", (given, expected) => {
  expect(
    view({ ...GIT, ...given })
      .buttons()
      .map((each) => each.textContent),
  ).toEqual(expected);
});

test("a server stands with all that a yes is about, and the yes is for what was shown", () => {
  const { posted, buttons, press, text } = view(GIT);
  expect([text("h2"), text(".headline"), text("pre"), text("dl")]).toEqual([
    "git",
    "needs your approval",
    "uvx mcp-server-git --repository .",
    "Commanduvx mcp-server-git --repository .AccessIt reads the workspace, without network.Configured in.mcp.json of this workspace",
  ]);
  press("Approve…");
  expect(posted).toEqual([{ type: "approve", name: "git", digest: "d1" }]);
  expect(buttons().every(({ disabled }) => disabled)).toBe(true); // until it is answered
});

test("changed tools stand with their diff, and nothing a server says is markup", () => {
  const { posted, press, text, page } = view(CHANGED);
  expect(
    [...page.element.querySelectorAll(".diff span")].map((each) => `${each.className}|${each.textContent}`),
  ).toEqual([
    "more|--- approved\n",
    "more|+++ now\n",
    "more|@@\n",
    "removed|-Pushes.\n",
    "added|+Pushes, and tells nobody.\n",
  ]);
  expect([text(".tools dd"), page.element.querySelector("b")]).toEqual(["Shows <b>commits</b>.", null]);
  press("Approve changed tools…");
  expect(posted).toEqual([{ type: "approveTools", name: "git", digest: "t1" }]);
});

test("drawn anew, what was unfolded and what has the focus stay; what came of a wish is told where it was made", () => {
  const { page, draw, buttons, text } = view(READY);
  const tools = page.element.querySelector<HTMLDetailsElement>(".tools");
  if (tools) tools.open = true;
  buttons()[0]?.focus();
  draw({ ...READY, tokens: 5 }, { ...GIT, name: "other" });
  expect([tools?.open, document.activeElement?.textContent]).toEqual([true, "Restart"]);
  page.receive({ type: "told", name: "git", level: "error", text: "It did not start." });
  expect([text(".note"), buttons()[0]?.disabled]).toEqual(["It did not start.", false]);
  draw({ ...GIT, name: "other" });
  expect([...page.element.querySelectorAll("h2")].map((each) => each.textContent)).toEqual(["other"]);
});

test("none is configured: the daemon says what to do", () => {
  const { page, text } = view();
  page.receive({ type: "servers", servers: [], deferred: false, nothing: "None. `amanu mcp add` adds one." });
  expect(text("main > p")).toBe("None. `amanu mcp add` adds one.");
});

test.each<[Partial<McpServer>, boolean]>([
  [GIT, true],
  [READY, false],
  [CHANGED, true],
  [{ ...CHANGED, state: "off" }, false],
  [{ ...GIT, state: "configured" }, false],
  [{ ...GIT, state: "failed" }, true],
  [{ ...GIT, state: "needsSignIn" }, true],
])("whether a server needs the user: %#", (given, expected) => {
  expect(needsUser({ ...GIT, ...given })).toBe(expected);
  expect(headline({ ...GIT, lines: [] })).toBe("git");
});

beforeEach(() => vi.useRealTimers());

/** The servers of a session, with a daemon that the test answers for. */
function listed(sessionId: string) {
  const resets = new EventEmitter<void>();
  const asked: string[] = [];
  const view = { state: { ...state(), sessionId }, onReset: resets.event };
  const made = {
    answer: async (): Promise<McpListResult> => ({ servers: [GIT], deferred: false, summary: "" }),
  };
  const daemon = {
    request: (_: string, params: { sessionId: string }) => {
      asked.push(params.sessionId);
      return made.answer();
    },
  };
  const servers = new Servers(daemon as never, view as unknown as OpenChats);
  return { servers, view, asked, resets, made };
}

test("many changes become one question, and a window without a session asks none", async () => {
  const { servers, view, asked, resets } = listed("s1");
  const changed = vi.fn();
  servers.onChanged(changed);
  for (let times = 0; times < 5; times++) servers.soon();
  await vi.waitFor(() => expect(changed).toHaveBeenCalledTimes(1));
  expect([asked, servers.list.servers]).toEqual([["s1"], [GIT]]);
  view.state = { ...view.state, sessionId: "" };
  resets.fire();
  await vi.waitFor(() => expect(changed).toHaveBeenCalledTimes(2));
  expect([asked.length, servers.list.servers]).toEqual([1, []]);
});

test("a daemon that knows no servers is still a daemon", async () => {
  const { servers, made } = listed("s1");
  made.answer = () => Promise.reject(new Error("unknown method"));
  servers.soon();
  await new Promise((done) => setTimeout(done, 150));
  expect(servers.list.servers).toEqual([]);
});
