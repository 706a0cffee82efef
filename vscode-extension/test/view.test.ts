// @vitest-environment happy-dom
import { beforeEach, expect, test, vi } from "vitest";
import type { ToHost } from "../src/chat/messages";
import { subject } from "../src/chat/view/cards";
import { LIVE_LINES } from "../src/chat/view/liveEdit";
import { decided } from "../src/chat/view/hunks";
import { List, SHOWN } from "../src/chat/view/list";
import { Markdown } from "../src/chat/view/markdown";
import { Folded } from "../src/sessions/fold";
import type { Decision, Item, SessionState, ToolCall } from "../src/protocol";
import { decision } from "../src/sessions/words";
import { APPROVAL, CALL, state } from "./states";

function draw(text: string): string {
  const markdown = new Markdown();
  markdown.update(text);
  return markdown.element.innerHTML;
}

const LONG = [
  "# Title",
  "",
  "Some *words* and `code`.",
  "",
  "1. one",
  "",
  "2. two",
  "   more",
  "",
  "```python",
  "x = 1",
  "",
  "y = '<b>'",
  "```",
  "",
  "> quoted",
  "",
  "| a | b |",
  "|---|---|",
  "| 1 | 2 |",
  "",
  "- last",
  "",
  "end",
].join("\n");

test.each([1, 2, 3, 7, 50])("growing by %i characters ends as drawing at once", (size) => {
  const growing = new Markdown();
  for (let end = size; end < LONG.length + size; end += size) growing.update(LONG.slice(0, end));
  const whole = draw(LONG);
  expect(growing.element.innerHTML.replaceAll("\n", "")).toBe(whole.replaceAll("\n", ""));
});

test("what is settled is not drawn again", () => {
  const markdown = new Markdown();
  markdown.update("first\n\nsecond\n\nthird\n\n");
  const first = markdown.element.querySelector("p");
  markdown.update("first\n\nsecond\n\nthird\n\nfourth");
  expect(markdown.element.querySelector("p")).toBe(first);
  markdown.update("another"); // a retried attempt
  expect(markdown.element.textContent?.trim()).toBe("another");
});

test("web links stay, and say where they lead", () => {
  expect(draw("[x](https://example.org/a)")).toContain('title="https://example.org/a"');
});

test.each<[string, string | undefined, number?]>([
  ["[src/click/utils.py](src/click/utils.py)", "src/click/utils.py"],
  ["[utils](src/click/utils.py:219)", "src/click/utils.py", 219],
  ["[utils](src/click/utils.py#L219)", "src/click/utils.py", 219],
  ["[utils](src/click/utils.py#L219-L230)", "src/click/utils.py", 219],
  ["[utils](./src/click/utils.py:219:5)", "./src/click/utils.py", 219],
  ["[`utils.py`](src/click/utils.py)", "src/click/utils.py"],
  ["[a b](docs/a%20b.md)", "docs/a b.md"],
  ["[a b](<docs/a b.md>)", "docs/a b.md"],
  ["[licence](LICENSE)", "LICENSE"],
  ["see `utils.py:219` there", "utils.py", 219],
  ["see `src/click/utils.py` there", "src/click/utils.py"],
  ["see `src/click/utils.py:219-230` there", "src/click/utils.py", 219],
  ["see `os.path` there", undefined],
  ["see `utils.py` there", undefined], // it may be a name in the code as well
  ["see `http://example.org/a.py:80` there", undefined],
  ["see `/etc/passwd:1`", undefined],
  ["see `../up/secret.txt:1`", undefined],
  ["see `localhost:8080` there", undefined],
  ["see `12:30` there", undefined],
  ["[x](/etc/passwd)", undefined],
  ["[x](../up/secret.txt)", undefined],
  ["[x](src/../../up/secret.txt)", undefined],
  ["[x](src/%2e%2e/%2e%2e/up/secret.txt)", undefined],
  ["[x](file:///etc/passwd)", undefined],
  ["[x](//e.test/share)", undefined],
  ["[x](%5C%5Ce.test/share)", undefined],
  ["[x](javascript:1)", undefined],
  ["[x](data:12)", undefined],
  ["[x](c:/windows/x.txt)", undefined],
  ["[x](src/%E2%80%AEtxt.py)", undefined],
  ["[x](#heading)", undefined],
  ["[x](src/%zz.py)", undefined],
])("a file of the workspace is opened by the host: %s", (text, path, line) => {
  const { posted, find } = show({
    items: [{ kind: "answer", agentId: null, itemId: "a", turnId: "t", text }],
  });
  const link = find(".markdown a");
  if (path === undefined) {
    expect(find(".markdown").querySelectorAll("a")).toHaveLength(0);
    return;
  }
  expect([link.getAttribute("href"), link.title]).toEqual([null, line ? `${path}:${line}` : path]);
  (link.querySelector("code") ?? link).click();
  link.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", bubbles: true }));
  const open = { type: "openFile", path, line: line ?? null };
  expect(posted).toEqual([open, open]);
});

