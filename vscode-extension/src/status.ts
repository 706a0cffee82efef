import * as vscode from "vscode";
import { plural, rows } from "./changes";
import type { Daemon } from "./client";
import type { Desk } from "./desk";

/** The status item: connected, working, waiting for the person. It is how a hidden chat makes itself heard. */
export class Status implements vscode.Disposable {
  private readonly item = vscode.window.createStatusBarItem("amanu", vscode.StatusBarAlignment.Left, 0);
  private readonly subscriptions: vscode.Disposable[];
  private shown = "";
  /** The contexts VS Code knows. */
  private readonly told = new Map<string, boolean>();

  constructor(
    private readonly desk: Desk,
    private readonly daemon: Daemon,
    private readonly waits: (count: number) => void,
  ) {
    this.item.name = "Amanu";
    this.subscriptions = [
      this.item,
      desk.onReset(() => this.draw()),
      desk.onEvent(({ event }) => {
        if (event.kind !== "itemDelta") this.draw();
      }),
      daemon.onConnection(() => this.draw()),
    ];
    this.draw();
    this.item.show();
  }

  dispose(): void {
    for (const each of this.subscriptions) each.dispose();
  }

  private draw(): void {
    const { connection } = this.daemon;
    const waiting = this.desk.state.approvals.length;
    const review = rows(this.desk.state.proposals).reduce((sum, row) => sum + row.open + row.review, 0);
    const [text, tooltip, command] =
      connection.status === "missing" || connection.status === "lost"
        ? ["$(warning) Amanu", connection.message, "amanu.focus"]
        : connection.status === "installing"
          ? ["$(loading~spin) Amanu", connection.message, "amanu.focus"]
          : connection.status === "starting"
            ? ["$(loading~spin) Amanu", "Connecting to the daemon", "amanu.focus"]
            : waiting > 0
              ? [
                  `$(question) Amanu waits`,
                  `Waits for ${plural(waiting, "decision")} of yours`,
                  "amanu.answer",
                ]
              : this.desk.state.turn !== null
                ? ["$(sync~spin) Amanu", "A turn runs", "amanu.focus"]
                : review > 0
                  ? [
                      `$(check) Amanu: ${review} to review`,
                      `Amanu is ready. ${plural(review, "change")} ${review === 1 ? "waits" : "wait"} for your review`,
                      "amanu.reviewAll",
                    ]
                  : ["$(check) Amanu", "Amanu is ready", "amanu.focus"];
    this.context("amanu.session", this.desk.state.sessionId !== "");
    this.context("amanu.running", this.desk.state.turn !== null);
    this.context("amanu.waiting", waiting > 0);
    const key = `${text} ${tooltip}`;
    if (key === this.shown) return;
    this.shown = key;
    this.item.text = text;
    this.item.tooltip = tooltip;
    this.item.command = command;
    this.item.backgroundColor =
      waiting > 0 ? new vscode.ThemeColor("statusBarItem.warningBackground") : undefined;
    this.waits(waiting);
  }

  private context(key: string, value: boolean): void {
    if (this.told.get(key) === value) return;
    this.told.set(key, value);
    void vscode.commands.executeCommand("setContext", key, value);
  }
}
