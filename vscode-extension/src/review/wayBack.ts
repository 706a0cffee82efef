import * as vscode from "vscode";
import { lastTurn, name, scopeOf } from "./changes";
import type { OpenChats } from "../chat/openChats";
import type { Edits } from "./edits";
import type { Proposals } from "./proposals";
import type { Proposal } from "../protocol";
import { listedEntries } from "./list";
import type { Sessions } from "../sessions/sessions";

/** Undo, redo and going back, of files, turns and sessions. */
export class WayBack {
  constructor(
    private readonly sessions: Sessions,
    private readonly openChats: OpenChats,
    private readonly proposals: Proposals,
    private readonly edits: Edits,
  ) {}

  /** Undo entries of the list of changes, each in the session of its group, or the file before the user in all that
   * changed it. */
  async undoFiles(given: unknown[]): Promise<void> {
    const shown = vscode.window.activeTextEditor?.document.uri;
    const listed = listedEntries(given);
    const before = shown && this.proposals.target(shown);
    const found = listed.length > 0 ? listed.flatMap(({ targets }) => targets) : before ? [before] : [];
    for (const target of found.filter(({ row }) => row?.state === "applied"))
      await this.edits.undo(target.sessionId, scopeOf(target.proposal.proposalId, [target]));
    for (const { row, path, targets } of listed)
      if (row === undefined && targets[0] !== undefined) await this.undoFile(targets[0].sessionId, path);
    if (listed.length > 0 || shown === undefined || before?.row !== undefined) return;
    for (const sessionId of this.sessionsAt(shown.path)) await this.undoFile(sessionId, shown.path);
  }

  async undoTurn(turnId?: string, sessionId = this.openChats.state.sessionId): Promise<void> {
    const turn = turnId ?? lastTurn(this.proposed(sessionId), (hunk) => hunk.state === "applied");
    if (turn === undefined) return this.nothing();
    await this.edits.undo(sessionId, { turnId: turn }, "Undo this turn");
  }

  async undoSession(): Promise<void> {
    await this.edits.undo(this.openChats.state.sessionId, {}, "Undo all changes in this session");
  }

  async redo(turnId?: string, sessionId = this.openChats.state.sessionId): Promise<void> {
    const turn = turnId ?? lastTurn(this.proposed(sessionId), (hunk) => hunk.state === "reverted");
    if (turn === undefined) return this.nothing();
    await this.edits.decide(sessionId, { turnId: turn }, "redo");
  }

  async restore(turnId?: string, sessionId = this.openChats.state.sessionId): Promise<void> {
    await this.edits.restore(sessionId, turnId);
  }

  private undoFile(sessionId: string, path: string): Promise<void> {
    return this.edits.undo(sessionId, { path }, `Undo Amanu's changes in ${name(path)}`);
  }

  /** The sessions that have changed the file; the active chat's, which says so, when none has. */
  private sessionsAt(path: string): string[] {
    const applied = this.proposals.all.filter(
      ({ file }) => file.presentPath === path && file.hunks.some((hunk) => hunk.state === "applied"),
    );
    const sessions = [...new Set(applied.map(({ sessionId }) => sessionId))];
    return sessions.length > 0 ? sessions : [this.openChats.state.sessionId];
  }

  private proposed(sessionId: string): Proposal[] {
    return this.sessions.get(sessionId)?.state.proposals ?? [];
  }

  private nothing(): void {
    this.openChats.tell({ level: "info", text: "There is nothing to undo or redo." });
  }
}