test("a cell says by its class where its text stands", () => {
  const html = draw("| a | b | c | d |\n|:--|:-:|--:|---|\n| 1 | 2 | 3 | 4 |");
  const classes = [...html.matchAll(/<t[hd]( class="\w+")?>/g)].map(([, name]) => name?.slice(8, -1));
  expect(classes).toEqual(["left", "center", "right", undefined, "left", "center", "right", undefined]);
  expect(html).not.toContain("style");
});

test("the subject of a thought is its latest heading", () => {
  expect(subject("**One**\n\ntext **bold** text\n\n**Two**\n\nmore")).toBe("Two");
  expect(subject("no heading")).toBe("");
});

function show(given: Partial<SessionState>) {
  const posted: ToHost[] = [];
  const view = {
    session: new Folded(state(given)),
    client: "Visual Studio Code",
    post: (message: ToHost) => posted.push(message),
  };
  const list = new List(view);
  document.body.replaceChildren(list.element);
  list.reset();
  const find = <E extends HTMLElement>(selector: string) => list.element.querySelector(selector) as E;
  return { list, view, posted, find };
}

beforeEach(() =>
  vi.stubGlobal(
    "ResizeObserver",
    class {
      observe() {}
      unobserve() {}
    },
  ),
);

test("an approval is answered with the scope and the rule as edited", () => {
  const { posted, find } = show({ items: [CALL], approvals: [APPROVAL] });
  expect(find(".remember").hidden).toBe(true);
  find<HTMLSelectElement>("select.scope").value = "session";
  find("select.scope").dispatchEvent(new Event("change"));
  const rule = find<HTMLTextAreaElement>("textarea.rule");
  expect([rule.value, find(".meaning").textContent]).toEqual([
    "run_shell_command(make)",
    "Allows make, with any words after it.",
  ]);
  rule.value = "run_shell_command(make test)";
  find("button.allow").click();
  expect(posted).toEqual([
    { type: "checkRule", toolCallId: "c1", rule: "run_shell_command(make)" },
    {
      type: "resolve",
      toolCallId: "c1",
      decision: "allow",
      scope: "session",
      rule: "run_shell_command(make test)",
      reason: null,
      digest: "d1",
      grants: [],
    },
  ]);
});

test("a rejection carries its reason, and no rule", () => {
  const { posted, find } = show({ items: [CALL], approvals: [APPROVAL] });
  find<HTMLInputElement>("input.reason").value = " too slow ";
  find("button.reject").click();
  expect(posted).toMatchObject([{ decision: "reject", scope: "once", rule: null, reason: "too slow" }]);
});

test("what is typed stays while the card changes, and the question leaves when it is settled", () => {
  const { list, view, find } = show({ items: [CALL], approvals: [APPROVAL] });
  const reason = find<HTMLInputElement>("input.reason");
  reason.value = "half a rea";
  view.session.fold({ kind: "itemChanged", item: { ...CALL, title: "Run make, now" } });
  list.update(new Set(["c1"]));
  expect(find("input.reason")).toBe(reason);
  view.session.fold({ kind: "approvalResolved", toolCallId: "c1", decision: decidedBy("user", "allowed") });
  list.update(new Set(["c1"]));
  expect(find(".approval").hidden).toBe(true);
});

const EDIT: ToolCall = {
  ...CALL,
  tool: "edit_file",
  title: "Edit a.py",
  effect: "write",
  arguments: {},
  state: "validating",
};

