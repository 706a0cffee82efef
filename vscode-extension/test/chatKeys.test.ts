import { beforeEach, expect, test } from "vitest";
import type { Memento } from "vscode";
import { offerChatKeys } from "../src/chat/keys";
import { notifications, settings } from "./vscode";

const kept = new Map<string, unknown>();
const memory: Pick<Memento, "get" | "update"> = {
  get: <T>(name: string, or?: T) => (kept.get(name) as T) ?? or,
  update: async (name: string, value: unknown) => void kept.set(name, value),
};

beforeEach(() => {
  kept.clear();
  notifications.splice(0);
  for (const name of Object.keys(settings)) delete settings[name];
});

test.each<[string, string | undefined, unknown]>([
  ["the user wants them", "Use for Amanu", true],
  ["the user does not", "Not Now", undefined],
  ["the question is closed", undefined, undefined],
])("the keys of VS Code's chat are asked for once: %s", async (_, answer, expected) => {
  const offered = offerChatKeys(memory);
  await Promise.resolve();
  expect(notifications).toHaveLength(1);
  notifications[0]?.press(answer);
  await offered;
  expect(settings["takesChatKeys"]).toBe(expected);
  await offerChatKeys(memory);
  expect(notifications).toHaveLength(1);
});

test.each([{ disableAIFeatures: true }, { takesChatKeys: false }, { takesChatKeys: true }])(
  "nothing is asked with %o",
  async (set) => {
    Object.assign(settings, set);
    await offerChatKeys(memory);
    expect(notifications).toEqual([]);
  },
);
