import { beforeEach, expect, test, vi } from "vitest";
import type { Daemon } from "../src/daemon/client";
import type { Notification } from "../src/chat/chat";
import type { OpenChats } from "../src/chat/openChats";
import { reviewMemory } from "../src/sessions/memory";
import type { RememberedFact } from "../src/protocol";
import { state } from "./states";
import { picks } from "./vscode";

const FACTS: RememberedFact[] = [
  { number: 1, scope: "user", path: "/c/AGENTS.md", text: "Use tabs." },
  { number: 2, scope: "project", path: "/w/AGENTS.md", text: "Run make.\nNow" },
];

beforeEach(() => picks.splice(0));

function at(facts: RememberedFact[]) {
  const asked: [string, unknown][] = [];
  const told: string[] = [];
  const view = { state: { ...state({}), sessionId: "s" }, tell: ({ text }: Notification) => told.push(text) };
  const daemon = {
    request: async (method: string, params: unknown) => {
      asked.push([method, params]);
      return method.endsWith("list") ? { facts, files: [], summary: "Nothing yet." } : { summary: "Struck." };
    },
  };
  const done = reviewMemory(view as unknown as OpenChats, daemon as unknown as Daemon);
  return { done, asked, told };
}

test("the chosen fact is struck, and that is said", async () => {
  const { done, asked, told } = at(FACTS);
  await vi.waitFor(() => expect(picks.length).toBe(1));
  const [pick] = picks;
  expect(pick?.items.map(({ label }) => label.includes("\n"))).toEqual([false, false]);
  pick?.choose(1);
  await done;
  expect(asked.at(-1)).toEqual([
    "amanu/memory/strike",
    { sessionId: "s", number: 2, text: "Run make.\nNow" },
  ]);
  expect(told).toEqual(["Struck."]);
});

test("nothing is remembered", async () => {
  const { done, asked, told } = at([]);
  await done;
  expect([asked.length, told]).toEqual([1, ["Nothing yet."]]);
});
