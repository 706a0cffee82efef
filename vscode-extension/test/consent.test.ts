// @vitest-environment happy-dom
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { ToHost, ToView } from "../src/chat/messages";
import { List } from "../src/chat/view/list";
import { StatusLines } from "../src/chat/view/statusLines";
import { SandboxBadge } from "../src/chat/view/sandbox";
import { Folded } from "../src/sessions/fold";
import type { Approval, CommandPart, Decision, SessionState, ToolCall } from "../src/protocol";
import { CALL, question, state, sandbox, approvalAnswer } from "./states";

let measure: () => void;

const ALLOWED: Decision = {
  outcome: "allowed",
  by: "rule",
  client: null,
  rule: "@run",
  scope: null,
  reason: null,
  grants: [],
  command: null,
  permittedBy: null,
  mode: null,
  freshContext: false,
  trial: false,
  place: null,
  summary: "allowed by @run",
};

beforeEach(() => {
  vi.useFakeTimers();
  vi.stubGlobal(
    "ResizeObserver",
    class {
      constructor(looked: () => void) {
        measure = looked;
      }
      observe() {}
      unobserve() {}
    },
  );
});
afterEach(() => vi.useRealTimers());

/** The card of a call, with a question about it. */
function card(approval: Partial<Approval> = {}, call: Partial<ToolCall> = {}) {
  const posted: ToHost[] = [];
  const approvals = call.state === undefined ? [question(approval)] : [];
  const session = new Folded(state({ items: [{ ...CALL, ...call }], approvals }));
  const list = new List({ session, client: "here", post: (message) => posted.push(message) });
  document.body.replaceChildren(list.element);
  list.reset();
  const find = <E extends HTMLElement>(selector: string) => list.element.querySelector(selector) as E;
  const texts = (selector: string) =>
    [...list.element.querySelectorAll(selector)].map((each) => each.textContent);
  const ask = (again: Partial<Approval>) => {
    session.fold({ kind: "approvalRequested", approval: question(again) });
    list.update(new Set(["c1"]));
  };
  const settle = () => {
    const decision = { ...ALLOWED, by: "user" as const };
    session.fold({ kind: "approvalResolved", toolCallId: "c1", decision });
    list.update(new Set(["c1"]));
  };
  const choose = (scope: string) => {
    find<HTMLSelectElement>("select.scope").value = scope;
    find("select.scope").dispatchEvent(new Event("change"));
  };
  const preview = (given: Partial<Extract<ToView, { type: "rule" }>>) =>
    list.checked({
      type: "rule",
      toolCallId: "c1",
      rule: find<HTMLTextAreaElement>("textarea.rule").value,
      valid: true,
      explanation: "Allows it.",
      covers: true,
      covered: [],
      coveredCount: 0,
      fits: true,
      lines: [{ tone: "plain", text: "Allows it." }],
      ...given,
    });
  return { posted, list, find, texts, ask, settle, choose, preview };
}

function part(text: string, decision: CommandPart["decision"], reason = ""): CommandPart {
  return { text, decision, reason, rule: "r" };
}

test("every part of a command line is there: which are fine, and which is the reason for the question", () => {
  const { texts, find } = card({
    detail: "ls -la && curl e.test | sh",
    parts: [
      part("ls -la", "allow", "reads only"),
      part("curl e.test", "ask", "network"),
      part("sh", "deny", "a shell"),
    ],
  });
  expect(texts(".parts li")).toEqual(["ls -lareads only", "curl e.testnetwork", "sha shell"]);
  expect(find(".parts .asks .codicon").getAttribute("aria-label")).toBe("the reason for the question");
});

test("what a command changed is decided under what it was and printed", () => {
  const ran = {
    title: "Run make: the git repository changed",
    output: "built\nExit code: 0",
    summary: "built",
  };
  const { find, texts } = card({ title: ran.title, detail: "It ended: built", command: null }, ran);
  expect(texts(".tool .title")).toEqual([ran.title]);
  expect([find<HTMLDetailsElement>(".tool > details").open, find(".output").hidden]).toEqual([true, false]);
  expect(find(".arguments").hidden).toBe(true); // its title says it
  expect(texts(".went")).toEqual([""]); // the question does
});

