import * as vscode from "vscode";
import { entries, plural, waiting as toReview } from "../review/changes";
import type { Daemon } from "../daemon/client";
import type { OpenChats } from "../chat/openChats";
import type { Overview } from "./overview";
import type { SessionSummary } from "../protocol";
import type { Sessions } from "./sessions";
import { titled } from "../editor/visible";

/** The status item: connected, working, waiting for the user, in whichever session. It is how a hidden chat and a
 * session that is not shown make themselves heard. */
export class Status implements vscode.Disposable {
  private readonly item = vscode.window.createStatusBarItem("amanu", vscode.StatusBarAlignment.Left, 0);
  private readonly subscriptions: vscode.Disposable[];
  private shown = "";
  /** The contexts VS Code knows. */
  private readonly told = new Map<string, boolean>();

  constructor(
    private readonly openChats: OpenChats,
    private readonly sessions: Sessions,
    private readonly daemon: Daemon,
    private readonly overview: Pick<Overview, "others" | "onChanged">,
    private readonly waits: (count: number) => void,
  ) {
    this.item.name = "Amanu";
    this.subscriptions = [
      this.item,
      openChats.onReset(() => this.draw()),
      openChats.onShown(() => this.draw()),
      sessions.onReset(() => this.draw()),
      sessions.onLeft(() => this.draw()),
      sessions.onEvent(({ event }) => {
        if (event.kind !== "itemDelta") this.draw();
      }),
      daemon.onConnection(() => this.draw()),
      overview.onChanged(() => this.draw()),
    ];
    this.draw();
    this.item.show();
  }

  dispose(): void {
    for (const each of this.subscriptions) each.dispose();
  }

  private draw(): void {
    const { connection } = this.daemon;
    const { others } = this.overview;
    const shown = [...new Map(this.openChats.open.map(({ state }) => [state.sessionId, state])).values()];
    const here = sum(shown, ({ approvals, questions }) => approvals.length + questions.length);
    const asking = others.filter(({ questions }) => questions.length > 0);
    const waiting = here + sum(asking, ({ questions }) => questions.length);
    const running = others.filter(({ status }) => status === "running");
    const review = sum(entries(this.sessions.states), (entry) => entry.open + entry.review);
    const owners = this.sessions.states.filter((state) => toReview([state]).length > 0);
    const owner = owners[0]?.sessionId;
    const [text, tooltip, command] =
      connection.status === "missing" || connection.status === "lost"
        ? ["$(warning) Amanu", connection.message, "amanu.focus"]
        : connection.status === "installing"
          ? ["$(loading~spin) Amanu", connection.message, "amanu.focus"]
          : connection.status === "starting"
            ? ["$(loading~spin) Amanu", "Connecting to the daemon", "amanu.focus"]
            : waiting > 0
              ? [
                  `$(question) Amanu: ${waiting} pending`,
                  here === 0
                    ? `${named(asking)} is waiting for ${plural(waiting, "decision")}`
                    : `Waiting for ${plural(here, "decision")}${asking.length > 0 ? `; so is ${named(asking)}` : ""}`,
                  "amanu.answer",
                ]
              : shown.some(({ turn }) => turn !== null)
                ? ["$(sync~spin) Amanu", "Working", "amanu.focus"]
                : review > 0
                  ? [
                      `$(check) Amanu: ${review} to review`,
                      `Amanu is ready. ${plural(review, "change")} to review`,
                      owners.length > 1 ? "amanu.reviewAllSessions" : "amanu.reviewAll",
                    ]
                  : running.length > 0
                    ? ["$(sync~spin) Amanu", `Working on ${named(running)}`, "amanu.sessions"]
                    : ["$(check) Amanu", ready(others), "amanu.focus"];
    this.context("amanu.session", this.openChats.state.sessionId !== "");
    this.context("amanu.running", this.openChats.state.turn !== null);
    this.context("amanu.waiting", waiting > 0);
    const key = `${text} ${tooltip} ${command} ${owner}`;
    if (key === this.shown) return;
    this.shown = key;
    this.item.text = text;
    this.item.tooltip = tooltip;
    this.item.command =
      command === "amanu.reviewAll" ? { command, title: "Review", arguments: ["", owner] } : command;
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

function sum<T>(list: T[], count: (one: T) => number): number {
  return list.reduce((total, one) => total + count(one), 0);
}

/** The session by its title, or how many they are. */
function named(sessions: SessionSummary[]): string {
  const [first, ...more] = sessions;
  if (first === undefined) return "";
  return more.length === 0 ? titled(first) : `one of ${sessions.length} other sessions`;
}

function ready(others: SessionSummary[]): string {
  const left = others.filter(({ changes }) => changes > 0);
  if (left.length === 0) return "Amanu is ready";
  const changes = plural(
    sum(left, (session) => session.changes),
    "change",
  );
  const where =
    left.length === 1 && left[0] !== undefined ? titled(left[0]) : `${left.length} other sessions`;
  return `Amanu is ready. To review in ${where}: ${changes}`;
}
