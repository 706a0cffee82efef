import * as vscode from "vscode";
import type { Daemon } from "../daemon/client";
import type { Event, ToolCall } from "../protocol";
import type { Sessions } from "./sessions";
import { oneLine, visible } from "../editor/visible";

const CTRL_C = "\x03";
const HINT = "[Closing this tab ends nothing. Ctrl+C stops the turn that runs this command.]";

/** A terminal tab that shows what a command of a turn prints, as it comes; it takes no keys but Ctrl+C. */
export class CallTerminal implements vscode.Pseudoterminal {
  private readonly write = new vscode.EventEmitter<string>();
  readonly onDidWrite = this.write.event;
  private opened = false;
  /** Of its output, as far as it is shown. */
  private shown = "";
  private ended = false;

  constructor(
    private call: ToolCall,
    private readonly stop: () => void,
  ) {}

  open(): void {
    this.opened = true;
    this.show(`$ ${String(this.call.arguments.command ?? this.call.title)}\n${HINT}\n`);
    this.draw();
  }

  close(): void {
    this.opened = false;
  }

  handleInput(data: string): void {
    if (data === CTRL_C && !this.ended) this.stop();
  }

  /** It has printed something, or has changed. */
  update(call: ToolCall): void {
    this.call = call;
    if (this.opened) this.draw();
  }

  private draw(): void {
    if (this.ended) return;
    const { output, state } = this.call;
    // when it has ended, a long output is told anew, cut in the middle: what stands here is more
    if (output.startsWith(this.shown)) {
      this.show(output.slice(this.shown.length));
      this.shown = output;
    }
    this.ended = state !== "executing";
    if (this.ended) this.show(`\n[${state}]\n`);
  }

  private show(text: string): void {
    if (text !== "") this.write.fire(visible(text).replace(/\n/g, "\r\n"));
  }
}

interface Open {
  sessionId: string;
  callId: string;
  pty: CallTerminal;
  terminal: vscode.Terminal;
}

/** The terminal tabs of commands that turns wait for. */
export class CallTerminals implements vscode.Disposable {
  private readonly open = new Map<string, Open>();
  private readonly subscriptions: vscode.Disposable[];

  constructor(
    private readonly sessions: Sessions,
    private readonly daemon: Daemon,
  ) {
    this.subscriptions = [
      sessions.onEvent(({ sessionId, event }) => {
        const callId = about(event);
        if (callId !== undefined) this.update(sessionId, callId);
      }),
      sessions.onReset((sessionId) => {
        for (const { sessionId: id, callId } of this.open.values())
          if (id === sessionId) this.update(sessionId, callId);
      }),
      vscode.window.onDidCloseTerminal((closed) => {
        for (const [id, { terminal }] of this.open) if (terminal === closed) this.open.delete(id);
      }),
    ];
  }

  show(sessionId: string, callId: string): void {
    const known = this.open.get(key(sessionId, callId));
    if (known !== undefined) return known.terminal.show();
    const call = this.call(sessionId, callId);
    if (call === undefined) return;
    const pty = new CallTerminal(call, () => void this.stop(sessionId));
    const terminal = vscode.window.createTerminal({
      name: `Amanu: ${oneLine(call.title, 40)}`,
      pty,
      iconPath: new vscode.ThemeIcon("terminal"),
    });
    this.open.set(key(sessionId, callId), { sessionId, callId, pty, terminal });
    terminal.show();
  }

  dispose(): void {
    for (const each of this.subscriptions) each.dispose();
  }

  private async stop(sessionId: string): Promise<void> {
    const turnId = this.sessions.get(sessionId)?.state.turn?.turnId;
    if (turnId !== undefined) await this.daemon.request("amanu/turn/cancel", { sessionId, turnId });
  }

  private update(sessionId: string, callId: string): void {
    const terminal = this.open.get(key(sessionId, callId));
    const call = terminal && this.call(sessionId, callId);
    if (call) terminal.pty.update(call);
  }

  private call(sessionId: string, callId: string): ToolCall | undefined {
    const item = this.sessions.get(sessionId)?.items.item(callId);
    return item?.kind === "toolCall" ? item : undefined;
  }
}

function key(sessionId: string, callId: string): string {
  return `${sessionId} ${callId}`;
}

/** The call an event is about, if it is about one. */
function about(event: Event): string | undefined {
  if (event.kind === "itemDelta") return event.itemId;
  return event.kind === "itemChanged" || event.kind === "itemCompleted" ? event.item.itemId : undefined;
}
