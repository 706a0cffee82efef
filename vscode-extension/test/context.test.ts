// @vitest-environment happy-dom
import { beforeEach, expect, test } from "vitest";
import type { ToHost } from "../src/chat/messages";
import { announcement } from "../src/chat/view/announce";
import { makeCard } from "../src/chat/view/cards";
import { Gauge, uncompactable, usageText } from "../src/chat/view/gauge";
import { StatusLines } from "../src/chat/view/statusLines";
import { Todos } from "../src/chat/view/todos";
import { Folded } from "../src/sessions/fold";
import type { ContextUse, Item, Notice, SessionState, Source, Spend, Usage } from "../src/protocol";
import { tokens } from "../src/sessions/words";
import { state } from "./states";

const SPENT: Spend = {
  inputTokens: 1_000,
  cacheReadTokens: 3_000,
  cacheWriteTokens: 0,
  outputTokens: 400,
  thoughtTokens: 100,
  toolTokens: 0,
  costUsd: 0.1234,
  summary: "4k in · 500 out · $0.12",
};
const CONTEXT: ContextUse = {
  system: 900,
  tools: 2_100,
  memory: 0,
  conversation: 1_200,
  toolOutput: 4_800,
  reserved: 4_000,
  free: 3_000,
  tier: "warn",
  servers: [
    { name: "git", tokens: 1_200 },
    { name: "docs", tokens: 300 },
  ],
};
const USAGE: Usage = {
  ...SPENT,
  contextTokens: 9_000,
  contextWindow: 16_000,
  context: CONTEXT,
  cost: "$0.12",
  percent: 75,
  fullness: "context 75%, filling up",
};

function notice(code: string, detail = "", level: Notice["level"] = "info"): Notice {
  return {
    kind: "notice",
    agentId: null,
    itemId: "n",
    turnId: "t",
    level,
    code,
    text: `It is ${code}.`,
    detail,
  };
}

function view(given: Partial<SessionState>) {
  const posted: ToHost[] = [];
  const made = {
    session: new Folded(state(given)),
    client: "Visual Studio Code",
    post: (message: ToHost) => posted.push(message),
  };
  return { view: made, posted };
}

function gauge(given: Partial<SessionState>) {
  const made = view(given);
  const shown = new Gauge(made.view);
  document.body.replaceChildren(shown.element);
  const find = <E extends HTMLElement>(selector: string) => shown.element.querySelector(selector) as E;
  return { ...made, shown, find };
}

beforeEach(() => document.body.replaceChildren());

test("how full it is and what it cost, in the daemon's words", () => {
  expect(usageText(USAGE)).toBe("context 75%, filling up · $0.12");
  expect(usageText({ ...USAGE, fullness: "" })).toBe("$0.12");
});

test.each([
  [999, "999"],
  [1_234, "1.2 k"],
  [16_000, "16 k"],
  [999_700, "1 M"],
  [1_048_576, "1 M"],
  [2_000, "2 k"],
])("%i in short", (count, text) => expect(tokens(count)).toBe(text));

test("the bar says in words what it shows, and its parts are as wide as they are big", () => {
  const { find } = gauge({ usage: USAGE });
  expect(find(".gauge").getAttribute("aria-label")).toBe("Context 75% full, filling up");
  expect(find(".gauge").textContent).toBe("75%filling up");
  const parts = [...find(".gauge .bar").children] as HTMLElement[];
  expect(parts.filter((each) => !each.hidden).map((each) => Number(each.style.flexGrow))).toEqual([
    900, 2_100, 1_200, 4_800, 3_000, 4_000,
  ]);
  expect(find(".cost").textContent).toBe("$0.12");
});

test("without the parts it is as it was: a share and the cost", () => {
  const { find } = gauge({ usage: { ...USAGE, context: null } });
  expect(find(".gauge").hidden).toBe(true);
  expect(find(".cost").textContent).toBe("context 75%, filling up · $0.12");
});

test("the numbers stand behind the bar, and Escape leads back to it", () => {
  const ended = {
    kind: "turnEnded",
    turnId: "t",
    reason: "completed",
    message: "",
    canContinue: false,
  } as const;
  const { find } = gauge({
    usage: USAGE,
    lastTurn: { ...ended, usage: { ...SPENT, summary: "of the turn" } },
  });
  expect(find(".context").hidden).toBe(true);
  find(".gauge").click();
  expect(find(".gauge").getAttribute("aria-expanded")).toBe("true");
  expect(document.activeElement).toBe(find(".context"));
  const rows = [...find("table").querySelectorAll<HTMLElement>("tr")].filter((each) => !each.hidden);
  expect(rows.map((each) => [...each.children].map((cell) => cell.textContent))).toEqual([
    ["System prompt", "900"],
    ["Tools", "2,100"],
    ["Conversation", "1,200"],
    ["Tool output", "4,800"],
    ["Free", "3,000"],
    ["Reserved for reply", "4,000"],
  ]);
  expect(find(".context").textContent).toContain("9,000 of 12,000 tokens");
  expect(find(".context").textContent).toContain("MCP servers' share of the tools: git 1,200 · docs 300");
  expect([...find("dl").querySelectorAll("dd")].map((each) => each.textContent)).toEqual([
    "4k in · 500 out · $0.12",
    "of the turn",
  ]);
  find(".context").dispatchEvent(new KeyboardEvent("keydown", { key: "Escape", bubbles: true }));
  expect(find(".context").hidden).toBe(true);
  expect(document.activeElement).toBe(find(".gauge"));
});

