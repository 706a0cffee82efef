import { expect, test, vi } from "vitest";
import { innermost } from "../src/inline/actions";
import { progressOf, type Progress } from "../src/inline/inline";
import type { SessionState, ToolCall } from "../src/protocol";
import { hunk } from "./edits";
import { state } from "./states";

vi.mock("vscode-languageclient/node", () => ({})); // wants the real VS Code

const call = (output: string, turnId = "t1") => ({ kind: "toolCall", turnId, output }) as ToolCall;
const running = { turnId: "t1", modelId: "m", steps: 1, routed: null };
const ended = (reason: "completed" | "failed" | "cancelled", message = "") =>
  ({ kind: "turnEnded", turnId: "t1", reason, message, canContinue: false, usage: null }) as const;
const proposal = (open: boolean) =>
  ({
    proposalId: "p1",
    turnId: "t1",
    files: [{ hunks: [hunk("h1", 1, "a\n", "b\n", open ? "pending" : "applied")] }],
  }) as never;

test.each<[string, Partial<SessionState>, Progress | undefined]>([
  ["another turn", { turn: { ...running, turnId: "t0" } }, undefined],
  ["nothing written yet", { turn: running }, { kind: "writing", written: "" }],
  [
    "a live edit, without its signs",
    { turn: running, items: [call("+x\n", "t0"), call("+a\n++b\n+\n")] },
    { kind: "writing", written: "a\n+b\n\n" },
  ],
  [
    "a proposal that waits",
    { turn: running, proposals: [proposal(true)] },
    { kind: "proposed", proposalId: "p1" },
  ],
  [
    "one that a rule applied",
    { lastTurn: ended("completed"), proposals: [proposal(false)] },
    { kind: "applied" },
  ],
  ["no edit", { lastTurn: ended("failed", "Why.") }, { kind: "failed", message: "Why." }],
  ["stopped", { lastTurn: ended("cancelled") }, { kind: "cancelled" }],
])("how a rewrite stands: %s", (_, changes, expected) =>
  expect(progressOf(state(changes), "t1")).toEqual(expected),
);

const range = (start: number, end: number) => ({ start: { line: start }, end: { line: end } });
const symbol = (start: number, end: number, ...children: unknown[]) =>
  ({ range: range(start, end), children }) as never;

test.each([
  ["the function it is in", 4, range(3, 6)],
  ["the class between its functions", 8, range(1, 9)],
  ["no symbol", 20, undefined],
  ["a symbol of one line", 12, undefined],
])("what is documented at the cursor: %s", (_, line, expected) =>
  expect(innermost([symbol(1, 9, symbol(3, 6), symbol(7, 7)), symbol(12, 12)], line)).toEqual(expected),
);