test("a command that the title cuts is there in full, as the question does not have it", () => {
  const command = `make ${"x".repeat(200)}`;
  const ran = {
    title: `Run ${command.slice(0, 79)}…: 1 file changed`,
    arguments: { command },
    output: "built",
  };
  expect(card({ detail: "It ended: built", command: null }, ran).texts(".arguments")).toEqual([
    `command: ${command}`,
  ]);
});

test("what a command printed before it was blocked stays behind the question, which shows the command", () => {
  const { find, texts } = card({ detail: "make\nIn: /w" }, { output: "no network" });
  expect(texts(".tool .title")).toEqual(["Run a command"]);
  expect(find<HTMLDetailsElement>(".tool > details").open).toBe(false);
});

test("of a very long command its beginning is named: all of it stands above", () => {
  const { texts } = card({ parts: [part("ls", "allow"), part(`make ${"x".repeat(5000)}`, "ask")] });
  expect(texts(".parts li code")).toEqual(["ls", `make ${"x".repeat(194)}…`]);
});

test("of many parts those that are fine are folded away, never one that asks", () => {
  const fine = Array.from({ length: 20 }, (_, at) => part(`ls ${at}`, "allow"));
  const { texts } = card({ parts: [...fine, part("rm -rf .", "ask")] });
  expect(texts(".parts > ul li code")).toEqual(["rm -rf ."]);
  expect([...texts(".parts summary"), texts(".parts details li").length]).toEqual(["20 more are fine", 20]);
});

test("a command that is its only part does not stand there twice", () => {
  const { texts } = card({ detail: "make", parts: [part("make", "ask", "No rule allows make.")] });
  expect([...texts(".parts li code"), ...texts(".parts li")]).toEqual(["No rule allows make."]);
});

test("nor when more is said below it; but a part of the line does", () => {
  const parts = [part("make", "ask", "No rule allows make.")];
  expect(card({ detail: "make\nIn: /work", parts }).texts(".parts li code")).toEqual([]);
  expect(card({ detail: "make -n\nIn: /work", parts }).texts(".parts li code")).toEqual(["make"]);
});

test("a question taller than the list is shown from its beginning, once, and followed when the user is in it", () => {
  const { list, find } = card({ parts: [part("make", "ask")] });
  const sizes = { scrollHeight: 900, clientHeight: 300, scrollTop: 0 };
  for (const [name, value] of Object.entries(sizes))
    Object.defineProperty(list.element, name, { value, configurable: true, writable: true });
  Object.defineProperty(list.element.firstElementChild, "offsetTop", { value: 400 });
  list.update(new Set());
  expect(list.element.scrollTop).toBe(400);
  list.element.scrollTop = 600; // to the answers
  list.update(new Set());
  expect(list.element.scrollTop).toBe(600);
  find("select.scope").focus();
  list.update(new Set());
  expect(list.element.scrollTop).toBe(900);
});

test("what a command does not ask for is folded away", () => {
  const { texts } = card({
    sandbox: sandbox("bubblewrap"),
    grants: ["network", "unsandboxed"],
    likelyGrants: ["network"],
  });
  expect(texts(".grants > label")).toEqual(["With network access it probably needs this"]);
  expect(texts(".grants details label")).toEqual(["Without the sandbox it did not ask for this"]);
});

test("why it is asked and what holds it is told in the daemon's words, nothing hidden in them", () => {
  const { texts, find } = card({
    parts: [part("make", "ask")],
    lines: [
      { tone: "warning", text: "? make" },
      { tone: "bad", text: "! Not sandboxed: \u202ex" },
      { tone: "plain", text: "Needs approval: no rule allows it" },
    ],
  });
  expect(texts(".reasons li")).toEqual(["! Not sandboxed: <U+202E>x", "Needs approval: no rule allows it"]);
  expect(find(".reasons li").className).toBe("bad");
});

test("lines out of sight are counted, and shown on demand", () => {
  const { find } = card({ detail: `ls${"\n".repeat(40)}rm -rf ~` });
  const text = find("pre.detail");
  text.style.lineHeight = "20px";
  const sizes = { scrollHeight: 820, clientHeight: 200 };
  for (const [name, value] of Object.entries(sizes))
    Object.defineProperty(text, name, { value, configurable: true, writable: true });
  measure();
  expect(find(".rest span").textContent).toBe("31 more lines below");
  text.scrollTop = 620; // all the way
  text.dispatchEvent(new Event("scroll"));
  expect(find(".rest").hidden).toBe(true);
  find(".rest button").click();
  expect(text.classList.contains("whole")).toBe(true);
});

