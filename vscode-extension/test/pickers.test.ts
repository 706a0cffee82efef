// @vitest-environment happy-dom
import { expect, test } from "vitest";
import type { ToHost } from "../src/chat/messages";
import { Pickers } from "../src/chat/view/pickers";
import { Folded } from "../src/sessions/fold";
import type { Effort, ServiceTier } from "../src/protocol";
import { model, state } from "./states";

function pick(modelId: string, effort: Effort | null = null, serviceTier: ServiceTier | null = null) {
  const posted: ToHost[] = [];
  const view = {
    session: new Folded(state({ modelId, effort, serviceTier })),
    client: "here",
    post: (m: ToHost) => posted.push(m),
  };
  const pickers = new Pickers(view);
  const lacking = { available: false, unavailable: "Set X_API_KEY, or run: amanu auth set anthropic" };
  pickers.offer(
    [
      model("openrouter:a", { name: "A" }),
      model("openrouter:b", { name: "B" }),
      model("anthropic:c", lacking),
    ],
    "openrouter:b",
  );
  return { posted, button: pickers.model };
}

test.each<[string, Effort | null, string]>([
  ["openrouter:a", null, "A"],
  ["openrouter:a", "high", "A · high"],
  ["", null, "B"],
  ["openrouter:gone", null, "openrouter:gone"],
])("the button names the model of %j with effort %j", (modelId, effort, text) => {
  expect(pick(modelId, effort).button.textContent).toBe(text);
});

test.each<[ServiceTier | null, string]>([
  [null, "A · low"],
  ["standard", "A · low"],
  ["fast", "A · low · fast"],
  ["flex", "A · low · flex"],
])("the button says the service tier %j", (tier, text) => {
  const { button } = pick("openrouter:a", "low", tier);
  expect(button.textContent).toBe(text);
  expect(button.title.includes("at another price")).toBe(text.split(" · ").length === 3);
});

test("it opens VS Code's own list", () => {
  const { button, posted } = pick("openrouter:a");
  button.click();
  expect(posted).toEqual([{ type: "action", action: "selectModel" }]);
});

test("the price is in its title, or what the model lacks", () => {
  expect(pick("openrouter:a", "high").button.title).toMatch(/^openrouter:a: .+ · thinking effort high$/);
  const { button } = pick("anthropic:c");
  expect(button.title).toBe("anthropic:c: Use Amanu: Set API Key…");
  expect(button.classList.contains("lacking")).toBe(true);
});

test.each([false, true])("the mode of a sub-agent at work (%s) is not offered", (atWork) => {
  const session = new Folded(state({ atWork, agent: "general", parentSessionId: "p", mode: "plan" }));
  const pickers = new Pickers({ session, client: "here", post: () => {} });
  pickers.update();
  expect(pickers.mode.disabled).toBe(atWork);
  expect(pickers.mode.value).toBe("plan");
  expect(pickers.mode.title.endsWith("the session it works for. Change it there.")).toBe(atWork);
});
