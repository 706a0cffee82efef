// @vitest-environment happy-dom
import { beforeEach, expect, test, vi } from "vitest";
import type { ToHost } from "../src/chat/messages";
import { NESTED } from "../src/chat/view/agent";
import { announcement } from "../src/chat/view/announce";
import { List, SHOWN } from "../src/chat/view/list";
import { Parent } from "../src/chat/view/parent";
import { StatusLines } from "../src/chat/view/statusLines";
import { comment } from "../src/review/findings";
import { Folded } from "../src/sessions/fold";
import type { Approval, Item, SessionState, SubAgent, ToolCall } from "../src/protocol";
import { standingStep } from "../src/sessions/step";
import { APPROVAL, CALL, question, state } from "./states";

beforeEach(() =>
  vi.stubGlobal(
    "ResizeObserver",
    class {
      observe() {}
      unobserve() {}
    },
  ),
);

const RUN: ToolCall = {
  ...CALL,
  itemId: "run-1",
  tool: "run_agent",
  title: "investigator: find the parser",
  effect: "read",
  arguments: { agent: "investigator", prompt: "Find it." },
  state: "executing",
};
const AGENT: SubAgent = {
  agentId: "agent-1",
  name: "investigator",
  description: "find the parser",
  sessionId: "child-1",
  toolCallId: "run-1",
  background: false,
  state: "running",
  startedAt: 0,
  endedAt: null,
  steps: 2,
  costUsd: 0.01,
  activity: "Read a.py",
  summary: "Running: 2 steps, $0.01",
  told: false,
  report: "",
};
const ENDED: Partial<SubAgent> = {
  state: "completed",
  endedAt: 9,
  activity: "",
  summary: "Completed: 5 steps, $0.02",
};

function work(itemId: string, more: Partial<ToolCall> = {}): ToolCall {
  const title = `Read ${itemId}`;
  return {
    ...CALL,
    itemId,
    tool: "save_memory", // no read: those fold into one row
    title,
    effect: "read",
    state: "succeeded",
    agentId: "agent-1",
    ...more,
  };
}

function asks(toolCallId: string, more: Partial<Approval> = {}): Approval {
  const lines = [
    { tone: "plain" as const, text: "Requested by the sub-agent investigator (agent-1)." },
    { tone: "plain" as const, text: "Needs approval: no rule allows it" },
  ];
  return question({ toolCallId, agentId: "agent-1", agent: "investigator", lines, ...more });
}

function show(given: Partial<SessionState>) {
  const posted: ToHost[] = [];
  const view = { session: new Folded(state(given)), client: "here", post: (m: ToHost) => posted.push(m) };
  const list = new List(view);
  document.body.replaceChildren(list.element);
  list.reset();
  const find = <E extends HTMLElement>(selector: string) => list.element.querySelector(selector) as E;
  const titles = (selector: string) =>
    [...list.element.querySelectorAll(selector)].map((each) => each.textContent);
  const change = (agent: Partial<SubAgent>) => {
    view.session.fold({ kind: "agentChanged", agent: { ...AGENT, ...agent } });
    list.update(new Set(["run-1"]));
  };
  const put = (item: Item) => {
    view.session.fold({ kind: "itemChanged", item });
    list.update(new Set([item.itemId]));
  };
  return { list, view, posted, find, titles, change, put };
}

const unfolded = (element: HTMLElement) => [
  element.querySelector(".fold")?.getAttribute("aria-expanded"),
  element.querySelector<HTMLElement>(".below")?.hidden,
];

test("what a sub-agent does stands below its call and nowhere else", () => {
  const { list, find, titles, put } = show({ items: [RUN, work("w1")], agents: [AGENT] });
  put(work("w2"));
  expect(list.count).toBe(1);
  expect(titles(".list > .card > .head .title")).toEqual(["investigator: find the parser"]);
  expect(titles(".items > .tool .title")).toEqual(["Read w1", "Read w2"]);
  expect([find(".head .state").textContent, find(".activity").textContent]).toEqual([
    "Running: 2 steps, $0.01",
    "Read a.py",
  ]);
});

test("it folds when it has ended, unless the user opened it", () => {
  const { find, change } = show({ items: [RUN, work("w1")], agents: [AGENT] });
  expect(unfolded(find(".agent"))).toEqual(["true", false]);
  change(ENDED);
  expect(unfolded(find(".agent"))).toEqual(["false", true]);
  expect([find(".activity").hidden, find(".head button.link").hidden]).toEqual([true, true]);
  find(".fold").click();
  change({ ...ENDED, told: true });
  expect(unfolded(find(".agent"))).toEqual(["true", false]);
});