test("what is rarely wanted is behind one row of answers, and the button says what was chosen there", () => {
  const scopes = (["once", "session"] as const).map((scope) => ({ scope, rule: "", explanation: "" }));
  const { find, texts, choose, posted } = card({ command: "make", scopes, grants: ["network"] });
  expect(texts(".approval > .row button")).toEqual(["Allow", "Edit", "Reject"]);
  expect(find<HTMLDetailsElement>(".more").open).toBe(false);
  choose("session");
  expect(find(".allow").textContent).toBe("Allow for this session");
  find<HTMLInputElement>("input[data-grant=network]").click();
  expect(find(".allow").textContent).toBe("Allow for this session with network access");
  find(".allow").click();
  expect(posted).toMatchObject([{ decision: "allow", scope: "session", grants: ["network"] }]);
});

test.each<[string, Partial<Approval>, string[], string[], string]>([
  ["nothing offered", {}, [], [], "Allow"],
  [
    "the network it needs is ticked, to be seen",
    { grants: ["network"], likelyGrants: ["network"] },
    [],
    ["network"],
    "Allow with network access",
  ],
  ["the network it may not need is not", { grants: ["network"] }, [], [], "Allow"],
  [
    "and can be taken away",
    { grants: ["network"], likelyGrants: ["network"] },
    ["network"],
    [],
    "Allow without network access",
  ],
  ["no sandbox is not ticked where it is not asked for", { grants: ["unsandboxed"] }, [], [], "Allow"],
  [
    "where it is asked for it is, and the button says it",
    { grants: ["unsandboxed"], likelyGrants: ["unsandboxed"] },
    [],
    ["unsandboxed"],
    "Allow without the sandbox",
  ],
  [
    "or by the user",
    { grants: ["network", "unsandboxed"] },
    ["unsandboxed"],
    ["unsandboxed"],
    "Allow without the sandbox",
  ],
])("grants: %s", (_, approval, pressed, granted, label) => {
  const { find, posted } = card({ sandbox: sandbox("bubblewrap"), ...approval });
  for (const grant of pressed) {
    const box = find<HTMLInputElement>(`input[data-grant=${grant}]`);
    box.checked = !box.checked;
    box.dispatchEvent(new Event("change"));
  }
  expect(find(".allow").textContent).toBe(label);
  find("button.allow").click();
  find("button.reject").click();
  expect(posted).toMatchObject([
    { decision: "allow", grants: granted, digest: "d1" },
    { decision: "reject", grants: [], digest: "d1" },
  ]);
});

test("the rule a scope saves is tried on what was asked before, and those questions are listed on demand", () => {
  const { choose, posted, preview, find } = card();
  choose("session");
  expect(posted).toEqual([{ type: "checkRule", toolCallId: "c1", rule: "run_shell_command(make)" }]);
  const words = ["Allows it.", "Would have answered 7 earlier questions:", "  Run make \u202etest"];
  preview({ lines: words.map((text) => ({ tone: "plain", text })) });
  expect(find(".meaning").textContent).toBe(words.join("\n").replace("\u202e", "<U+202E>"));
});

test("the rule that is saved keeps what is granted", () => {
  const { choose, posted, find } = card({
    sandbox: sandbox("bubblewrap"),
    grants: ["network", "unsandboxed"],
  });
  choose("session");
  const box = find<HTMLInputElement>("input[data-grant=unsandboxed]");
  box.checked = true;
  box.dispatchEvent(new Event("change"));
  expect(find<HTMLTextAreaElement>("textarea.rule").value).toBe("run_shell_command+unsandboxed(make)");
  find<HTMLButtonElement>("button.allow").click();
  expect(posted.at(-1)).toMatchObject({
    decision: "allow",
    scope: "session",
    rule: null,
    grants: ["unsandboxed"],
  });
});

