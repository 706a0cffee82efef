import { globSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { advice, advised } from "../src/daemon/advice";

/** A command of the terminal that a user of VS Code may not have. */
const TERMINAL = /\bamanu (auth|logs|trust|demo|doctor|audit|policy|sessions|chat|run|mcp|models|hooks)\b/;

test.each([
  [
    "openai does not accept the key. `amanu auth status` says which it is.",
    "key. Amanu: Set API Key… says which",
  ],
  [
    "No model can be used yet. Set ANTHROPIC_API_KEY, GEMINI_API_KEY or OPENAI_API_KEY, or run `amanu auth set VENDOR`.",
    "yet. Use Amanu: Set API Key….",
  ],
  ["Set MISTRAL_API_KEY, or run: amanu auth set mistral", "Use Amanu: Set API Key…"],
  [
    "Set OPENAI_API_KEY, or run: amanu auth set openai, or run: amanu auth login openai",
    "Use Amanu: Set API Key…, or Amanu: Sign In with ChatGPT",
  ],
  ["Your ChatGPT sign-in has ended. Run: amanu auth login openai", "Use Amanu: Sign In with ChatGPT"],
  [
    "or use an API key: `amanu auth logout openai`, then `amanu auth set openai`.",
    "key: Amanu: Sign Out of ChatGPT, then Amanu: Set API Key….",
  ],
  ["Run: amanu auth set my-own", "Use Amanu: Set API Key…"],
  ["on this machine, after `amanu auth local ollama`.", "after Amanu: Allow a Local Model Server…."],
  ["Run: amanu auth local ollama", "Use Amanu: Allow a Local Model Server…"],
  ["Internal error in Amanu; see `amanu logs`.", "see Amanu: Show Logs."],
  ["To see all of them, run: amanu models", "Amanu: Select Model… shows its models."],
  ["To ask for it, run: amanu models --refresh", "Amanu: Select Model… shows its models."],
  [
    "All 100 sessions are in use. Close one of them, or raise max_sessions in config.toml.",
    "use. Close one of them, or raise Maximum open sessions in Amanu: Settings.",
  ],
  ["Set x = 1, or run make.", "Set x = 1, or run make."],
])("advice names what VS Code has: %s", (said, expected) => expect(advice(said)).toContain(expected));

test("nothing the daemon says to a user here names a command of the terminal", () => {
  const files = globSync("../server/amanu/**/*.py").filter(
    (path) => !/\/(cli|client|acp|standard)\/|\/(relay|__main__|user_file|verb)\.py$/.test(path),
  );
  const said = files.flatMap((path) =>
    [...readFileSync(path, "utf8").matchAll(/^(?!\s*(?:"""|#)).*?"([^"\n]*\bamanu [a-z][^"\n]*)"/gm)]
      .map(([, text = ""]) => text.replaceAll(/\{[^}]*\}/g, "X"))
      .filter((text) => TERMINAL.test(text)),
  );
  expect(said.length).toBeGreaterThan(5);
  expect(said.map(advice).filter((text) => TERMINAL.test(text))).toEqual([]);
});

test.each([
  [
    "Set OPENAI_API_KEY, or run: amanu auth set openai, or run: amanu auth login openai",
    ["setKey", "signIn"],
  ],
  ["Your ChatGPT sign-in has ended. Run: amanu auth login openai", ["signIn"]],
  ["openai does not accept the key. `amanu auth status` says which it is.", ["setKey"]],
  ["The service is busy.", []],
])("what is advised can be pressed: %s", (said, expected) => expect(advised(advice(said))).toEqual(expected));