test("what was folded while it worked is up to date when it is opened", () => {
  const { find, put } = show({ items: [RUN, work("w1", { state: "executing" })], agents: [AGENT] });
  find(".fold").click();
  put(work("w1"));
  put(work("w2"));
  expect(unfolded(find(".agent"))).toEqual(["false", true]);
  find(".fold").click();
  const states = [...document.querySelectorAll<HTMLElement>(".items .tool")].map(
    (each) => each.dataset.state,
  );
  expect(states).toEqual(["succeeded", "succeeded"]);
});

test("stop and open are for this agent", () => {
  const { posted, find } = show({ items: [RUN], agents: [AGENT] });
  const [stop, open] = [...find(".head").querySelectorAll<HTMLButtonElement>("button.link")];
  stop?.click();
  open?.click();
  expect([stop?.getAttribute("aria-label"), open?.getAttribute("aria-label")]).toEqual([
    "Stop investigator",
    "Open the session of investigator",
  ]);
  expect(posted).toEqual([
    { type: "stopAgent", agentId: "agent-1" },
    { type: "open", sessionId: "child-1" },
  ]);
});

test("its question is asked below the call, in its name, and shown wherever it is folded", () => {
  const { list, view, posted, find } = show({ items: [RUN, work("w1")], agents: [AGENT] });
  find(".fold").click();
  view.session.fold({ kind: "itemChanged", item: work("w1", { state: "awaitingApproval" }) });
  view.session.fold({ kind: "approvalRequested", approval: asks("w1") });
  list.update(new Set(["w1"]));
  expect([find(".activity").textContent, find(".below").hidden]).toEqual(["Waiting for your answer", true]);
  expect(list.show("w1")).toBe(true);
  const box = find(".approval:not([hidden])");
  expect([box.getAttribute("aria-label"), box.querySelector(".why")?.textContent]).toEqual([
    "Your decision: investigator: Run make",
    "Allow the agent investigator to do this?",
  ]);
  expect([...box.querySelectorAll(".reasons li")].map((each) => each.textContent)).toEqual([
    "Requested by the sub-agent investigator (agent-1).",
    "Needs approval: no rule allows it",
  ]);
  box.querySelector<HTMLButtonElement>(".allow")?.click();
  expect(posted).toMatchObject([{ type: "resolve", toolCallId: "w1", decision: "allow", digest: "d1" }]);
});

test("parts of a command have their own rows, and are not told again", () => {
  const part = { text: "make", decision: "ask" as const, rule: "", reason: "it runs" };
  const lines = ["wanted by it", "make: it runs", "needs approval"].map((text) => ({
    tone: "plain" as const,
    text,
  }));
  const { find } = show({
    items: [RUN, work("w1", { state: "awaitingApproval" })],
    agents: [AGENT],
    approvals: [asks("w1", { parts: [part], lines })],
  });
  expect([...find(".reasons").children].map((each) => each.textContent)).toEqual([
    "wanted by it",
    "needs approval",
  ]);
});

test("an update of one item below touches that item only", () => {
  const others = Array.from({ length: 200 }, (_, at) => ({ ...CALL, itemId: `o${at}` }));
  const items = [...others, RUN, ...Array.from({ length: 100 }, (_, at) => work(`w${at}`))];
  const { list, view, find } = show({ items, agents: [AGENT] });
  expect([list.count, find(".items").childElementCount]).toEqual([SHOWN, NESTED]);
  const last = find(".items").lastElementChild as HTMLElement;
  const observer = new MutationObserver(() => undefined);
  for (const each of [...find(".items").children].slice(0, -1))
    observer.observe(each, { subtree: true, childList: true });
  for (const each of [...list.element.querySelectorAll(":scope > .card")].slice(0, -1))
    observer.observe(each, { subtree: true, childList: true, attributes: true });
  const asked = vi.spyOn(view.session, "item");
  view.session.fold({ kind: "itemChanged", item: work("w99", { title: "Read more" }) });
  list.update(new Set(["w99"]));
  expect(last.querySelector(".title")?.textContent).toBe("Read more");
  expect(observer.takeRecords()).toEqual([]);
  expect(asked.mock.calls.length).toBeLessThan(10);
});

test("of much work the end is shown, and earlier work on demand", () => {
  const items = [RUN, ...Array.from({ length: NESTED + 5 }, (_, at) => work(`w${at}`))];
  const { find, put } = show({ items, agents: [AGENT] });
  put(work("new"));
  expect([find(".items").childElementCount, find(".earlier").textContent]).toEqual([
    NESTED,
    "Show earlier (6)",
  ]);
  find(".earlier").click();
  expect([find(".items").childElementCount, find(".earlier").hidden]).toEqual([NESTED + 6, true]);
});

