// @vitest-environment happy-dom
import axe from "axe-core";
import { beforeAll, expect, test, vi } from "vitest";
import type { ToView } from "../src/chat/messages";
import type { Decision, Event } from "../src/protocol";
import { FACES, type Step } from "./faces";
import { CALL } from "./states";

beforeAll(async () => {
  vi.stubGlobal("ResizeObserver", class { observe() {} unobserve() {} }); // prettier-ignore
  vi.stubGlobal("origin", "https://view.test");
  vi.stubGlobal("acquireVsCodeApi", () => ({ postMessage() {}, getState() {}, setState() {} }));
  const style = document.createElement("style");
  style.textContent = "[hidden] { display: none; }"; // as every browser has it
  document.head.append(style);
  await import("../src/chat/view/main");
});

function say(data: ToView): void {
  window.dispatchEvent(new MessageEvent("message", { data: structuredClone(data), origin: window.origin }));
}

function take(step: Step): void {
  if (step.type === "press") document.querySelector<HTMLElement>(step.what)!.click();
  else if (step.type === "write") {
    const box = document.querySelector<HTMLTextAreaElement>(".composer textarea")!;
    box.value = step.text;
    box.dispatchEvent(new Event("input"));
  } else say(step);
}

/** Nothing is drawn here, so neither colours nor sizes are known. Buttons in a summary are good HTML, and Chromium tells a
 * screen reader of them. */
const UNSEEN = ["color-contrast", "target-size", "nested-interactive"];

/** What axe finds wrong by WCAG. */
async function violations(): Promise<string[]> {
  const { violations } = await axe.run(document.body, {
    runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"],
    rules: Object.fromEntries(UNSEEN.map((rule) => [rule, { enabled: false }])),
    resultTypes: ["violations"],
  });
  return violations.flatMap(({ id, nodes }) => nodes.map(({ html }) => `${id}: ${html.slice(0, 200)}`));
}

test.each(Object.entries(FACES))("a screen reader can tell what is there: %s", async (_, steps) => {
  for (const step of steps) take(step);
  expect(await violations()).toEqual([]);
});

const frame = () => new Promise((done) => requestAnimationFrame(done));

async function happens(...events: Event[]): Promise<void> {
  say({ type: "events", events, seq: 1 });
  await frame();
}

function show(face: string): void {
  say({ type: "focus" }); // the list of sessions leaves
  for (const step of FACES[face] ?? []) take(step);
  find("[aria-live]").replaceChildren();
}

const find = (selector: string) => document.querySelector<HTMLElement>(selector)!;
const heard = () => find("[aria-live]").textContent;

const ALLOWED: Event = {
  kind: "approvalResolved",
  toolCallId: "c1",
  decision: { outcome: "allowed", by: "user", client: "c1", summary: "Allowed by you" } as Decision,
};

test("who answers a question by keyboard goes on at its card", async () => {
  show("command");
  find(".approval .allow").focus();
  await happens(ALLOWED, { kind: "itemChanged", item: { ...CALL, itemId: "c1", state: "executing" } });
  expect(document.activeElement).toBe(find(".card.tool"));
});

test("who is not at a question keeps the focus when it is answered", async () => {
  show("command");
  find(".composer textarea").focus();
  await happens(ALLOWED);
  expect(document.activeElement).toBe(find(".composer textarea"));
});

test("a button of what stands over the prompt box keeps the focus as long as it stays", async () => {
  show("command");
  const button = find(".standing .waiting button");
  button.focus();
  await happens({ kind: "itemCompleted", item: { ...CALL, itemId: "other", state: "succeeded" } });
  expect(document.activeElement).toBe(button);
});

test("an answer is read out when it is whole, without code, and again when it is the same", async () => {
  show("command");
  const item = { kind: "answer", itemId: "n1", turnId: "t1", agentId: null, text: "" } as const;
  await happens({ kind: "itemStarted", item }, { kind: "itemDelta", itemId: "n1", text: "It **adds**" });
  expect(heard()).toBe("");
  const text = "It **adds**:\n\n```python\nx = 1\n```\n|a|\n|-|\n\nThat is [all](a.py:1).";
  const ended = {
    kind: "turnEnded",
    turnId: "t1",
    reason: "completed",
    message: "",
    canContinue: false,
  } as const;
  const whole = [
    { kind: "itemCompleted", item: { ...item, text } },
    { ...ended, usage: null },
  ] satisfies Event[];
  await happens(...whole);
  expect(heard()).toBe("It adds : (code) a That is all.\nAmanu has finished.");
  const before = find("[aria-live]").firstChild;
  await happens(...whole);
  expect(find("[aria-live]").firstChild).not.toBe(before); // a screen reader hears what is new, not what is the same
});

test("what the list of sessions lies over is out of reach as long as it is there", () => {
  show("sessions");
  expect(find("form.composer").closest("[inert]")).not.toBeNull();
  expect(find("[aria-live]").closest("[inert]")).toBeNull();
  document.dispatchEvent(new KeyboardEvent("keydown", { key: "Escape" }));
  expect(document.querySelectorAll("[inert]")).toHaveLength(0);
});

test("arrows go from card to card, and stay at the ends", () => {
  show("command");
  const cards = [...find(".list").children];
  find(".list").focus();
  const at = (key: string) => {
    document.activeElement?.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
    return cards.indexOf(document.activeElement as Element);
  };
  expect(["ArrowUp", "ArrowUp", "ArrowUp", "ArrowUp", "ArrowDown"].map(at)).toEqual([2, 1, 0, 0, 1]);
});
