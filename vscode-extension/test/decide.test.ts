import { beforeEach, expect, test, vi } from "vitest";
import { Approvals, meaning } from "../src/sessions/approvals";
import { audit } from "../src/sessions/audit";
import { refusal } from "../src/chat/incoming";
import type { ToHost } from "../src/chat/messages";
import type { Daemon } from "../src/daemon/client";
import type { Chat } from "../src/chat/chat";
import type { OpenChats } from "../src/chat/openChats";
import type { Pages } from "../src/editor/pages";
import type { Approval, Event, SessionState, TrustGetResult } from "../src/protocol";
import { Trust, enabled } from "../src/daemon/trust";
import { file, proposal } from "./edits";
import { APPROVAL, question, state } from "./states";
import { EventEmitter, picks, workspace } from "./vscode";

vi.mock("vscode-languageclient/node", () => ({})); // wants the real VS Code

beforeEach(() => {
  picks.splice(0);
  workspace.isTrusted = true;
});

const YES: Extract<ToHost, { type: "resolve" }> = {
  type: "resolve",
  toolCallId: "c1",
  decision: "allow",
  scope: "once",
  rule: null,
  reason: null,
  digest: "d1",
  grants: [],
};

test.each<[string, unknown, string | undefined]>([
  ["a yes to what is asked", YES, undefined],
  ["to another digest", { ...YES, digest: "d0" }, "another question"],
  ["to the empty digest", { ...YES, digest: "" }, "another question"],
  ["without a digest", { ...YES, digest: undefined }, "does not say to what"],
  ["with a digest that is none", { ...YES, digest: ["d1"] }, "does not say to what"],
  ["with a grant nobody offered", { ...YES, grants: ["unsandboxed"] }, "grant"],
  ["with grants that are none", { ...YES, grants: "network" }, "grant"],
  ["with an offered grant", { ...YES, grants: ["network"] }, undefined],
  ["for a scope nobody offered", { ...YES, scope: "user" }, "scope"],
  ["for an offered scope", { ...YES, scope: "session" }, undefined],
  ["a no to another digest", { ...YES, decision: "reject", digest: "d0" }, "another question"],
  ["a no", { ...YES, decision: "reject", scope: "user" }, undefined],
  ["to what was settled elsewhere", { ...YES, toolCallId: "c9" }, undefined],
  ["a file of the workspace", { type: "openFile", path: "src/a.py", line: null }, undefined],
  ["by its whole path", { type: "openFile", path: "/w/src/a.py", line: 3 }, undefined],
  ["a file outside", { type: "openFile", path: "/etc/passwd", line: null }, "outside"],
  ["by a way out", { type: "openFile", path: "../etc/passwd", line: null }, "outside"],
  ["whose folder only begins alike", { type: "openFile", path: "/wide/x", line: null }, "outside"],
  ["a picture of the workspace", { type: "workspacePicture", path: "docs/a.PNG" }, undefined],
  ["a picture outside", { type: "workspacePicture", path: "../a.png" }, "picture outside"],
  ["a picture by a file that is none", { type: "workspacePicture", path: ".env" }, "picture outside"],
  ["a picture", { type: "picture", blobId: "b", mediaType: "image/png" }, undefined],
  ["a picture that is a page", { type: "picture", blobId: "b", mediaType: "text/html" }, "picture"],
  [
    "a picture that may hold a script",
    { type: "picture", blobId: "b", mediaType: "image/svg+xml" },
    "picture",
  ],
])("what the view says is checked: %s", (_, message, expected) => {
  const approvals: Approval[] = [{ ...APPROVAL, grants: ["network"] }];
  expect(refusal(message as ToHost, { approvals }, ["/w"])?.why ?? "").toMatch(expected ?? /^$/);
});

