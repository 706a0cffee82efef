import { randomUUID } from "node:crypto";
import * as vscode from "vscode";
import { hunksOf } from "../review/changes";
import { filePath, shownPath } from "../review/proposals";
import type { Daemon } from "../daemon/client";
import { roots, text } from "../daemon/client";
import { findingsOf, lines, type Place } from "../editor/context";
import type { OpenChats } from "../chat/openChats";
import { InlineLiveEdit } from "./liveEdit";
import { contains } from "../editor/paths";
import type { Proposal, RewriteStartParams, SessionState } from "../protocol";
import type { Sessions } from "../sessions/sessions";

/** The last rewrite: its session is kept, to be refined or continued. */
interface Rewrite {
  sessionId: string;
  /** The turn that is drawn; undefined when its end has been shown. */
  turnId: string | undefined;
  /** What it proposed, while that waits. */
  proposalId?: string | undefined;
  place: Place;
  instruction: string;
}

/** How a turn of a rewrite stands, as far as it is to be drawn. */
export type Progress =
  | { kind: "writing"; written: string }
  | { kind: "proposed"; proposalId: string }
  | { kind: "applied" }
  | { kind: "cancelled" }
  | { kind: "failed"; message: string };

interface Shows {
  diff(proposalId: string): Promise<void>;
  /** Say no to it where it is shown. */
  reject(proposalId: string): Promise<void>;
  chat(sessionId: string): Promise<unknown>;
}

/** Ctrl+I: the instruction for the lines at the cursor is typed there, the result drawn there as it is written, and
 * reviewed like any other change. */
export class Inline implements vscode.Disposable {
  private rewrite: Rewrite | undefined;
  private readonly liveEdit = new InlineLiveEdit();
  private readonly subscriptions: vscode.Disposable[];

  constructor(
    private readonly daemon: Daemon,
    private readonly sessions: Sessions,
    openChats: OpenChats,
    private readonly shows: Shows,
  ) {
    const on = (name: string, work: (...given: never[]) => Promise<unknown>) =>
      vscode.commands.registerCommand(name, (...given: never[]) => openChats.attempt(() => work(...given)));
    this.subscriptions = [
      this.liveEdit,
      on("amanu.editInline", (place?: Place, instruction?: string) => this.edit(place, instruction)),
      on("amanu.refineInline", () => this.refine()),
      on("amanu.stopInline", () => this.stop()),
      on("amanu.discardInline", () => this.discard()),
      on("amanu.editReadOnly", async () => {
        void vscode.window.showInformationMessage("This file is read-only, so Amanu cannot edit it.");
      }),
      on("amanu.dropInline", async () => this.liveEdit.end()),
      on("amanu.continueInline", () => this.continue()),
      sessions.onEvent(({ sessionId }) => this.draw(sessionId)),
      sessions.onReset((sessionId) => this.draw(sessionId)),
    ];
  }

  dispose(): void {
    for (const each of this.subscriptions) each.dispose();
  }

  private async edit(place = here(), given?: string): Promise<void> {
    if (place === undefined) {
      void vscode.window.showInformationMessage("Open a file and place the cursor where you want to edit.");
      return;
    }
    const { document, lines: about } = place;
    const root = roots().find((folder) => contains(folder, document.uri.fsPath));
    if (document.uri.scheme !== "file" || root === undefined) {
      void vscode.window.showInformationMessage(
        `${document.isUntitled ? "Save the file first. " : ""}Only files in an open folder can be edited with Amanu.`,
      );
      return;
    }
    const instruction =
      given ?? (await ask(`Edit ${where(place)}`, "Describe the change, e.g. “handle errors”"));
    if (instruction === undefined) return;
    await this.daemon.settled();
    const found = vscode.languages
      .getDiagnostics(document.uri)
      .filter(({ range }) => range.start.line < about.end && range.end.line >= about.start);
    await this.begin(place, {
      sessionId: randomUUID(),
      promptId: randomUUID(),
      roots: [root],
      path: document.uri.fsPath,
      version: document.version,
      lines: about,
      instruction,
      findings: findingsOf(found),
    });
  }

  private async begin(place: Place, params: RewriteStartParams): Promise<void> {
    const { sessionId, instruction } = params;
    await this.leave();
    this.liveEdit.begin(place, instruction);
    try {
      const result = await this.daemon.request("amanu/rewrite/start", params);
      const { turn, lastTurn } = result.state;
      this.keep({ sessionId, turnId: turn?.turnId ?? lastTurn?.turnId, place, instruction });
      this.sessions.created(result);
    } catch (error) {
      this.liveEdit.fail(text(error));
    }
  }

