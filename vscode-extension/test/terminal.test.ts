import { beforeEach, expect, test } from "vitest";
import { withTerminal } from "../src/daemon/terminal";
import { commands, env, window } from "./vscode";

let clipboard = "";
/** What the commands of the terminal copy. */
let copies: Record<string, string> = {};
let asked: string[] = [];

beforeEach(() => {
  clipboard = "mine";
  copies = {};
  asked = [];
  Object.assign(window, { activeTerminal: {} });
  Object.assign(env, {
    clipboard: {
      readText: async () => clipboard,
      writeText: async (text: string) => void (clipboard = text),
    },
  });
  Object.assign(commands, {
    executeCommand: async (name: string) => {
      asked.push(name);
      clipboard = copies[name.replace("workbench.action.terminal.", "")] ?? clipboard;
    },
  });
});

const output = (text: string) => ({
  kind: "selection",
  path: "@terminal",
  lines: { start: 0, end: text.split("\n").length },
  text,
});
const LAST = "copyLastCommandAndLastCommandOutput";

test("the last command and its output go along when they are mentioned, and the clipboard stays", async () => {
  copies = { [LAST]: "make\nan error\n" };
  expect(await withTerminal("why @terminal?", [])).toEqual([output("make\nan error")]);
  expect(clipboard).toBe("mine");
});

test("what is selected goes along where the shell does not tell what was run", async () => {
  copies = { copySelection: "an error" };
  expect(await withTerminal("@terminal", [])).toEqual([output("an error")]);
});

test("VS Code complains of no selection, so none is asked for where there is a command", async () => {
  copies = { [LAST]: "make\nan error\n" };
  await withTerminal("@terminal", []);
  expect(asked).not.toContain("workbench.action.terminal.copySelection");
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