/** The user at the native question. */
function asked(approval: Partial<Approval>, more: Partial<SessionState> = {}) {
  const resolved: Record<string, unknown>[] = [];
  const events = new EventEmitter<{ event: Event }>();
  const chat = {
    state: state({ approvals: [question(approval)], ...more }),
    onEvent: events.event,
    attempt: (work: () => unknown) => work(),
    resolve: async (answer: Record<string, unknown>) => resolved.push(answer),
  };
  const pages: string[] = [];
  const approvals = new Approvals(
    { active: chat as unknown as Chat },
    {} as Daemon,
    { show: async (_: string, text: string) => pages.push(text) } as unknown as Pages,
    async () => undefined,
  );
  void approvals.answer();
  const pick = () => picks.findLast(({ shown }) => shown);
  return { resolved, pages, pick, fire: (event: Event) => events.fire({ event }) };
}

test("the native question shows the parts, the sandbox and the rule, and its rows cannot be mistaken for icons", () => {
  const { pick, resolved } = asked({
    title: "Run $(trash)",
    parts: [
      { text: "ls", decision: "allow", rule: "", reason: "reads only" },
      { text: "rm \u202ex", decision: "ask", rule: "", reason: "no rule" },
    ],
    lines: [
      { tone: "good", text: "✓ ls" },
      { tone: "warning", text: "? rm" },
      { tone: "bad", text: "! Not sandboxed: $(trash)" },
      { tone: "plain", text: "Needs approval: mode ask" },
    ],
  });
  expect(pick()?.title).toBe("Run \\$(trash)");
  const rows = pick()?.items.map(({ label, description }) => `${label} | ${description ?? ""}`);
  expect(rows?.slice(0, 7)).toEqual([
    "what is asked | ",
    "$(pass) ls | reads only",
    "$(question) rm <U+202E>x | no rule",
    "$(error) ! Not sandboxed: \\$(trash) | ",
    "$(info) Needs approval: mode ask | ",
    "your answer | ",
    "$(check) Allow once | ",
  ]);
  expect(pick()?.activeItems.map(({ label }) => label)).toEqual(["$(check) Allow once"]);
  pick()?.press("! Not sandboxed: \\$(trash)"); // there to be read
  expect([pick()?.shown, resolved]).toEqual([true, []]);
});

test("of several files of a step all are accepted, each as it was asked", async () => {
  const approvals = ["p", "q"].map((each) => ({
    ...APPROVAL,
    toolCallId: `c-${each}`,
    proposalId: each,
    digest: each,
  }));
  const proposals = ["p", "q"].map((each) => proposal(each, "t", [file(`/w/${each}`, "", [])]));
  const { pick, resolved } = asked({}, { approvals, proposals });
  expect(pick()?.items).toHaveLength(3);
  pick()?.press("Accept all of this step (2 files)");
  await vi.waitFor(() => expect(resolved).toHaveLength(2));
  expect(resolved.map(({ toolCallId, digest, decision }) => [toolCallId, digest, decision])).toEqual([
    ["c-p", "p", "allow"],
    ["c-q", "q", "allow"],
  ]);
});

test("the answers are the daemon's, the rarely wanted last, and each is sent as it is", () => {
  const grants = ["network", "unsandboxed"] as const;
  const { pick, resolved } = asked({ grants: [...grants], likelyGrants: ["network"] });
  const labels = pick()?.items.map(({ label }) => label) ?? [];
  expect(labels.slice(labels.indexOf("your answer") + 1)).toEqual([
    "$(check) Allow once with network access",
    "$(check) Allow once without network access",
    "$(check) Allow once without the sandbox",
    "$(check) Allow for this session with network access",
    "$(edit) Edit the command…",
    "$(x) Reject",
    "$(x) Reject with a reason…",
    "$(eye) Show all of it",
    "more options",
    "$(check) Allow for this session without the sandbox",
  ]);
  pick()?.press("Allow for this session without the sandbox");
  expect(resolved).toEqual([
    {
      toolCallId: "c1",
      digest: "d1",
      decision: "allow",
      scope: "session",
      rule: "run_shell_command+unsandboxed(make)",
      grants: ["unsandboxed"],
      mode: null,
      freshContext: false,
    },
  ]);
});

test("a question that changes under the user is asked anew: no yes to what is not shown", () => {
  const { pick, resolved, fire } = asked({});
  const old = pick();
  fire({ kind: "approvalRequested", approval: { ...APPROVAL, digest: "d2", detail: "make\ninstall" } });
  expect([old?.shown, pick()?.placeholder]).toEqual([false, "It has changed. make install"]);
  pick()?.press("Allow once");
  expect(resolved).toMatchObject([{ digest: "d2" }]);
});