test("compacting is asked for, and a press beside the card closes it", () => {
  const { find, posted, shown } = gauge({ usage: USAGE });
  shown.show();
  document.body.dispatchEvent(new Event("pointerdown", { bubbles: true }));
  expect(find(".context").hidden).toBe(true);
  shown.show();
  [...find(".context").querySelectorAll("button")].find((each) => each.textContent === "Compact")?.click();
  expect(posted).toEqual([{ type: "action", action: "compact" }]);
  expect(find(".context").hidden).toBe(true);
});

const TURN = { turnId: "t", modelId: "scripted:demo", steps: 2, routed: null };

test.each<[Partial<SessionState>, Partial<ContextUse>, RegExp]>([
  [{}, {}, /^$/],
  [{ turn: TURN }, {}, /^$/],
  [{ readOnly: true }, {}, /read-only/],
  [{ items: [notice("compacting")], turn: TURN }, {}, /being compacted/],
  [{ items: [notice("compacted")] }, {}, /nothing new to compact/],
  [{ items: [notice("nothingToCompact")] }, {}, /nothing new to compact/],
  [{ items: [notice("modelTold")] }, {}, /^$/],
  [{}, { conversation: 0, toolOutput: 0 }, /nothing to compact/],
])("why it cannot be compacted now: %o", (given, context, why) =>
  expect(uncompactable(state(given), { ...CONTEXT, ...context })).toMatch(why),
);

function card(item: Item) {
  const made = makeCard(item, view({}).view);
  made.update(item);
  return made;
}

test("a summary in the making becomes a line with the summary folded behind it", () => {
  const made = card(notice("compacting"));
  expect(made.element.querySelector(".spinner")).not.toBeNull();
  made.update(notice("compacted", "## Goal\n\nA <script>x</script> *shop*."));
  expect(made.element.querySelector(".spinner")).toBeNull();
  expect(made.element.querySelector("summary")?.textContent).toBe("It is compacted.");
  expect(made.element.querySelector("h2")).toBeNull(); // folded away
  const details = made.element.querySelector("details") as HTMLDetailsElement;
  details.open = true;
  details.dispatchEvent(new Event("toggle"));
  expect(made.element.querySelector("h2")?.textContent).toBe("Goal");
  expect(made.element.querySelector("script")).toBeNull();
  made.update(notice("compacted", "## Goal\n\nA *house*."));
  expect(details.open).toBe(true);
  expect(made.element.querySelector("em")?.textContent).toBe("house");
});

test("a notice with nothing behind it is a sentence", () => {
  const made = card(notice("nothingToCompact"));
  expect(made.element.querySelector("details")).toBeNull();
  expect(made.element.textContent).toBe("It is nothingToCompact.");
});

test.each<[Partial<Source>, string[], string | null]>([
  [{ title: "A page" }, ["A page"], null],
  [
    { title: "A page", url: "https://example.org/a" },
    ["A page", "https://example.org/a"],
    "https://example.org/a",
  ],
  [
    { title: "https://example.org", url: "https://example.org" },
    ["https://example.org/"],
    "https://example.org/",
  ],
  [
    { title: "Х", url: "https://аррӏе.com/" },
    ["Х", "https://xn--80ak6aa92e.com/"],
    "https://xn--80ak6aa92e.com/",
  ],
  [{ title: "Bad", url: "javascript:alert(1)" }, ["Bad", "javascript:alert(1)"], null],
  [{ title: "Bad", url: "command:workbench.action.quit" }, ["Bad", "command:workbench.action.quit"], null],
  [{ quote: "<b>said</b>" }, ["<b>said</b>"], null],
])("a source: %o", (given, texts, href) => {
  const source = { title: "", url: "", quote: "", ...given };
  const { element } = card({ kind: "citations", itemId: "c", turnId: "t", sources: [source] });
  const found = [...element.querySelectorAll("li > .title, li > .where, li blockquote")];
  expect(found.map((each) => each.textContent)).toEqual(texts);
  expect(element.querySelector("a")?.getAttribute("href") ?? null).toBe(href);
});

test.each<[Partial<SessionState>, string]>([
  [{ turn: TURN }, "Working · step 3"],
  [{ turn: TURN, items: [notice("compacting")] }, "Compacting the conversation"],
  [
    { turn: { ...TURN, modelId: "x:small", routed: "The other one is overloaded." } },
    "Working · step 3Small: The other one is overloaded.",
  ],
])("what runs: %o", (given, text) => {
  const standing = new StatusLines(
    view(given).view,
    () => undefined,
    () => undefined,
    () => "Small",
  );
  standing.update();
  expect(standing.element.querySelector(".running")?.textContent).toBe(text);
});

test("what a screen reader hears of it", () => {
  const item = notice("compacting");
  expect(announcement({ kind: "itemStarted", item })).toBe("It is compacting.");
  expect(announcement({ kind: "turnRouted", turnId: "t", modelId: "m", reason: "Overloaded." })).toBe(
    "Overloaded.",
  );
});

test("the to-dos stand on one line over the prompt box, in full when it is opened, and go when there are none", () => {
  const { view: made } = view({});
  const strip = new Todos(made);
  strip.update();
  expect(strip.element.hidden).toBe(true);
  made.session.fold({
    kind: "itemCompleted",
    item: {
      kind: "todoList",
      itemId: "t.todos1",
      turnId: "t",
      todos: [
        { text: "Read", status: "done" },
        { text: "Write", status: "inProgress" },
      ],
      summary: "1 of 2 done · Write",
    },
  });
  strip.element.open = true;
  strip.update();
  expect(strip.element.hidden).toBe(false);
  expect(strip.element.open).toBe(true);
  expect(strip.element.querySelector("summary")?.textContent).toBe("1 of 2 done · Write");
  expect([...strip.element.querySelectorAll("li")].map((each) => [each.className, each.textContent])).toEqual(
    [
      ["done", "Read"],
      ["inProgress", "Write"],
    ],
  );
});
