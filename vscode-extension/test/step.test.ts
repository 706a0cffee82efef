// @vitest-environment happy-dom
import { expect, test } from "vitest";
import type { ToHost } from "../src/chat/messages";
import { Standing } from "../src/chat/view/standing";
import { Folded } from "../src/fold";
import { standingStep } from "../src/step";
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

test("edits of one step are accepted together, each as it was asked, and no command with them", () => {
  const approvals = [asked("run", null), asked("c", "p"), asked("d", "q")];
  const posted: ToHost[] = [];
  const session = new Folded(state({ approvals, proposals: PROPOSALS }));
  const standing = new Standing(
    { session, client: "here", post: (message) => posted.push(message) },
    () => undefined,
    () => undefined,
    (modelId) => modelId,
  );
  standing.update();
  const buttons = [...standing.element.querySelectorAll<HTMLButtonElement>(".waiting button")];
  expect(buttons.map((each) => each.textContent)).toEqual(["Show", "Accept 2 files"]);
  buttons.at(-1)?.click();
  const yes = { type: "resolve", decision: "allow", scope: "once", rule: null, reason: null, grants: [] };
  expect(posted).toEqual(["c", "d"].map((each) => ({ ...yes, toolCallId: each, digest: `d-${each}` })));
});

test.each([
  ["one edit beside a command", [asked("run", null), asked("c", "p")]],
  ["two calls that wrote the same", [asked("c", "p"), asked("d", "p")]],
  ["nothing", []],
])("there is no step to accept where what waits is %s", (_, approvals) => {
  expect(standingStep(state({ approvals, proposals: PROPOSALS }))).toBeUndefined();
});
