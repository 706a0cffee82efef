import { changesOf, extent } from "../review/changes";
import type { Approval, SessionState } from "../protocol";

/** The edits that wait together for an answer: those of one step, of one agent. */
export interface Step {
  /** As they are asked now, one for each proposal: an answer is about all of it. */
  approvals: Approval[];
  /** The number of files the edits are in, in words. */
  extent: string;
}

/** Undefined where at most one proposal waits: there its own question says all. Commands are never among them. */
export function standingStep({ approvals, proposals }: SessionState): Step | undefined {
  const first = approvals.find(({ proposalId }) => proposalId !== null);
  const edits = approvals.filter(
    ({ proposalId, agentId }) => proposalId !== null && agentId === first?.agentId,
  );
  const asked = proposals.filter(({ proposalId }) => edits.some((each) => each.proposalId === proposalId));
  if (asked.length < 2) return undefined;
  const oldest = edits.filter(
    ({ proposalId }, at) => edits.findIndex((each) => each.proposalId === proposalId) === at,
  );
  return { approvals: oldest, extent: extent(asked.flatMap(changesOf)) };
}

/** What says yes to all of it. */
export function acceptStep({ extent }: Step): string {
  return `Accept all of this step (${extent})`;
}
