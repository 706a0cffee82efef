import { agentOf, type Folded } from "../../sessions/fold";
import type { Approval, Item, Notice, Proposal, SessionState } from "../../protocol";
import type { ToHost, ToView } from "../messages";
import type { Row } from "./rows";

/** What a card may know and do: the session as it is, and a way to tell the extension. */
export interface ChatView {
  readonly session: Folded;
  /** The name of this client, as decisions tell it. */
  readonly client: string;
  post(message: ToHost): void;
}

/** One item, drawn, or a row of several. `update` touches only what differs. */
export interface Card {
  readonly element: HTMLElement;
  /** The row it draws, where that is of several. */
  readonly row?: Row;
  update(item: Item): void;
  /** What the daemon says of a rule that is edited on it. */
  checked?(message: Extract<ToView, { type: "rule" }>): void;
}

export function approvalOf(view: ChatView, toolCallId: string): Approval | undefined {
  return view.session.state.approvals.find((each) => each.toolCallId === toolCallId);
}

/**
 * The call on whose card a proposal is decided: the last that waits, else the last of all. Several calls of a step may
 * have written one proposal; its hunks are drawn once.
 */
export function deciding(view: ChatView, proposal: Proposal): string | undefined {
  const waiting = proposal.toolCallIds.filter((id) => approvalOf(view, id) !== undefined);
  return waiting.at(-1) ?? proposal.toolCallIds.at(-1);
}

export function proposalOf(view: ChatView, proposalId: string | null): Proposal | undefined {
  if (proposalId === null) return undefined;
  return view.session.state.proposals.find((each) => each.proposalId === proposalId);
}

/** Whether there is something to go back to: the turn proposed edits or ran commands. */
export function hasCheckpoint({ items, proposals }: SessionState, turnId: string): boolean {
  return (
    proposals.some((proposal) => proposal.turnId === turnId) ||
    items.some((item) => item.kind === "toolCall" && item.turnId === turnId && item.effect === "run")
  );
}

/** The last thing said, when the daemon says it of the context. */
export function lastNotice({ items }: SessionState): Notice | undefined {
  const last = items.findLast((item) => agentOf(item) === null);
  return last?.kind === "notice" ? last : undefined;
}

/** A summary is being made at this moment. */
export function makingRoom(state: SessionState): boolean {
  return state.turn !== null && lastNotice(state)?.code === "compacting";
}
