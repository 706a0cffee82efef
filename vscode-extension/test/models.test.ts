import { expect, test } from "vitest";
import { DEFAULT, detail, EFFORT, KEY, type ModelItem, modelItems } from "../src/models/items";
import type { ModelInfo } from "../src/protocol";
import { model } from "./states";

const priced = { inputPrice: 2, outputPrice: 8, factsFrom: "OpenAI, 24 November 2026" };
const PRICE = "1 k context · $2 in, $8 out, per million tokens · OpenAI, 24 November 2026";

test.each<[Partial<ModelInfo>, string]>([
  [priced, PRICE],
  [{ factsFrom: "assumed" }, "1 k context · price not known · assumed"],
  [{}, "1 k context · price not known"],
  [{ ...priced, successor: "openai:new" }, `${PRICE} · deprecated, use openai:new`],
  [{ ...priced, retires: "2026-12-11" }, `${PRICE} · shut down on 2026-12-11`],
  [{ ...priced, available: false, unavailable: "Run: amanu auth set mine" }, "Use Amanu: Set API Key…"],
])("what is said of a model: %j", (given, expected) => expect(detail(model("m", given))).toBe(expected));

const LIST = {
  models: [
    model("anthropic:opus", { efforts: ["low", "high"] }),
    model("anthropic:sonnet", { efforts: [] }),
    model("gemini:flash", {}),
    model("openai:gpt", {
      available: false,
      unavailable: "Set OPENAI_API_KEY, or run: amanu auth set openai",
    }),
    model("ollama:qwen", { available: false, unavailable: "Run: amanu auth local ollama" }),
  ],
  defaultModelId: "gemini:flash",
  vendors: { anthropic: "Anthropic", gemini: "Google Gemini", openai: "OpenAI" },
};

function rows(items: ModelItem[]): string[] {
  return items.map(({ label, description }) => (description === undefined ? `— ${label}` : description));
}

test("models are listed by vendor, what is in use and the default on top, what lacks something below", () => {
  const items = modelItems(LIST, "anthropic:sonnet", "high");
  expect(rows(items)).toEqual([
    "— In use",
    "anthropic:sonnet · in use, high effort",
    "gemini:flash · default",
    "— Anthropic",
    "anthropic:opus",
    "— OpenAI (not available)",
    "openai:gpt",
    "— ollama (not available)",
    "ollama:qwen",
  ]);
  expect(items.flatMap(({ obstacle }) => obstacle ?? [])).toEqual(["amanu.setKey", "amanu.allowLocal"]);
});

test("of each family the newest model is first", () => {
  const names = ["Opus 4.5", "Opus 4.10", "Opus 5", "Sonnet 4.5", "Sonnet 5.5"];
  const models = names.map((name) => model(`anthropic:${name}`, { name }));
  expect(
    modelItems({ ...LIST, models }, "", null).flatMap((item) => (item.model ? [item.label] : [])),
  ).toEqual(["Opus 5", "Opus 4.10", "Opus 4.5", "Sonnet 5.5", "Sonnet 4.5"]);
});

test("models that other extensions give VS Code are listed by who gives them", () => {
  const models = [model("vscode:copilot/gpt-5"), model("vscode:acme/a/b"), model("vscode:copilot/claude")];
  const vendors = { "vscode:copilot": "GitHub Copilot", "vscode:acme": "Acme" };
  expect(rows(modelItems({ models, defaultModelId: null, vendors }, "", null))).toEqual([
    "— GitHub Copilot",
    "vscode:copilot/gpt-5",
    "vscode:copilot/claude",
    "— Acme",
    "vscode:acme/a/b",
  ]);
});

test("a session that names no model has the default", () => {
  expect(rows(modelItems(LIST, "", null)).slice(0, 2)).toEqual([
    "— In use",
    "gemini:flash · in use · default",
  ]);
});

test("a row has the buttons for what can be done with its model", () => {
  const buttons = Object.fromEntries(
    modelItems(LIST, "", null).map(({ model: each, buttons }) => [each?.modelId, buttons]),
  );
  expect(buttons["anthropic:opus"]).toEqual([EFFORT, DEFAULT]);
  expect(buttons["gemini:flash"]).toEqual([]);
  expect(buttons["openai:gpt"]).toEqual([KEY]);
  expect(buttons["ollama:qwen"]).toEqual([]);
});
