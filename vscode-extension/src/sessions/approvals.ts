import * as vscode from "vscode";
import { plural } from "../review/changes";
import type { Daemon } from "../daemon/client";
import type { Chat } from "../chat/chat";
import type { OpenChats } from "../chat/openChats";
import type { Pages } from "../editor/pages";
import { openPlan } from "./plan";
import type {
  Approval,
  ApprovalAnswer,
  CommandPart,
  Line,
  RulePreviewResult,
  SessionState,
} from "../protocol";
import { acceptStep, type Step, standingStep } from "./step";
import { oneLine, plain, visible } from "../editor/visible";
import { BUTTONS } from "../labels";
import { sent } from "./answers";
import { reasons, wanted } from "./words";

const EDIT: vscode.QuickInputButton = {
  iconPath: new vscode.ThemeIcon("edit"),
  tooltip: "Edit the rule first",
};
/** Characters of what is asked about above the answers; the first answer but one shows all of it. */
const ASKED = 200;
/** Parts up to which those that are fine have a row each. */
const MANY = 6;
const ICONS: Record<CommandPart["decision"], string> = {
  allow: "$(pass)",
  ask: "$(question)",
  deny: "$(error)",
};

const ICON: Record<ApprovalAnswer["action"], string> = {
  allow: "$(check)",
  review: "$(diff)",
  editCommand: "$(edit)",
  reject: "$(x)",
  finish: "$(clock)",
};

const WHAT_ELSE = "What should be different? The model sees your answer.";

const TONES: Record<Line["tone"], string> = {
  plain: "$(info)",
  good: "$(pass)",
  warning: "$(warning)",
  bad: "$(error)",
};

interface Answer extends vscode.QuickPickItem {
  /** Settles the question, or leaves it. Without it the row is there to be read. */
  run?(): Promise<unknown>;
  edit?(): Promise<unknown>;
}

/** The keyboard's way to a decision: a quick pick, opened only by the user. */
export class Approvals {
  constructor(
    private readonly openChats: Pick<OpenChats, "active">,
    private readonly daemon: Daemon,
    private readonly pages: Pages,
    private readonly openDiff: (proposalId: string) => Promise<void>,
  ) {}

  /** Ask about what waits, the oldest question unless the user chooses another. */
  async answer(): Promise<void> {
    const { approvals } = this.chat.state;
    if (approvals.length === 0) this.chat.tell({ level: "info", text: "There is nothing to decide." });
    const chosen = approvals.length > 1 ? await choose(this.chat.state) : approvals[0];
    if (chosen === undefined) return;
    if ("approvals" in chosen) await this.acceptStep(chosen);
    else this.ask(chosen);
  }

  private get chat(): Chat {
    return this.openChats.active;
  }

  private ask(approval: Approval, news = ""): void {
    const pick = vscode.window.createQuickPick<Answer>();
    pick.title = plain(wanted(approval), ASKED);
    pick.placeholder = news + oneLine(approval.detail, ASKED);
    pick.items = [...known(approval), ...this.answers(approval)];
    pick.activeItems = pick.items.filter(({ run }) => run !== undefined).slice(0, 1); // what is known stands above
    const over = this.chat.onEvent(({ event }) => {
      // decided elsewhere, or over: no question is left
      if (
        event.kind === "turnEnded" ||
        (event.kind === "approvalResolved" && event.toolCallId === approval.toolCallId)
      )
        pick.hide();
      // about something else by now: nobody shall say yes to what is not shown
      if (event.kind === "approvalRequested" && event.approval.toolCallId === approval.toolCallId) {
        pick.hide();
        this.ask(event.approval, "It has changed. ");
      }
    });
    pick.onDidAccept(() => {
      const chosen = pick.selectedItems[0];
      if (chosen?.run) {
        pick.hide();
        void this.chat.attempt(chosen.run, approval.toolCallId);
      }
    });
    pick.onDidTriggerItemButton(({ item }) => {
      pick.hide();
      if (item.edit) void this.chat.attempt(item.edit, approval.toolCallId);
    });
    pick.onDidHide(() => {
      over.dispose();
      pick.dispose();
    });
    pick.show();
  }

  private answers(approval: Approval): Answer[] {
    const { proposalId, document, command } = approval;
    const shown = approval.answers.filter(
      ({ asks }) => asks !== "command" || !command?.includes("\n"), // an input box has one line
    );
    const isReview = ({ action }: { action: string }) => action === "review";
    // Enter takes the first one: it shows the changes, and writes nothing unseen
    const offered = [...shown.filter(isReview), ...shown.filter((each) => !isReview(each))];
    const rows = (further: boolean) =>
      offered
        .filter((answer) => answer.further === further)
        .map((answer, at, all) => this.row(approval, answer, all[at - 1]));
    return [
      ...(document === null ? [] : [{ label: "$(go-to-file) Open the plan", run: () => openPlan(approval) }]),
      ...rows(false),
      ...(proposalId === null && document === null ? [this.whole(approval.detail)] : []),
      ...(offered.some(({ further }) => further) ? [separator("more options")] : []),
      ...rows(true),
    ];
  }

