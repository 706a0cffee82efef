import { expect, test } from "vitest";
import { CallTerminal } from "../src/sessions/callTerminals";
import type { ToolCall } from "../src/protocol";
import { CALL } from "./states";

const RUNNING: ToolCall = { ...CALL, state: "executing", arguments: { command: "make all" } };

function terminal(call: ToolCall) {
  const made = { shown: "", stopped: 0 };
  const pty = new CallTerminal(call, () => (made.stopped += 1));
  pty.onDidWrite((text) => (made.shown += text));
  return { pty, made };
}

test("it shows the command, what it has printed, and what comes", () => {
  const { pty, made } = terminal({ ...RUNNING, output: "one\n" });
  pty.update({ ...RUNNING, output: "one\ntwo\n" });
  expect(made.shown).toBe(""); // nothing before it is open
  pty.open();
  expect(made.shown).toMatch(/^\$ make all\r\n\[.*Ctrl\+C stops the turn.*\]\r\none\r\ntwo\r\n$/);
  const before = made.shown;
  pty.update({ ...RUNNING, output: "one\ntwo\nthree\n" });
  pty.update({ ...RUNNING, output: "one\ntwo\nthree\nExit code: 0", state: "succeeded" });
  expect(made.shown.slice(before.length)).toBe("three\r\nExit code: 0\r\n[succeeded]\r\n");
  pty.update({ ...RUNNING, output: "other", state: "succeeded" });
  expect(made.shown.endsWith("[succeeded]\r\n")).toBe(true);
});

test("an end that is told in short takes nothing back", () => {
  const { pty, made } = terminal({ ...RUNNING, output: "a long output\n" });
  pty.open();
  pty.update({ ...RUNNING, output: "a [… cut …] output", state: "failed" });
  expect(made.shown).toContain("a long output\r\n\r\n[failed]");
  expect(made.shown).not.toContain("cut");
});

test("Ctrl+C stops it while it runs; no other key does anything", () => {
  const { pty, made } = terminal(RUNNING);
  pty.open();
  pty.handleInput("ls\r");
  expect(made.stopped).toBe(0);
  pty.handleInput("\x03");
  pty.update({ ...RUNNING, state: "cancelled" });
  pty.handleInput("\x03");
  expect(made.stopped).toBe(1);
});

test("what it prints cannot steer the terminal", () => {
  const { pty, made } = terminal({ ...RUNNING, output: "\x1b]0;title\x07\u202e" });
  pty.open();
  // eslint-disable-next-line no-control-regex
  expect(made.shown).not.toMatch(/[\x07\x1b\u202e]/);
});
