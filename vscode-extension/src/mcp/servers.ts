import * as vscode from "vscode";
import type { Daemon } from "../daemon/client";
import type { OpenChats } from "../chat/openChats";
import type { McpListResult, McpServer } from "../protocol";

/** Milliseconds in which changes become one question to the daemon. */
const GATHER = 100;
const NONE: McpListResult = { servers: [], deferred: false, summary: "" };

/** The MCP servers of the session that is shown, as the daemon lists them. */
export class Servers implements vscode.Disposable {
  list = NONE;
  private readonly changed = new vscode.EventEmitter<void>();
  readonly onChanged = this.changed.event;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private sessionId = "";
  private readonly reset: vscode.Disposable;

  constructor(
    private readonly daemon: Pick<Daemon, "request">,
    private readonly openChats: Pick<OpenChats, "state" | "onReset">,
  ) {
    this.reset = openChats.onReset(() => this.soon());
  }

  /** Something about them has changed, or they are another session's. */
  soon(): void {
    this.timer ??= setTimeout(() => {
      this.timer = undefined;
      this.refresh().catch(() => undefined); // a daemon from before there were any, or the next change asks again
    }, GATHER);
  }

  async refresh(): Promise<void> {
    const { sessionId } = this.openChats.state;
    const list = sessionId === "" ? NONE : await this.daemon.request("amanu/mcp/list", { sessionId });
    if (sessionId !== this.openChats.state.sessionId) return this.soon();
    if (list === this.list && sessionId === this.sessionId) return;
    this.list = list;
    this.sessionId = sessionId;
    this.changed.fire();
  }

  dispose(): void {
    clearTimeout(this.timer);
    this.reset.dispose();
    this.changed.dispose();
  }
}

/** Whether it needs the user before it can be used, or all of it. */
export function needsUser({ state, changedTools }: McpServer): boolean {
  return (
    state === "unapproved" ||
    state === "needsSignIn" ||
    state === "failed" ||
    (changedTools.length > 0 && state !== "off")
  );
}

/** The server in one line, as the daemon words it. */
export function headline({ lines, name }: McpServer): string {
  return lines[0]?.text ?? name;
}
