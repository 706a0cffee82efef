import * as vscode from "vscode";
import { plural } from "../review/changes";
import type { Daemon } from "../daemon/client";
import type { Chat } from "../chat/chat";
import type { OpenChats } from "../chat/openChats";
import type { Pages } from "../editor/pages";
import { openPlan } from "./plan";
import type { Approval, CommandPart, Grant, Line, RulePreviewResult, Scope, SessionState } from "../protocol";
import { acceptStep, type Step, standingStep } from "./step";
import { oneLine, plain, visible } from "../editor/visible";
import { BUTTONS, GRANTS, SCOPES } from "../labels";
import { capital, granting, reasons, ruleGranting, wanted } from "./words";

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
  /** Switches a grant; the question stays. */
  grant?: Grant;
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
    let grants = approval.options[0]?.grants ?? [];
    pick.title = plain(wanted(approval), ASKED);
    pick.placeholder = news + oneLine(approval.detail, ASKED);
    const draw = (active: (item: Answer) => boolean) => {
      pick.items = [...known(approval), ...this.answers(approval, grants)];
      pick.activeItems = pick.items.filter(active).slice(0, 1);
    };
    draw(({ run }) => run !== undefined); // what is known stands above the answers
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
      const grant = chosen?.grant;
      if (grant !== undefined) {
        grants = grants.includes(grant) ? grants.filter((each) => each !== grant) : [...grants, grant];
        draw((item) => item.grant === grant);
      } else if (chosen?.run) {
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

  private answers(approval: Approval, grants: Grant[]): Answer[] {
    const { toolCallId, proposalId, digest, detail, command } = approval;
    if (approval.document !== null) return this.planAnswers(approval);
    const edits = proposalId !== null;
    const allow = (scope: Scope, rule: string | null) =>
      this.chat.resolve({ toolCallId, digest, decision: "allow", scope, rule, grants });
    const reject = (reason: string | null) =>
      this.chat.resolve({ toolCallId, digest, decision: "reject", reason });
    // what is kept must do for the next call like this one, too
    const lacking = approval.options[0]?.grants.some(
      (grant) => !grants.includes(grant) && !grants.includes("unsandboxed"),
    );
    const scopes = approval.scopes.filter(({ rule }) => rule === "" || !lacking);
    const yes = edits ? BUTTONS.acceptAll : "Allow";
    const added = edits ? "" : granting(grants);
    return [
      ...(proposalId === null
        ? []
        : [{ label: `$(diff) ${BUTTONS.reviewHunks}`, run: () => this.openDiff(proposalId) }]),
      ...scopes.map(({ scope, rule, explanation }, at): Answer => {
        const label = `$(check) ${yes} ${SCOPES[scope]}${added}`;
        if (rule === "") return { label, run: () => allow(scope, null) };
        const edit = async () => {
          const edited = await this.editRule(ruleGranting(rule, grants), toolCallId);
          if (edited !== undefined) await allow(scope, edited);
        };
        const description = ruleGranting(rule, grants)
          .split("\n")
          .map((line) => plain(line))
          .join("  ·  ");
        return {
          label,
          description,
          // of several that save the same it is said once; of what other grants were added to, nothing
          ...(explanation === scopes[at - 1]?.explanation || ruleGranting(rule, grants) !== rule
            ? {}
            : { detail: plain(explanation, ASKED) }),
          buttons: [EDIT],
          run: () => allow(scope, null),
          edit,
        };
      }),
      ...approval.grants.map((grant): Answer => {
        const on = grants.includes(grant);
        const why = approval.likelyGrants.includes(grant)
          ? "it probably needs this"
          : "it did not ask for this";
        return {
          label: `${on ? "$(pass-filled)" : "$(circle-large-outline)"} ${capital(GRANTS[grant].name)}`,
          description: why,
          grant,
        };
      }),
      ...(command === null || command.includes("\n") // an input box has one line
        ? []
        : [
            {
              label: `$(edit) ${BUTTONS.editCommand}…`,
              run: async () => {
                const own = await vscode.window.showInputBox({
                  title: BUTTONS.editCommand,
                  value: command,
                  prompt: `Enter runs it${granting(grants)}.`,
                });
                if (own !== undefined && own !== command)
                  await this.chat.resolve({ toolCallId, digest, decision: "allow", grants, command: own });
              },
            },
          ]),
      { label: `$(x) ${BUTTONS.reject}`, run: () => reject(null) },
      {
        label: `$(x) ${BUTTONS.rejectWithReason}…`,
        run: async () => {
          const reason = await vscode.window.showInputBox({
            title: oneLine(approval.title, ASKED),
            prompt: "The model sees your reason.",
          });
          if (reason !== undefined) await reject(reason || null);
        },
      },
      ...(edits ? [] : [this.whole(detail)]),
    ];
  }

  private planAnswers(approval: Approval): Answer[] {
    const { toolCallId, digest, options } = approval;
    const reject = async () => {
      const reason = await vscode.window.showInputBox({
        title: oneLine(approval.title, ASKED),
        prompt: "What should be different? The model sees your answer.",
      });
      if (reason !== undefined)
        await this.chat.resolve({ toolCallId, digest, decision: "reject", reason: reason || null });
    };
    return [
      { label: "$(go-to-file) Open the plan", run: () => openPlan(approval) },
      ...options.map(({ label, mode, freshContext }) => ({
        label: `$(check) ${plain(label)}`,
        run: () => this.chat.resolve({ toolCallId, digest, decision: "allow", mode, freshContext }),
      })),
      { label: `$(x) ${BUTTONS.keepPlanning}…`, run: reject },
    ];
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

/** What a rule allows and what it would have answered, in a sentence or two: an input box has one line for it. */
export function meaning({ lines }: RulePreviewResult): string {
  return lines.map(({ text }) => oneLine(text, 300)).join(" ");
}

/** What is known of it: rows to be read. */
function known(approval: Approval): Answer[] {
  const { parts } = approval;
  const separator = (label: string) => ({ label, kind: vscode.QuickPickItemKind.Separator });
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
