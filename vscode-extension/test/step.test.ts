import { expect, test } from "vitest";
import { acceptStep, standingStep } from "../src/sessions/step";
import { file, proposal } from "./edits";
import { APPROVAL, state } from "./states";

const PROPOSALS = [
  proposal("p", "t", [file("/w/a", "", []), file("/w/b", "", [])]),
  proposal("q", "t", [file("/w/a", "", [])]),
  proposal("settled", "t", [file("/w/c", "", [])]),
];

function asked(toolCallId: string, proposalId: string | null) {
  return { ...APPROVAL, toolCallId, proposalId, digest: `d-${toolCallId}` };
}

test("edits of one step are accepted together, and no command with them", () => {
  const approvals = [asked("run", null), asked("c", "p"), asked("d", "q")];
  const step = standingStep(state({ approvals, proposals: PROPOSALS }));
  expect(step?.approvals).toEqual(approvals.slice(1));
  expect(step && acceptStep(step)).toBe("Accept all of this step (2 files)");
});

test.each([
  ["one edit beside a command", [asked("run", null), asked("c", "p")]],
  ["two calls that wrote the same", [asked("c", "p"), asked("d", "p")]],
  ["nothing", []],
])("there is no step to accept where what waits is %s", (_, approvals) => {
  expect(standingStep(state({ approvals, proposals: PROPOSALS }))).toBeUndefined();
});
