import * as vscode from "vscode";
import type { Overview } from "./overview";
import type { SessionSummary, TurnEnded } from "../protocol";
import { message, oneLine, titled } from "../editor/visible";

/** Characters of why a turn failed. */
const WHY = 200;

/** Says, once, that a long turn has ended which the user did not see end. */
export class Ended implements vscode.Disposable {
  /** Session → since when it works, in milliseconds. */
  private readonly since = new Map<string, number>();
  private readonly subscription: vscode.Disposable;

  constructor(
    private readonly overview: Pick<Overview, "sessions" | "onChanged">,
    private readonly chats: {
      /** The session is before the user. */
      shows(sessionId: string): boolean;
      /** How its last turn ended, as far as that is known here. */
      lastTurn(sessionId: string): TurnEnded | undefined;
      show(sessionId: string): void;
    },
  ) {
    this.subscription = overview.onChanged(() => this.look());
  }

  dispose(): void {
    this.subscription.dispose();
  }

  private look(): void {
    const now = Date.now();
    for (const session of this.overview.sessions) {
      const { sessionId, status } = session;
      const since = this.since.get(sessionId);
      if (status === "running" || status === "waiting") this.since.set(sessionId, since ?? now);
      else if (since !== undefined) {
        this.since.delete(sessionId);
        this.ended(session, (now - since) / 1000);
      }
    }
  }

  private ended(session: SessionSummary, seconds: number): void {
    const { sessionId } = session;
    const after = vscode.workspace.getConfiguration("amanu").get<number>("notifyAfter", 30);
    if (after <= 0 || seconds < after) return;
    if (vscode.window.state.focused && this.chats.shows(sessionId)) return;
    const words = outcome(session, this.chats.lastTurn(sessionId));
    if (words === undefined) return;
    void vscode.window
      .showInformationMessage(message(`${titled(session)} ${words}`), "Show")
      .then((chosen) => chosen && this.chats.show(sessionId));
  }
}

/** How it ended, after the session's title; undefined where the user has ended it. */
function outcome({ status, changes }: SessionSummary, turn: TurnEnded | undefined): string | undefined {
  if (turn?.reason === "cancelled") return undefined;
  if (status === "interrupted") return "was interrupted.";
  if (turn !== undefined && turn.reason !== "completed")
    return `stopped: ${oneLine(turn.message || turn.reason, WHY)}`;
  return changes > 0 ? "has finished. There are changes to review." : "has finished.";
}
