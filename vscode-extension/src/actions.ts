import * as vscode from "vscode";
import { roots } from "./client";
import { findingsOf, lines } from "./context";
import { contains } from "./paths";
import type { AttachmentInput, Finding } from "./protocol";
import { oneLine } from "./visible";

/** What is said of lines without findings, and before findings; the same as for editors without a plugin. */
const MEND = "Find what is wrong with these lines and fix it.";
const FIX = "Fix this. What is found there:\n";
/** Characters of a finding's message. */
const MESSAGE = 500;

interface Doings {
  /** Send it at once, into the running turn if there is one. */
  say(text: string, attachments: AttachmentInput[]): Promise<void>;
  /** Lay it into the prompt box. */
  attach(attachment: AttachmentInput): Promise<void>;
}

/** The code actions on lines of the workspace: *fix this*, *ask about this*. The light bulb comes by itself only where
 * something is found. */
export class Actions implements vscode.CodeActionProvider, vscode.Disposable {
  private readonly subscriptions: vscode.Disposable[];

  constructor(doings: Doings, attempt: (work: () => Promise<void>) => Promise<unknown>) {
    const kinds = [vscode.CodeActionKind.QuickFix, vscode.CodeActionKind.RefactorRewrite];
    this.subscriptions = [
      vscode.languages.registerCodeActionsProvider({ scheme: "file" }, this, {
        providedCodeActionKinds: kinds,
      }),
      vscode.commands.registerCommand("amanu.fix", (about: AttachmentInput, findings: Finding[]) =>
        attempt(() => doings.say(request(findings), [about])),
      ),
      vscode.commands.registerCommand("amanu.ask", (about: AttachmentInput) =>
        attempt(() => doings.attach(about)),
      ),
    ];
  }

  provideCodeActions(
    document: vscode.TextDocument,
    range: vscode.Range,
    { diagnostics, triggerKind }: Pick<vscode.CodeActionContext, "diagnostics" | "triggerKind">,
  ): vscode.CodeAction[] {
    if (!roots().some((folder) => contains(folder, document.uri.fsPath))) return [];
    const others = diagnostics.filter(({ source }) => source !== "amanu");
    const actions: vscode.CodeAction[] = [];
    if (others.length > 0 || (!range.isEmpty && triggerKind === vscode.CodeActionTriggerKind.Invoke)) {
      const fix = new vscode.CodeAction("Amanu: fix this", vscode.CodeActionKind.QuickFix);
      fix.diagnostics = others;
      const about = attachment(document, range.isEmpty ? spanning(others, range) : range);
      fix.command = { title: fix.title, command: "amanu.fix", arguments: [about, findingsOf(others)] };
      actions.push(fix);
    }
    if (triggerKind === vscode.CodeActionTriggerKind.Invoke) {
      const ask = new vscode.CodeAction("Amanu: ask about this…", vscode.CodeActionKind.RefactorRewrite);
      ask.command = { title: ask.title, command: "amanu.ask", arguments: [attachment(document, range)] };
      actions.push(ask);
    }
    return actions;
  }

  dispose(): void {
    for (const each of this.subscriptions) each.dispose();
  }
}

/** What to say of lines with these findings. */
export function request(findings: Finding[]): string {
  const found = findings.map(({ startLine, severity, message, source, code }) => {
    const who = `${source} ${code}`.trim();
    return `${startLine}: ${severity}: ${oneLine(message, MESSAGE)}${who ? ` (${oneLine(who)})` : ""}`;
  });
  return found.length === 0 ? MEND : FIX + found.join("\n");
}

/** The range with all lines of the findings. */
function spanning(findings: vscode.Diagnostic[], range: vscode.Range): vscode.Range {
  return findings.reduce((all, each) => all.union(each.range), range);
}

/** What is selected, or the whole lines where nothing is. */
function attachment(document: vscode.TextDocument, range: vscode.Range): AttachmentInput {
  const { startLine, endLine } = lines(range);
  const whole = new vscode.Range(startLine - 1, 0, endLine, 0);
  const text = document.getText(range.isEmpty || range.isSingleLine ? whole : range);
  return { kind: "selection", path: document.uri.fsPath, startLine, endLine, text };
}
