import { beforeEach, expect, test } from "vitest";
import { withTerminal } from "../src/terminal";
import { commands, env, window } from "./vscode";

let clipboard = "";
/** What the commands of the terminal copy. */
let copies: Record<string, string> = {};

beforeEach(() => {
  clipboard = "mine";
  copies = {};
  Object.assign(window, { activeTerminal: {} });
  Object.assign(env, {
    clipboard: {
      readText: async () => clipboard,
      writeText: async (text: string) => void (clipboard = text),
    },
  });
  Object.assign(commands, {
    executeCommand: async (name: string) => {
      clipboard = copies[name.replace("workbench.action.terminal.", "")] ?? clipboard;
    },
  });
});

const output = (text: string) => ({
  kind: "selection",
  path: "@terminal",
  startLine: 1,
  endLine: text.split("\n").length,
  text,
});
const LAST = "copyLastCommandAndLastCommandOutput";

test("the last command and its output go along when they are mentioned, and the clipboard stays", async () => {
  copies = { [LAST]: "make\nan error\n" };
  expect(await withTerminal("why @terminal?", [])).toEqual([output("make\nan error")]);
  expect(clipboard).toBe("mine");
});

test("what is selected goes before it", async () => {
  copies = { [LAST]: "make\nan error\n", copySelection: "an error" };
  expect(await withTerminal("@terminal", [])).toEqual([output("an error")]);
});

test("of much the end is sent", async () => {
  copies = { [LAST]: `${"x".repeat(50_000)}end` };
  const [sent] = (await withTerminal("@terminal", [])) ?? [];
  expect(sent?.kind === "selection" && sent.text.length).toBe(20_000);
  expect(sent?.kind === "selection" && sent.text.endsWith("xend")).toBe(true);
});

test.each(["me@terminal.org", "@terminal/a", "\\@terminal", "a terminal"])(
  "the terminal is not asked where it is not mentioned: %s",
  async (prompt) => {
    copies = { [LAST]: "make" };
    expect(await withTerminal(prompt, [])).toEqual([]);
  },
);

test("that there is nothing to send is known", async () => {
  expect(await withTerminal("@terminal", [])).toBeUndefined();
  Object.assign(window, { activeTerminal: undefined });
  copies = { [LAST]: "make" };
  expect(await withTerminal("@terminal", [])).toBeUndefined();
});
