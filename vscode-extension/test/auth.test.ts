import { expect, test, vi } from "vitest";
import { opened } from "../src/models/auth";
import type { Daemon } from "../src/daemon/client";
import type { ModelInfo } from "../src/protocol";
import { state } from "./states";

vi.mock("vscode-languageclient/node", () => ({})); // wants the real VS Code

const MODELS = [
  ["anthropic:opus", true],
  ["anthropic:sonnet", true],
  ["gemini:flash", true],
  ["gemini:pro", true],
  ["openai:gpt", false],
].map(([modelId, available]) => ({ modelId, name: modelId, available })) as unknown as ModelInfo[];

test.each<[string, string, string, string | undefined]>([
  ["after the tour, the vendor's default", "scripted:tour", "anthropic", "anthropic:sonnet"],
  ["after the tour, of a vendor that is not the default", "scripted:tour", "gemini", "gemini:flash"],
  ["where the session's model has no key", "openai:gpt", "gemini", "gemini:flash"],
  ["not where the session's model answers", "anthropic:opus", "gemini", undefined],
  ["not in a new session: it takes the default", "", "anthropic", undefined],
  ["not of a vendor that offers none", "scripted:tour", "mistral", undefined],
])("a key that was set selects its model: %s", async (_, modelId, vendor, expected) => {
  const request = (async () => ({
    models: MODELS,
    defaultModelId: "anthropic:sonnet",
  })) as unknown as Daemon["request"];
  const view = { scripted: modelId.startsWith("scripted:"), state: state({ modelId }) };
  expect((await opened({ request }, view, vendor))?.modelId).toBe(expected);
});
