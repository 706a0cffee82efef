import { expect, test, vi } from "vitest";
import { setKey } from "../src/models/auth";
import type { Daemon } from "../src/daemon/client";
import { malformed } from "../src/models/keyInput";
import type { AuthCheckResult, AuthStatus } from "../src/protocol";
import { boxes, picks } from "./vscode";

vi.mock("vscode-languageclient/node", () => ({})); // wants the real VS Code

const ANTHROPIC: AuthStatus = {
  vendor: "anthropic",
  title: "Anthropic",
  about: "Claude models",
  page: "https://keys.test",
  source: "none",
  variable: "ANTHROPIC_API_KEY",
  account: null,
};
const OPENAI: AuthStatus = { ...ANTHROPIC, vendor: "openai", title: "OpenAI", source: "file" };

test.each([
  ["sk-ant-0123", undefined],
  ["  sk-ant-0123\n", undefined],
  ["", undefined],
  ["sk-ant 0123", "A key contains no spaces. Did you copy more than the key?"],
  ["export KEY=sk", "A key contains no spaces. Did you copy more than the key?"],
  ["sk-änt", "A key contains only letters, digits and punctuation."],
])("what cannot be a key is refused while it is typed: %j", (value, why) => {
  expect(malformed(value)).toBe(why);
});

function asked(answers: Record<string, AuthCheckResult>, ...vendors: AuthStatus[]) {
  const sent: [string, unknown][] = [];
  const request = (async (method: string, params: { key?: string }) => {
    if (method === "amanu/auth/status") return { vendors };
    sent.push([method, params]);
    return answers[params.key ?? ""];
  }) as unknown as Daemon["request"];
  picks.length = 0;
  boxes.length = 0;
  const signIn = async () => ({ words: "Signed in.", vendor: "openai" });
  return { sent, done: (vendor?: string) => setKey({ request }, signIn, vendor) };
}

const settle = () => new Promise((resolve) => setTimeout(resolve, 0));

test("a key is tested before it is kept; a wrong one is refused in its box", async () => {
  const { sent, done } = asked(
    {
      wrong: { status: "refused", summary: "Anthropic does not accept this key." },
      right: { status: "accepted", summary: "Anthropic accepts the key." },
    },
    ANTHROPIC,
    OPENAI,
  );
  const outcome = done();
  await settle();
  picks[0]?.press("Anthropic");
  await settle();
  const box = boxes[0];
  box?.type("two words");
  box?.accept();
  expect(box?.validationMessage).toContain("no spaces");
  expect(sent).toEqual([]);
  box?.type("wrong");
  box?.accept();
  await settle();
  expect(box?.validationMessage).toBe("Anthropic does not accept this key.");
  expect([box?.shown, box?.enabled]).toEqual([true, true]);
  box?.type(" right ");
  box?.accept();
  expect(await outcome).toEqual({ words: "Anthropic accepts the key.", vendor: "anthropic" });
  expect(sent).toEqual([
    ["amanu/auth/check", { vendor: "anthropic", key: "wrong" }],
    ["amanu/auth/check", { vendor: "anthropic", key: "right" }],
    ["amanu/auth/set", { vendor: "anthropic", key: "right" }],
  ]);
});

test("without a network the key is kept, and that is said", async () => {
  const offline: AuthCheckResult = { status: "unreachable", summary: "Anthropic cannot be reached." };
  const { done, sent } = asked({ sk: offline }, ANTHROPIC);
  const outcome = done("anthropic");
  await settle();
  expect(picks).toEqual([]);
  boxes[0]?.type("sk");
  boxes[0]?.accept();
  expect((await outcome)?.words).toBe("The key was stored. Anthropic cannot be reached.");
  expect(sent.at(-1)?.[0]).toBe("amanu/auth/set");
});

test("a stored key can be removed, and the sign-in stands in the same list", async () => {
  const { done, sent } = asked({}, ANTHROPIC, OPENAI);
  const removed = done("openai");
  await settle();
  boxes[0]?.press("Remove the Stored Key");
  expect(await removed).toEqual({ words: "The OpenAI key was removed." });
  expect(sent).toEqual([["amanu/auth/set", { vendor: "openai", key: null }]]);

  const signedIn = done();
  await settle();
  picks[0]?.press("Sign in with ChatGPT");
  expect(await signedIn).toEqual({ words: "Signed in.", vendor: "openai" });
});