test("all of a long command is a press away", () => {
  const { pick, pages } = asked({ detail: `ls${"\n".repeat(50)}rm\u0007` });
  expect(pick()?.placeholder).toBe("ls rm<U+0007>"); // padding hides nothing
  pick()?.press("Show all of it");
  expect(pages).toEqual([`ls${"\n".repeat(50)}rm<U+0007>\n`]);
});

test("a rule in words", () => {
  const lines = ["It.", "Would have answered 1 earlier question:", "  \u202ex"];
  const preview = { valid: true, explanation: "", covers: true, covered: [], coveredCount: 1, fits: true };
  expect(meaning({ ...preview, lines: lines.map((text) => ({ tone: "plain", text })) })).toBe(
    "It. Would have answered 1 earlier question: <U+202E>x",
  );
});

test("the audit page says what the daemon does, nothing hidden in it", () => {
  const lines = ["3  1970-01-01 00:00:00  decided  Allowed by you\u001b[2J", "✗ Broken at entry 2."];
  const found = { entries: [], intact: false, message: "" };
  expect(audit("Run make", { ...found, lines: lines.map((text) => ({ tone: "plain", text })) })).toBe(
    "Run make\n\n3  1970-01-01 00:00:00  decided  Allowed by you<U+001B>[2J\n✗ Broken at entry 2.\n",
  );
});

const CHANGED: TrustGetResult = {
  state: "changed",
  digest: "t1",
  enables: [
    {
      path: "AGENTS.md",
      kind: "memory",
      state: "changed",
      diff: "-old\n+new\u202e\n",
      summary: "instructions",
    },
    { path: "$(trash).toml", kind: "rules", state: "same", diff: "", summary: "rules" },
    { path: "gone.md", kind: "command", state: "gone", diff: "-was\n", summary: "a command" },
  ],
  lines: [{ tone: "warning", text: "It has changed.\u202e" }],
};

test("the page of what a folder enables shows what changed", () => {
  expect(enabled("/w", CHANGED)).toBe(
    [
      "/w",
      "",
      "It has changed.<U+202E>",
      "",
      "=== AGENTS.md",
      "-old",
      "+new<U+202E>",
      "",
      "=== gone.md",
      "-was",
      "",
    ].join("\n"),
  );
});

test.each<[string, Partial<TrustGetResult>, boolean, string, unknown[]]>([
  ["a yes names what was shown", {}, true, "Trust", [{ root: "/w", trusted: true, digest: "t1" }]],
  ["a no needs no look", {}, true, "Do not trust", [{ root: "/w", trusted: false, digest: null }]],
  [
    "what is trusted can only be taken back",
    { state: "trusted" },
    true,
    "Do not trust",
    [{ root: "/w", trusted: false, digest: null }],
  ],
  ["what is trusted stays so by Enter", { state: "trusted" }, true, "Leave it trusted", []],
  ["VS Code's own answer goes first", {}, false, "Manage VS Code's workspace trust…", []],
])("trust: %s", async (_, given, trusted, row, expected) => {
  workspace.isTrusted = trusted;
  const sent: unknown[] = [];
  const request = async (method: string, params: unknown) => {
    if (method === "amanu/trust/get") return { ...CHANGED, ...given };
    return sent.push(params);
  };
  const openChats = { tell: () => undefined } as unknown as OpenChats;
  const pages = { show: async () => undefined } as unknown as Pages;
  const done = new Trust(openChats, { request } as unknown as Daemon, pages).review();
  await expect.poll(() => picks.length).toBe(1);
  const labels = picks[0]?.items.map(({ label }) => label) ?? [];
  expect(labels).toContain("$(file) \\$(trash).toml");
  if (given.state === "trusted") expect(labels[0]).toBe("$(check) Leave it trusted");
  expect(labels.includes("$(shield) Trust")).toBe(trusted && given.state !== "trusted");
  picks[0]?.press(row);
  await done;
  expect(sent).toEqual(expected);
});