  private async refine(): Promise<void> {
    const { rewrite } = this;
    const shown = vscode.window.activeTextEditor?.document.uri;
    if (
      rewrite === undefined ||
      (shown !== undefined && filePath(shown) !== rewrite.place.document.uri.path)
    ) {
      void vscode.window.showInformationMessage("The last edit made with Ctrl+I was in another file.");
      return;
    }
    const { sessionId, place } = rewrite;
    const instruction = await ask(
      "Refine the edit",
      `What should be different? Last: ${rewrite.instruction}`,
    );
    if (instruction === undefined) return;
    await vscode.window.showTextDocument(place.document);
    this.liveEdit.begin(place, instruction);
    try {
      const params = { sessionId, promptId: randomUUID(), instruction };
      const { turnId } = await this.daemon.request("amanu/rewrite/refine", params);
      this.keep({ ...rewrite, instruction, turnId: turnId ?? undefined, proposalId: undefined });
      this.draw(sessionId);
    } catch (error) {
      this.liveEdit.fail(text(error));
    }
  }

  private async stop(): Promise<void> {
    this.liveEdit.end();
    const { sessionId, turnId } = this.rewrite ?? {};
    if (sessionId !== undefined && turnId !== undefined)
      await this.daemon.request("amanu/turn/cancel", { sessionId, turnId });
  }

  /** Escape: the writing stops, what is proposed is rejected. */
  private async discard(): Promise<void> {
    const { turnId, proposalId } = this.rewrite ?? {};
    if (turnId !== undefined) await this.stop();
    else if (proposalId !== undefined) await this.shows.reject(proposalId);
  }

  private async continue(): Promise<void> {
    const { sessionId } = this.rewrite ?? {};
    if (sessionId === undefined) return;
    this.liveEdit.end();
    await this.daemon.request("amanu/rewrite/continue", { sessionId });
    await this.shows.chat(sessionId);
    await this.leave();
  }

  private draw(sessionId: string): void {
    const { rewrite } = this;
    if (rewrite?.sessionId !== sessionId) return;
    const state = this.sessions.get(sessionId)?.state;
    if (rewrite.turnId === undefined) {
      const proposal = state?.proposals.find((each) => each.proposalId === rewrite.proposalId);
      if (proposal !== undefined && !waits(proposal)) this.keep({ ...rewrite, proposalId: undefined });
      return;
    }
    const progress = state && progressOf(state, rewrite.turnId);
    if (progress === undefined) return;
    if (progress.kind === "writing") return this.liveEdit.show(progress.written);
    const proposalId = progress.kind === "proposed" ? progress.proposalId : undefined;
    this.keep({ ...rewrite, turnId: undefined, proposalId });
    if (progress.kind === "failed") return this.liveEdit.fail(progress.message);
    this.liveEdit.end();
    if (proposalId !== undefined) void this.shows.diff(proposalId);
  }

  private keep(rewrite: Rewrite | undefined): void {
    this.rewrite = rewrite;
    const { place, turnId, proposalId } = rewrite ?? {};
    const here = place === undefined ? [] : [place.document.uri.fsPath];
    const proposed = proposalId === undefined ? [] : here.map(shownPath);
    const tell = (key: string, value: unknown) =>
      void vscode.commands.executeCommand("setContext", key, value);
    tell("amanu.inline", rewrite !== undefined);
    // where Escape means something
    tell("amanu.inlineWriting", turnId === undefined ? [] : here);
    tell("amanu.inlineProposed", proposed);
  }

  /** The session before is followed only as long as something of it waits. */
  private async leave(): Promise<void> {
    const { rewrite } = this;
    this.keep(undefined);
    if (rewrite !== undefined) await this.sessions.release(rewrite.sessionId);
  }
}

function waits(proposal: Proposal): boolean {
  return hunksOf(proposal).some((hunk) => hunk.state === "pending");
}

/** How that turn stands; undefined while there is nothing to tell yet. */
export function progressOf(
  state: Pick<SessionState, "turn" | "lastTurn" | "items" | "proposals">,
  turnId: string,
): Progress | undefined {
  const proposal = state.proposals.find((each) => each.turnId === turnId);
  if (proposal !== undefined)
    return waits(proposal) ? { kind: "proposed", proposalId: proposal.proposalId } : { kind: "applied" };
  if (state.turn?.turnId === turnId) {
    const call = state.items.findLast((item) => item.kind === "toolCall" && item.turnId === turnId);
    return { kind: "writing", written: call?.kind === "toolCall" ? unsigned(call.output) : "" };
  }
  if (state.lastTurn?.turnId !== turnId) return undefined;
  const { reason, message } = state.lastTurn;
  return reason === "cancelled" ? { kind: "cancelled" } : { kind: "failed", message };
}

/** The lines of a live edit without the sign that each begins with. */
function unsigned(lines: string): string {
  return lines.replace(/^\+/gm, "");
}

/** What is selected, or the line of the cursor. */
function here(): Place | undefined {
  const editor = vscode.window.activeTextEditor;
  return editor && { document: editor.document, lines: lines(editor.selection) };
}

function where({ document, lines: { start, end } }: Place): string {
  const name = vscode.workspace.asRelativePath(document.uri);
  return end <= start + 1 ? `line ${start + 1} of ${name}` : `lines ${start + 1}–${end} of ${name}`;
}

async function ask(title: string, placeHolder: string): Promise<string | undefined> {
  const said = await vscode.window.showInputBox({
    title,
    placeHolder,
    prompt: "Nothing changes until you accept it.",
  });
  return said?.trim() || undefined;
}
