// @vitest-environment happy-dom
import axe from "axe-core";
import { beforeAll, expect, test, vi } from "vitest";
import type { ToView } from "../src/chat/messages";
import { FACES, type Step } from "./faces";

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
  window.dispatchEvent(new MessageEvent("message", { data, origin: window.origin }));
}

function take(step: Step): void {
  if (step.type === "press") document.querySelector<HTMLElement>(step.what)!.click();
  else if (step.type === "write") {
    const box = document.querySelector<HTMLTextAreaElement>(".composer textarea")!;
    box.value = step.text;
    box.dispatchEvent(new Event("input"));
  } else say(step);
}

/** What axe finds wrong by WCAG. Colours are not drawn here; buttons in a summary are good HTML, and Chromium tells a
 * screen reader of them. */
async function violations(): Promise<string[]> {
  const { violations } = await axe.run(document.body, {
    runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"],
    rules: { "color-contrast": { enabled: false }, "nested-interactive": { enabled: false } },
    resultTypes: ["violations"],
  });
  return violations.flatMap(({ id, nodes }) => nodes.map(({ html }) => `${id}: ${html.slice(0, 200)}`));
}

test.each(Object.entries(FACES))("a screen reader can tell what is there: %s", async (_, steps) => {
  for (const step of steps) take(step);
  expect(await violations()).toEqual([]);
});
