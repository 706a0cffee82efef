// @vitest-environment happy-dom
import { expect, test } from "vitest";
import type { ToHost } from "../src/chat/messages";
import { Pickers } from "../src/chat/view/pickers";
import { Folded } from "../src/fold";
import type { Effort } from "../src/protocol";
import { model, state } from "./states";

function pick(count: number, modelId: string, effort: Effort | null = null) {
  const posted: ToHost[] = [];
  const desk = {
    session: new Folded(state({ modelId, effort })),
    client: "here",
    post: (m: ToHost) => posted.push(m),
  };
  const pickers = new Pickers(desk);
  pickers.offer(
    Array.from({ length: count }, (_, at) => model(`openrouter:m${at}`)),
    null,
  );
  const choose = (value: string) => {
    pickers.model.value = value;
    pickers.model.dispatchEvent(new Event("change"));
  };
  return { posted, pickers, choose, drawn: [...pickers.model.options].map(({ value }) => value) };
}

test("a few models are all drawn", () => {
  const { drawn, choose, posted } = pick(3, "openrouter:m1");
  expect(drawn).toEqual(["openrouter:m0", "openrouter:m1", "openrouter:m2"]);
  choose("openrouter:m2");
  expect(posted).toEqual([{ type: "setModel", modelId: "openrouter:m2" }]);
});

test("of hundreds the first are drawn, the one in use, and a way to the others", () => {
  const { drawn, choose, posted, pickers } = pick(400, "openrouter:m399");
  expect(drawn).toHaveLength(62);
  expect(drawn.slice(-2)).toEqual(["openrouter:m399", "more"]);
  choose("more");
  expect(posted).toEqual([{ type: "action", action: "selectModel" }]);
  expect(pickers.model.value).toBe("openrouter:m399");
});

test("the effort is told beside the price", () => {
  expect(pick(3, "openrouter:m1").pickers.model.title).not.toContain("effort");
  expect(pick(3, "openrouter:m1", "high").pickers.model.title).toMatch(
    /^openrouter:m1: .+ · thinking effort high$/,
  );
});
