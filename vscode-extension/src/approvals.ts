import * as vscode from "vscode";
import type { Daemon } from "./client";
import type { Desk } from "./desk";
import type { Approval, Scope } from "./protocol";
import { SCOPES } from "./words";

const EDIT: vscode.QuickInputButton = {
  iconPath: new vscode.ThemeIcon("edit"),
  tooltip: "Edit the rule first",
};

interface Answer extends vscode.QuickPickItem {
  run(): Promise<unknown>;
  edit?(): Promise<unknown>;
}

/** The keyboard's way to a decision: a quick pick, opened only by the person. */
export class Approvals {
  constructor(
    private readonly desk: Desk,
    private readonly daemon: Daemon,
    private readonly openDiff: (proposalId: string) => Promise<void>,
  ) {}

  /** Ask about what waits, the oldest question unless the person chooses another. */
  async answer(): Promise<void> {
    const { approvals } = this.desk.state;
    const approval = approvals.length > 1 ? await choose(approvals) : approvals[0];
    if (approval === undefined) {
      if (approvals.length === 0) this.desk.tell({ level: "info", text: "Nothing waits for your decision." });
      return;
    }
    await this.ask(approval);
  }

  private async ask(approval: Approval): Promise<void> {
    const pick = vscode.window.createQuickPick<Answer>();
    pick.title = approval.title;
    pick.placeholder = oneLine(approval.detail);
    pick.items = this.answers(approval);
    const stale = this.desk.onEvent(({ event }) => {
      // decided elsewhere, or over: no question is left
      if (
        event.kind === "turnEnded" ||
        (event.kind === "approvalResolved" && event.toolCallId === approval.toolCallId)
      )
        pick.hide();
    });
    pick.onDidAccept(() => {
      const chosen = pick.selectedItems[0];
      pick.hide();
      if (chosen) void this.desk.attempt(() => chosen.run(), approval.toolCallId);
    });
    pick.onDidTriggerItemButton(({ item }) => {
      pick.hide();
      if (item.edit) void this.desk.attempt(item.edit, approval.toolCallId);
    });
    pick.onDidHide(() => {
      stale.dispose();
      pick.dispose();
    });
    pick.show();
  }

  private answers(approval: Approval): Answer[] {
    const { toolCallId, proposalId } = approval;
    const edits = proposalId !== null;
    const allow = (scope: Scope, rule: string | null) =>
      this.desk.resolve({ toolCallId, decision: "allow", scope, rule });
    const reject = (reason: string | null) => this.desk.resolve({ toolCallId, decision: "reject", reason });
    return [
      ...(proposalId === null
        ? []
        : [{ label: "$(diff) Review the changes", run: () => this.openDiff(proposalId) }]),
      ...approval.scopes.map(({ scope, rule }): Answer => {
        const label = `$(check) ${edits ? "Accept all" : "Allow"} ${SCOPES[scope]}`;
        if (rule === "") return { label, run: () => allow(scope, null) };
        const edit = async () => {
          const edited = await this.editRule(rule);
          if (edited !== undefined) await allow(scope, edited);
        };
        return { label, description: rule, buttons: [EDIT], run: () => allow(scope, null), edit };
      }),
      { label: "$(x) Reject", run: () => reject(null) },
      {
        label: "$(x) Reject with a reason…",
        run: async () => {
          const reason = await vscode.window.showInputBox({
            title: approval.title,
            prompt: "The model is told.",
          });
          if (reason !== undefined) await reject(reason || null);
        },
      },
    ];
  }

  private editRule(rule: string): Thenable<string | undefined> {
    return vscode.window.showInputBox({
      title: "Rule to remember",
      value: rule,
      validateInput: async (text) => {
        const { valid, explanation } = await this.daemon.request("amanu/rule/preview", { rule: text });
        const severity = valid
          ? vscode.InputBoxValidationSeverity.Info
          : vscode.InputBoxValidationSeverity.Error;
        return { message: explanation, severity };
      },
    });
  }
}

async function choose(approvals: Approval[]): Promise<Approval | undefined> {
  const items = approvals.map((approval) => ({
    label: approval.title,
    detail: oneLine(approval.proposalId === null ? approval.detail : (approval.detail.split("\n")[0] ?? "")),
    approval,
  }));
  return (await vscode.window.showQuickPick(items, { placeHolder: "Which one?" }))?.approval;
}

function oneLine(text: string): string {
  return text.replaceAll(/\s+/g, " ").slice(0, 200);
}