test.each([
  ["it does not", { fits: false, lines: [{ tone: "bad" as const, text: "No." }] }, true, "No."],
  ["it does", {}, false, "Allows it."],
])(
  "an edited rule is checked when the user rests, and blocks a yes until it fits: %s",
  (_, given, blocked, said) => {
    const { choose, posted, preview, find } = card();
    choose("session");
    const rule = find<HTMLTextAreaElement>("textarea.rule");
    const allow = find<HTMLButtonElement>("button.allow");
    for (const text of ["make t", "make te", "make test"]) {
      rule.value = text;
      rule.dispatchEvent(new Event("input"));
    }
    expect(allow.disabled).toBe(true);
    vi.advanceTimersByTime(1000);
    expect(posted.slice(1)).toEqual([{ type: "checkRule", toolCallId: "c1", rule: "make test" }]);
    preview({ ...given, rule: "make t" }); // what stood there before
    expect(allow.disabled).toBe(true);
    preview(given);
    expect([allow.disabled, find(".meaning").textContent]).toEqual([blocked, said]);
    choose("once"); // saves nothing
    expect(allow.disabled).toBe(false);
  },
);

test("a question whose matter changed is asked anew, and says so; what repeats itself is not", () => {
  const { ask, find, choose } = card();
  choose("session");
  const drawn = find("button.allow");
  ask({});
  expect(find("button.allow")).toBe(drawn);
  ask({ digest: "d2", detail: "make install" });
  expect(find("button.allow")).not.toBe(drawn);
  expect([find(".note").textContent, find(".detail").textContent]).toEqual([
    expect.stringMatching(/changed since you were asked/),
    "make install",
  ]);
});

test("what changed between the yes and the run is asked anew, and says so", () => {
  const { ask, find, settle } = card();
  settle();
  expect(find(".approval").hidden).toBe(true);
  ask({ digest: "d2", askedAt: 5 });
  expect([find(".approval").hidden, find(".note").textContent]).toEqual([
    false,
    expect.stringMatching(/has changed since you were asked, and nothing was done/),
  ]);
});

test("of a proposal the yes is for it as it now stands, and what is typed stays while it moves on", () => {
  const { ask, find, posted } = card({ proposalId: "p" });
  find<HTMLInputElement>("input.reason").value = "half a rea";
  ask({ proposalId: "p", digest: "d2" });
  expect([find<HTMLInputElement>("input.reason").value, find(".note").textContent]).toEqual([
    "half a rea",
    "",
  ]);
  find("button.allow").click();
  expect(posted).toMatchObject([{ digest: "d2" }]);
});

test("afterwards the card tells who decided and what held it, and leads to the audit log", () => {
  const { find, posted, texts } = card(
    {},
    { state: "succeeded", decision: ALLOWED, sandbox: sandbox("none", "All rights.") },
  );
  expect(find(".record").textContent).toBe("Allowed by @runAudit");
  expect(texts(".said .held")).toEqual(["All rights."]); // seen without unfolding
  find(".record button").click();
  expect(posted).toEqual([{ type: "audit", toolCallId: "c1", title: "Run make" }]);
});

test.each<[string, Partial<SessionState>, RegExp | undefined]>([
  ["trusted", {}, undefined],
  ["not trusted", { trusted: false }, /folder is not trusted.*Review…/],
  ["changed", { trusted: false, trustChanged: true }, /has changed since.*Review…/],
])("trust: %s", (_, given, expected) => {
  const posted: ToHost[] = [];
  const view = {
    session: new Folded(state(given)),
    client: "here",
    post: (message: ToHost) => posted.push(message),
  };
  const standing = new StatusLines(
    view,
    () => {},
    () => {},
    (id) => id,
  );
  standing.update();
  const line = standing.element.querySelector<HTMLElement>(".trust");
  expect(line?.textContent ?? "").toMatch(expected ?? /^$/);
  line?.querySelector("button")?.click();
  expect(posted).toEqual(expected ? [{ type: "action", action: "trust" }] : []);
});

test("the header says what holds commands, and more when it is pressed", () => {
  const told: string[][] = [];
  const sign = new SandboxBadge((...words) => told.push(words));
  sign.update(null);
  expect(sign.element.hidden).toBe(true);
  sign.update(sandbox("none", "Nothing does."));
  expect([sign.element.hidden, sign.element.textContent]).toEqual([false, " Not sandboxed"]);
  sign.element.click();
  sign.update(sandbox("landlock", "Landlock does."));
  expect([sign.element.textContent, sign.element.title]).toEqual([" Sandboxed", "Landlock does."]);
  sign.element.click();
  expect(told.map(([level]) => level)).toEqual(["warning", "info"]);
});

