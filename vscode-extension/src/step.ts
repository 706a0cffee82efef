import type { Approval, SessionState } from "./protocol";

/** The edits that wait together for an answer: those of one step. */
export interface Step {
  /** As they are asked now. Each is answered for itself. */
  approvals: Approval[];
  files: number;
}

/** Undefined where at most one proposal waits: there its own question says all. Commands are never among them. */
export function standingStep({ approvals, proposals }: SessionState): Step | undefined {
  const edits = approvals.filter(({ proposalId }) => proposalId !== null);
  const asked = proposals.filter(({ proposalId }) => edits.some((each) => each.proposalId === proposalId));
  if (asked.length < 2) return undefined;
  const paths = asked.flatMap(({ files }) => files.map(({ path }) => path));
  return { approvals: edits, files: new Set(paths).size };
}

/** What says yes to all of it. */
export function acceptStep({ files }: Step): string {
  return `Accept all of this step (${files} files)`;
}
