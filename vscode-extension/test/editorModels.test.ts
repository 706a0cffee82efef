import { beforeEach, expect, test, vi } from "vitest";
import * as vscode from "vscode";
import type { Connection } from "../src/daemon/client";
import { EditorModels } from "../src/models/editorModels";
import type { ModelRunParams } from "../src/protocol";
import * as editor from "./vscode";

vi.mock("vscode-languageclient/node", () => ({})); // wants the real VS Code

const TOKEN = {} as vscode.CancellationToken;
const RUN: ModelRunParams = { runId: "r", vendor: "copilot", id: "gpt-5", messages: [], tools: [] };

/** A model whose reply is made of these chunks, the last of which may be an error. */
function model(id: string, chunks: unknown[] = []) {
  const asked: unknown[][] = [];
  async function* stream() {
    for (const chunk of chunks) {
      if (chunk instanceof Error) throw chunk;
      yield chunk;
    }
  }
  const sendRequest = async (...given: unknown[]) => {
    asked.push(given);
    if (chunks[0] instanceof Error) throw chunks[0];
    return { stream: stream() };
  };
  return { vendor: "copilot", id, name: id.toUpperCase(), maxInputTokens: 1000, sendRequest, asked };
}

function made() {
  const requests: unknown[] = [];
  const parts: unknown[] = [];
  const warnings: string[] = [];
  const connected = new editor.EventEmitter<Connection>();
  const daemon = {
    connection: { status: "ready" } as Connection,
    onConnection: connected.event,
    request: async (...given: unknown[]) => void requests.push(given),
    notify: async (_: string, { part }: { part: unknown }) => {
      await Promise.resolve();
      parts.push(part);
    },
  };
  let refreshed = 0;
  const models = new EditorModels(
    daemon as unknown as ConstructorParameters<typeof EditorModels>[0],
    async () => void refreshed++,
    { warn: (words: string) => void warnings.push(words) },
  );
  return { models, requests, parts, warnings, connected, refreshed: () => refreshed };
}

const settled = () => new Promise((resolve) => setTimeout(resolve));

beforeEach(() => {
  editor.lm.models = [];
  editor.extensions.all = [];
});

test("the models are offered on each connection, and when there are others", async () => {
  const { requests, connected, refreshed } = made();
  connected.fire({ status: "ready" });
  await settled();
  expect(requests).toEqual([]); // there are none, as the daemon knows
  editor.lm.models = [model("gpt-5")];
  editor.lm.changed.fire();
  await settled();
  editor.lm.changed.fire(); // the same again
  await settled();
  const offer = { vendor: "copilot", vendorTitle: "GitHub Copilot", id: "gpt-5", name: "GPT-5" };
  const expected = ["amanu/model/offer", { models: [{ ...offer, maxInputTokens: 1000 }] }];
  expect([requests, refreshed()]).toEqual([[expected], 1]);
  connected.fire({ status: "starting" });
  connected.fire({ status: "ready" });
  await settled();
  expect(requests).toEqual([expected, expected]);
  editor.lm.models = [];
  editor.lm.changed.fire();
  await settled();
  expect(requests.at(-1)).toEqual(["amanu/model/offer", { models: [] }]);
});

test("a vendor has the name that its extension gives it", async () => {
  const { models, requests } = made();
  const languageModelChatProviders = [{ vendor: "acme", displayName: "Acme Models" }];
  editor.extensions.all = [
    { packageJSON: {} },
    { packageJSON: { contributes: { languageModelChatProviders } } },
  ];
  editor.lm.models = [
    { ...model("a"), vendor: "acme" },
    { ...model("b"), vendor: "other" },
  ];
  await models.offer();
  expect(JSON.stringify(requests)).toMatch(/"vendorTitle":"Acme Models".*"vendorTitle":"other"/);
});

test("a request is put in VS Code's words, and the parts of its reply come before the answer", async () => {
  const { models, parts } = made();
  const chunks = [
    new editor.LanguageModelTextPart("I "),
    { value: "a thought, which VS Code has no public name for" },
    new editor.LanguageModelTextPart("look."),
    new editor.LanguageModelToolCallPart("c1", "read_file", { path: "a" }),
  ];
  const gpt = model("gpt-5", chunks);
  editor.lm.models = [gpt];
  await models.offer();
  const messages: ModelRunParams["messages"] = [
    { role: "user", parts: [{ kind: "text", text: "You help." }] },
    { role: "user", parts: [{ kind: "image", mediaType: "image/png", data: "AQI=" }] },
    { role: "assistant", parts: [{ kind: "call", callId: "c0", tool: "grep", arguments: { pattern: "x" } }] },
    { role: "user", parts: [{ kind: "result", callId: "c0", text: "nothing" }] },
  ];
  const tools = [{ name: "grep", description: "Search.", parameters: { type: "object" } }];
  expect(await models.run({ ...RUN, messages, tools }, TOKEN)).toEqual({ error: null, message: "" });
  expect(parts).toEqual([
    { kind: "text", text: "I " },
    { kind: "text", text: "look." },
    { kind: "call", callId: "c1", tool: "read_file", arguments: { path: "a" } },
  ]);
  const [sent, options, token] = gpt.asked[0] as [unknown, vscode.LanguageModelChatRequestOptions, unknown];
  expect(sent).toEqual([
    { role: 1, content: [{ value: "You help." }] },
    { role: 1, content: [{ data: [1, 2], mimeType: "image/png" }] },
    { role: 2, content: [{ callId: "c0", name: "grep", input: { pattern: "x" } }] },
    { role: 1, content: [{ callId: "c0", content: [{ value: "nothing" }] }] },
  ]);
  expect(options.tools).toEqual([{ name: "grep", description: "Search.", inputSchema: { type: "object" } }]);
  expect([options.justification, token]).toEqual([expect.stringContaining("Amanu"), TOKEN]);
});

test.each<[string, unknown[], object]>([
  [
    "not allowed",
    [new editor.LanguageModelError("No.", "NoPermissions")],
    { error: "notAllowed", message: "No." },
  ],
  [
    "a quota",
    [new editor.LanguageModelError("Used up.", "Blocked")],
    { error: "blocked", message: "Used up." },
  ],
  ["gone", [new editor.LanguageModelError("Gone.", "NotFound")], { error: "notFound", message: "Gone." }],
  [
    "in the middle",
    [new editor.LanguageModelTextPart("Half"), new Error("Broke", { cause: new Error("because.") })],
    { error: "other", message: "Broke because." },
  ],
])("what goes wrong is told: %s", async (_, chunks, expected) => {
  const { models } = made();
  editor.lm.models = [model("gpt-5", chunks)];
  await models.offer();
  expect(await models.run(RUN, TOKEN)).toEqual(expected);
});

test("a model that VS Code has no more is not asked", async () => {
  expect(await made().models.run(RUN, TOKEN)).toEqual({ error: "notFound", message: "" });
});