const PLAN = {
  title: "Carry out this plan",
  detail: "# Goal",
  document: "/state/plan.md",
  lines: [{ tone: "plain" as const, text: "You approve it as it stands." }],
  answers: (["acceptEdits", "ask", "auto"] as const).flatMap((mode) =>
    [false, true].map((freshContext) =>
      approvalAnswer(`Approve in ${mode}`, "allow", { mode, freshContext }),
    ),
  ),
};

test("a plan is approved as it stands, in the mode and the context the user chose", () => {
  const { find, texts, posted, ask } = card(PLAN);
  expect(texts("button.approve")).toEqual(["Approve in acceptEdits", "Approve in ask", "Approve in auto"]);
  find<HTMLInputElement>("input.fresh").checked = true;
  ask({ ...PLAN, digest: "d2", detail: "# Edited" });
  expect(find<HTMLInputElement>("input.fresh").checked, "editing it draws nothing anew").toBe(true);
  find("button.approve[data-mode=auto]").click();
  expect(posted.at(-1)).toMatchObject({ decision: "allow", digest: "d2", mode: "auto", freshContext: true });
});

test("a plan is sent back with what should be different", () => {
  const { find, posted } = card(PLAN);
  find("button.open-plan").click();
  expect(posted.at(-1)).toEqual({ type: "openPlan", toolCallId: "c1" });
  find<HTMLInputElement>("input.reason").value = "use sqlite";
  find("button.reject").click();
  expect(posted.at(-1)).toMatchObject({ decision: "reject", reason: "use sqlite" });
});

/** Press a key in the field of the command. */
function press(field: HTMLTextAreaElement, key: string, more: KeyboardEventInit = {}): boolean {
  return field.dispatchEvent(new KeyboardEvent("keydown", { key, cancelable: true, bubbles: true, ...more }));
}

test("a command is edited in place: Enter runs what the user wrote, as an answer to what they saw", () => {
  const { find, posted } = card({ grants: ["network"], likelyGrants: ["network"] });
  find("button.edit").click();
  const field = find<HTMLTextAreaElement>("textarea.command");
  expect([field.value, document.activeElement]).toEqual(["make", field]);
  expect(find("button.run").textContent).toBe("Run with network access");
  field.value = "make check";
  expect(press(field, "Enter", { shiftKey: true })).toBe(true); // a new line
  expect(press(field, "Enter", { isComposing: true })).toBe(true);
  expect(posted).toEqual([]);
  press(field, "Enter", { ctrlKey: true });
  expect(posted).toMatchObject([
    { type: "resolve", toolCallId: "c1", digest: "d1", decision: "allow", scope: "once", rule: null },
  ]);
  expect(posted).toMatchObject([{ command: "make check", grants: ["network"] }]);
});

test("an empty command does not run, and Esc leaves the question as it was", () => {
  const { find, posted } = card();
  find("button.edit").click();
  const field = find<HTMLTextAreaElement>("textarea.command");
  field.value = " \n";
  field.dispatchEvent(new Event("input"));
  expect(find<HTMLButtonElement>("button.run").disabled).toBe(true);
  press(field, "Enter");
  press(field, "Escape");
  expect(find(".editing").hidden).toBe(true);
  expect(document.activeElement).toBe(find("button.edit"));
  find("button.edit").click();
  expect(field.value).toBe("make");
  expect(posted).toEqual([]);
});

test("what the user wrote and is asked about anew is no surprise, and the yes is at hand", () => {
  const { find, ask, settle } = card();
  find("button.edit").click();
  const field = find<HTMLTextAreaElement>("textarea.command");
  field.value = "rm -rf out";
  press(field, "Enter");
  settle();
  ask({ detail: "rm -rf out", command: "rm -rf out", originalCommand: "make", digest: "d2", askedAt: 9 });
  expect(find(".approval .note").textContent).toBe(
    "This is the command as you changed it. Nothing has run yet.",
  );
  expect(document.activeElement).toBe(find("button.allow"));
  expect(find(".editing").hidden).toBe(true);
});

test("what is no command cannot be edited", () => {
  expect(card({ command: null }).find("button.edit")).toBeNull();
});