test("an edit is live while it is written, and gives way to the question", () => {
  const { list, view, find } = show({ items: [EDIT] });
  const grow = (text: string) => {
    view.session.fold({ kind: "itemDelta", itemId: "c1", text });
    list.update(new Set(["c1"]));
  };
  const details = () => find<HTMLDetailsElement>(".tool > details");
  expect([find(".live-edit").hidden, details().open]).toEqual([true, false]);
  grow("-old\n+new\n");
  const [first] = find(".live-edit").children;
  grow("@@\n-<b>\n");
  expect(find(".live-edit").children[0]).toBe(first);
  const lines = [...find(".live-edit").children].map((each) => `${each.className} ${each.textContent}`);
  expect(lines).toEqual(["removed - old\n", "added + new\n", "more @@\n", "removed - <b>\n"]);
  expect([find(".state").textContent, details().open]).toEqual(["being written", true]);
  expect(find(".output").hidden).toBe(true);
  grow("+x\n".repeat(LIVE_LINES));
  expect(find(".live-edit").childElementCount).toBe(LIVE_LINES);
  const item: ToolCall = { ...EDIT, state: "awaitingApproval", output: "" };
  view.session.fold({ kind: "itemChanged", item });
  list.update(new Set(["c1"]));
  expect([find(".live-edit").hidden, find(".live-edit").childElementCount, details().open]).toEqual([
    true,
    0,
    false,
  ]);
});

test.each<[boolean, string, string]>([
  [false, "codicon-check", "Run make: done, all is well"],
  [true, "codicon-warning", "Run make: done, with a failure, all is well"],
])("a command in whose pipe something failed (%s) is no success", (warns, sign, label) => {
  const call: ToolCall = { ...CALL, state: "succeeded", summary: "all is well", warns };
  const card = show({ items: [call] }).list.element.querySelector(".card.tool");
  expect(card?.querySelector(".mark .codicon")?.classList.contains(sign)).toBe(true);
  expect(card?.getAttribute("aria-label")).toBe(label);
});

function answers(count: number): Item[] {
  return Array.from({ length: count }, (_, at) => ({
    kind: "answer",
    agentId: null,
    itemId: `a${at}`,
    turnId: "t",
    text: `number ${at}`,
  }));
}

test("thousands of items are a bounded number of cards, and an update touches its own card only", () => {
  const { list, view } = show({ items: answers(2000) });
  expect(list.count).toBe(SHOWN);
  const cards = () => [...list.element.querySelectorAll(".card")];
  expect(cards().at(-1)?.textContent).toContain("number 1999");
  const others = cards()
    .slice(0, -1)
    .map((each) => each.innerHTML);
  const observer = new MutationObserver(() => undefined);
  for (const child of cards().slice(0, -1))
    observer.observe(child, { subtree: true, childList: true, characterData: true });
  view.session.fold({ kind: "itemDelta", itemId: "a1999", text: " and more" });
  list.update(new Set(["a1999"]));
  expect(cards().at(-1)?.textContent).toContain("number 1999 and more");
  expect(
    cards()
      .slice(0, -1)
      .map((each) => each.innerHTML),
  ).toEqual(others);
  expect(observer.takeRecords()).toEqual([]);
  for (const item of answers(2100).slice(2000)) view.session.fold({ kind: "itemCompleted", item });
  list.update(new Set());
  expect(list.count).toBe(SHOWN);
});

/** Give the list a size and a place, and tell it as the browser does: later. */
function scrolled(list: List, top: number, room: number, height = 9000): void {
  for (const [name, value] of Object.entries({ scrollHeight: height, clientHeight: room }))
    Object.defineProperty(list.element, name, { value, configurable: true });
  list.element.scrollTop = top;
  list.element.dispatchEvent(new Event("scroll"));
}

test.each([
  ["the prompt box took room since", 8300, 600, true],
  ["the end is in sight", 8400, 600, true],
  ["the user scrolled up", 4000, 700, false],
])("%s: the end is followed or not", (_, top, room, expected) => {
  const { list, view } = show({ items: answers(300) });
  scrolled(list, 8300, 700); // at the end
  scrolled(list, top, room);
  for (const item of answers(310).slice(300)) view.session.fold({ kind: "itemCompleted", item });
  list.update(new Set());
  const shown = [...list.element.querySelectorAll(".card")].at(-1)?.textContent ?? "";
  expect(shown.includes("number 309")).toBe(expected);
});