test("what waits is shown, however much came after it", () => {
  const many = Array.from({ length: NESTED + 5 }, (_, at) => work(`w${at}`));
  const { find } = show({
    items: [RUN, work("first", { state: "awaitingApproval" }), ...many],
    agents: [AGENT],
    approvals: [asks("first")],
  });
  expect(find(".items .approval:not([hidden])")).not.toBeNull();
});

test("an item of an agent whose call is not there has no card, which is said", () => {
  const items: Item[] = [work("w1")];
  const { list, posted } = show({ items, agents: [AGENT], hasEarlier: true });
  expect([list.count, list.show("w1")]).toEqual([0, false]);
  expect(posted).toEqual([{ type: "earlier" }]); // it may be before what was fetched
});

test("back from its session, the user is where they left", () => {
  const { list, find } = show({ items: [RUN], agents: [AGENT] });
  list.showAgent("child-1");
  expect(document.activeElement).toBe(find("button.open"));
});

test("over its own session stands the way back", () => {
  const posted: ToHost[] = [];
  const view = (given: Partial<SessionState>) => ({
    session: new Folded(state(given)),
    client: "",
    post: (m: ToHost) => posted.push(m),
  });
  const parent = new Parent(view({ sessionId: "child-1", parentSessionId: "s1", agent: "investigator" }));
  parent.update();
  parent.element.querySelector("button")?.click();
  expect([parent.element.hidden, parent.element.textContent, posted]).toEqual([
    false,
    "← BackSession of the sub-agent investigator",
    [{ type: "open", sessionId: "s1" }],
  ]);
  const own = new Parent(view({}));
  own.update();
  expect(own.element.hidden).toBe(true);
});

test("the standing area and a screen reader hear who asks and how it ended", () => {
  const session = new Folded(state({ items: [RUN, work("w1")], agents: [AGENT], approvals: [asks("w1")] }));
  const standing = new StatusLines({ session, client: "", post: () => undefined }, vi.fn(), vi.fn(), String);
  standing.update();
  expect(standing.element.textContent).toContain("Waiting for you: investigator: Run make");
  expect(announcement({ kind: "approvalRequested", approval: asks("w1") })).toBe(
    "Amanu needs your decision: investigator: Run make",
  );
  expect(announcement({ kind: "agentChanged", agent: AGENT })).toBe("");
  expect(announcement({ kind: "agentChanged", agent: { ...AGENT, ...ENDED } })).toBe(
    "investigator: Completed: 5 steps, $0.02",
  );
});

test("a yes to all of a step is about the edits of one agent", () => {
  const file = { path: "/w/a.py" };
  const proposals = ["p1", "p2", "p3"].map((proposalId) => ({ proposalId, files: [file] }));
  const approvals = [
    { ...APPROVAL, toolCallId: "c1", proposalId: "p1", agentId: "agent-1" },
    { ...APPROVAL, toolCallId: "c2", proposalId: "p2", agentId: "agent-2" },
  ];
  const given = { ...state({ approvals }), proposals } as unknown as SessionState;
  expect(standingStep(given)).toBeUndefined();
  const third = { ...APPROVAL, toolCallId: "c3", proposalId: "p3", agentId: "agent-1" };
  expect(standingStep({ ...given, approvals: [...approvals, third] })?.approvals).toEqual([
    approvals[0],
    third,
  ]);
});

test("findings become comments at their lines", () => {
  const text =
    "reviewer has 3 findings:\nsrc/a.py:3: high: it never ends\n../up.py:1: low: no\nb.py:0: low: no";
  expect(comment(text)).toEqual({
    agent: "reviewer",
    comments: [{ path: "src/a.py", line: 3, words: "high: it never ends" }],
  });
});

test("findings lead to their places", () => {
  const text = "reviewer has 2 findings:\nsrc/a.py:3: high: it never ends\n/etc/passwd:1: low: <b>no</b>";
  const { posted, find } = show({
    items: [
      {
        kind: "notice",
        itemId: "n",
        turnId: null,
        level: "info",
        code: "agentFindings",
        text,
        detail: "",
        agentId: null,
      },
    ],
  });
  expect(find(".notice").textContent).toBe(text);
  expect(find(".notice").querySelectorAll("a")).toHaveLength(1);
  find(".notice a").click();
  expect(posted).toEqual([{ type: "openFile", path: "src/a.py", line: 3 }]);
});