  /** An answer; what it means is said once where several in a row mean the same. */
  private row(approval: Approval, answer: ApprovalAnswer, before: ApprovalAnswer | undefined): Answer {
    const { rule, explanation } = answer;
    const more = answer.asks === "" ? "" : "…";
    const label = `${ICON[answer.action]} ${plain(answer.label)}${more}`;
    const meaning = explanation === before?.explanation ? "" : plain(explanation, ASKED);
    const run = () => this.send(approval, answer);
    if (rule === "") return { label, description: meaning, run };
    const edit = async () => {
      const edited = await this.editRule(rule, approval.toolCallId);
      if (edited !== undefined) await this.chat.resolve(sent(approval, answer, { rule: edited }));
    };
    const description = rule
      .split("\n")
      .map((line) => plain(line))
      .join("  ·  ");
    return { label, description, ...(meaning && { detail: meaning }), buttons: [EDIT], run, edit };
  }

  /** Send an answer, with what it asks the user for. */
  private async send(approval: Approval, answer: ApprovalAnswer): Promise<void> {
    const { proposalId, command } = approval;
    if (answer.action === "review") {
      if (proposalId !== null) await this.openDiff(proposalId);
      return;
    }
    if (answer.asks === "") return void (await this.chat.resolve(sent(approval, answer)));
    const own = await vscode.window.showInputBox(
      answer.asks === "command"
        ? { title: answer.label, value: command ?? "", prompt: `Enter runs it. ${answer.explanation}` }
        : {
            title: oneLine(approval.title, ASKED),
            prompt: approval.document === null ? "The model sees your reason." : WHAT_ELSE,
          },
    );
    if (own === undefined || (answer.asks === "command" && own === command)) return;
    await this.chat.resolve(
      sent(approval, answer, answer.asks === "command" ? { command: own } : { reason: own || null }),
    );
  }

  private async acceptStep({ approvals }: Step): Promise<void> {
    await Promise.all(
      approvals.map(({ toolCallId, digest }) =>
        this.chat.attempt(
          () => this.chat.resolve({ toolCallId, digest, decision: "allow", scope: "once" }),
          toolCallId,
        ),
      ),
    );
  }

  /** All that will happen, on a page: a list has one line for it. */
  private whole(detail: string): Answer {
    const lines = visible(detail).split("\n").length;
    return {
      label: `$(eye) ${BUTTONS.showAll}`,
      description: plural(lines, "line"),
      run: () => this.pages.show("Amanu Asks.txt", `${visible(detail)}\n`),
    };
  }

  /** The text of a rule as the user wants it, one line after the other; undefined when they leave. An empty line goes. */
  private async editRule(rule: string, toolCallId: string): Promise<string | undefined> {
    const lines = rule.split("\n");
    for (const [at, line] of lines.entries()) {
      const whole = (text: string) =>
        lines
          .with(at, text)
          .filter((each) => each.trim() !== "")
          .join("\n");
      const edited = await vscode.window.showInputBox({
        title: lines.length > 1 ? `Rule to remember, ${at + 1} of ${lines.length}` : "Rule to remember",
        value: line,
        validateInput: (text) => this.check(whole(text), toolCallId),
      });
      if (edited === undefined) return undefined;
      lines[at] = edited;
    }
    return lines.filter((each) => each.trim() !== "").join("\n");
  }

  private async check(rule: string, toolCallId: string): Promise<vscode.InputBoxValidationMessage> {
    const { sessionId } = this.chat.state;
    const found = await this.daemon.request("amanu/rule/preview", { rule, sessionId, toolCallId });
    const severity = found.fits
      ? vscode.InputBoxValidationSeverity.Info
      : vscode.InputBoxValidationSeverity.Error;
    return { message: meaning(found), severity };
  }
}

/** The meaning of a rule: what it allows and would have answered, in a sentence or two: an input box has one line for it. */
export function meaning({ lines }: RulePreviewResult): string {
  return lines.map(({ text }) => oneLine(text, 300)).join(" ");
}

function separator(label: string): Answer {
  return { label, kind: vscode.QuickPickItemKind.Separator };
}

/** The rows that say what is known of it, to be read. */
function known(approval: Approval): Answer[] {
  const { parts } = approval;
  const fine = parts.filter(({ decision }) => decision === "allow");
  const folded = parts.length > MANY ? fine : [];
  return [
    separator("what is asked"),
    ...parts
      .filter((part) => !folded.includes(part))
      .map(({ text, decision, reason }) => ({
        label: `${ICONS[decision]} ${plain(text)}`,
        description: plain(reason),
      })),
    ...(folded.length > 0 ? [{ label: `$(pass) ${folded.length} more are fine` }] : []),
    ...reasons(approval).map(({ tone, text }) => ({ label: `${TONES[tone]} ${plain(text, ASKED)}` })),
    separator("your answer"),
  ];
}

async function choose(state: SessionState): Promise<Approval | Step | undefined> {
  const step = standingStep(state);
  const items = state.approvals.map((approval) => ({
    label: plain(wanted(approval)),
    detail: plain(
      approval.proposalId === null ? approval.detail : (approval.detail.split("\n")[0] ?? ""),
      ASKED,
    ),
    chosen: approval as Approval | Step,
  }));
  if (step !== undefined) items.push({ label: `$(check-all) ${acceptStep(step)}`, detail: "", chosen: step });
  return (await vscode.window.showQuickPick(items, { placeHolder: "Which one?" }))?.chosen;
}