test("withdrawn items leave, earlier ones come in order", () => {
  const { list, view } = show({ items: answers(3) });
  view.session.fold({ kind: "itemsWithdrawn", itemIds: ["a1"], reason: "" });
  list.update(new Set());
  view.session.prepend(
    [
      {
        kind: "notice",
        agentId: null,
        itemId: "n",
        turnId: null,
        level: "info",
        code: "x",
        text: "before",
        detail: "",
      },
    ],
    false,
  );
  list.earlier();
  expect([...list.element.querySelectorAll(".card")].map((each) => each.textContent?.trim())).toEqual([
    "before",
    "number 0",
    "number 2",
  ]);
});

test.each([
  ["Your ChatGPT sign-in has ended. Run: amanu auth login openai", ["Sign in with ChatGPT"]],
  [
    "Set K, or run: amanu auth set openai, or run: amanu auth login openai",
    ["Set API key…", "Sign in with ChatGPT"],
  ],
  ["The key was refused.", ["Set API key…"]],
])("a notice offers what it advises: %s", (text, expected) => {
  const notice = { itemId: "n", turnId: null, level: "error", code: "authFailed", text, detail: "" } as const;
  const { list } = show({ items: [{ kind: "notice", agentId: null, ...notice }] });
  expect([...list.element.querySelectorAll("button")].map((each) => each.textContent)).toEqual(expected);
});

test("a model that there is not offers the others", () => {
  const text =
    "OpenAI has no such model for you: No. OpenAI has openai:gpt-6.2-sol. To see all of them, run: amanu models";
  const notice = {
    itemId: "n",
    turnId: null,
    level: "error",
    code: "modelNotFound",
    text,
    detail: "",
  } as const;
  const { list, posted } = show({ items: [{ kind: "notice", agentId: null, ...notice }] });
  const button = list.element.querySelector("button");
  expect([button?.textContent, list.element.textContent?.includes("amanu models")]).toEqual([
    "Select model…",
    false,
  ]);
  button?.click();
  expect(posted).toEqual([{ type: "action", action: "selectModel" }]);
});

test.each([
  [
    "refused",
    "Not this. Its service recommends another: `/model anthropic:claude-sonnet-5`, then send it again.",
    ["anthropic:claude-sonnet-5"],
  ],
  ["refused", "`/model x:y`, then send it again. Or not.", []],
  ["failed", "Its service recommends another: `/model x:y`, then send it again.", []],
])("a refusal offers the model that is recommended: %s, %s", (code, text, models) => {
  const notice = { itemId: "n", turnId: "t", level: "warning", code, text, detail: "" } as const;
  const { list, posted } = show({ items: [{ kind: "notice", agentId: null, ...notice }] });
  const buttons = [...list.element.querySelectorAll("button")].filter((each) => each.textContent !== "");
  expect(buttons.map((each) => each.textContent)).toEqual(models.map((id) => `Try again with ${id}`));
  buttons.forEach((each) => each.click());
  expect(posted).toEqual(models.map((modelId) => ({ type: "retry", turnId: "t", modelId })));
});

function decidedBy(by: Decision["by"], outcome: Decision["outcome"], more: Partial<Decision> = {}): Decision {
  return {
    outcome,
    by,
    client: null,
    rule: null,
    scope: null,
    reason: null,
    grants: [],
    command: null,
    permittedBy: null,
    mode: null,
    freshContext: false,
    trial: false,
    place: null,
    summary: "",
    ...more,
  };
}

test.each<[Decision, string]>([
  [
    decidedBy("user", "rejected", { client: "Neovim", summary: "rejected by you" }),
    "Rejected by you (Neovim)",
  ],
  [
    decidedBy("user", "allowed", { client: "Visual Studio Code", summary: "allowed by \u202eyou" }),
    "Allowed by <U+202E>you",
  ],
  [decidedBy("rule", "denied"), "Denied"],
])("who decided", (given, expected) => expect(decision(given, "Visual Studio Code")).toBe(expected));

test("how a review went", () => {
  const hunk = (now: string) => ({ state: now }) as never;
  const file = { unsaved: true, hunks: [hunk("applied"), hunk("rejected"), hunk("applied")] } as never;
  expect(decided(file)).toBe("2 applied, 1 rejected, not saved yet");
});
