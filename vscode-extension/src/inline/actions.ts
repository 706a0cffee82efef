import * as vscode from "vscode";
import { roots } from "../daemon/client";
import { findingsOf, lines, type Place } from "../editor/context";
import { contains } from "../editor/paths";
import type { AttachmentInput, Finding } from "../protocol";
import { fixTerminal, fixTest } from "../daemon/remedies";
import { terminalOutput, terminalSelection } from "../daemon/terminal";
import { oneLine } from "../editor/visible";

/** What is said of lines without findings, and before findings; the same as for editors without a plugin. */
const MEND = "Find what is wrong with these lines and fix it.";
const FIX = "Fix these problems:\n";
const EXPLAIN = "Explain these lines.";
const TESTS = "Write tests for these lines, in the style of the existing tests.";
const DOCUMENT = "Write documentation comments for these lines, in the style of the file. Change no code.";
/** Characters of a finding's message. */
const MESSAGE = 500;

const { QuickFix, RefactorRewrite, Empty } = vscode.CodeActionKind;
/** Kinds of what changes nothing here: VS Code lists them after all others. */
const EXPLAINING = Empty.append("amanu").append("explain");
const TESTING = Empty.append("amanu").append("test");
const ASKING = Empty.append("amanu").append("ask");

interface Doings {
  /** Send it at once, into the running turn if there is one. */
  say(text: string, attachments: AttachmentInput[]): Promise<void>;
  /** Lay it into the prompt box. */
  attach(attachment: AttachmentInput): Promise<void>;
}

/** The code actions on lines of the workspace, and *Fix with Amanu* elsewhere. The light bulb comes by itself only where
 * something is found. */
export class Actions implements vscode.CodeActionProvider, vscode.Disposable {
  private readonly subscriptions: vscode.Disposable[];

  constructor(doings: Doings, attempt: (work: () => Promise<void>) => Promise<unknown>) {
    const on = (name: string, work: (...given: never[]) => Promise<void>) =>
      vscode.commands.registerCommand(name, (...given: never[]) => attempt(() => work(...given)));
    this.subscriptions = [
      vscode.languages.registerCodeActionsProvider({ scheme: "file" }, this, {
        providedCodeActionKinds: [QuickFix, RefactorRewrite, EXPLAINING, TESTING, ASKING],
      }),
      on("amanu.fix", (about: AttachmentInput, findings: Finding[]) =>
        doings.say(request(findings), [about]),
      ),
      on("amanu.explain", (about: AttachmentInput) => doings.say(EXPLAIN, [about])),
      on("amanu.writeTests", async (place: Place) => {
        const { document, lines } = await around(place);
        await doings.say(TESTS, [attachment(document, new vscode.Range(lines.start, 0, lines.end, 0))]);
      }),
      on("amanu.document", async (place: Place) => {
        await vscode.commands.executeCommand("amanu.editInline", await around(place), DOCUMENT);
      }),
      on("amanu.ask", (about: AttachmentInput) => doings.attach(about)),
      on("amanu.fixTest", (given) => fixTest(doings.say, given)),
      on("amanu.fixTerminal", async () => fixTerminal(doings.say, await terminalOutput())),
      on("amanu.fixTerminalSelection", async () => fixTerminal(doings.say, await terminalSelection())),
      on("amanu.attachTerminal", async () => {
        const selected = await terminalSelection();
        if (selected !== undefined) await doings.attach(selected);
      }),
    ];
  }

  provideCodeActions(
    document: vscode.TextDocument,
    range: vscode.Range,
    { diagnostics, triggerKind }: Pick<vscode.CodeActionContext, "diagnostics" | "triggerKind">,
  ): vscode.CodeAction[] {
    if (!roots().some((folder) => contains(folder, document.uri.fsPath))) return [];
    const others = diagnostics.filter(({ source }) => source !== "amanu");
    const invoked = triggerKind === vscode.CodeActionTriggerKind.Invoke;
    const actions: vscode.CodeAction[] = [];
    if (others.length > 0 || (!range.isEmpty && invoked)) {
      const about = attachment(document, range.isEmpty ? spanning(others, range) : range);
      const fix = action("Fix with Amanu", QuickFix, "amanu.fix", about, findingsOf(others));
      fix.diagnostics = others;
      actions.push(fix);
    }
    if (!invoked) return actions;
    const about = attachment(document, range);
    const place: Place = { document, lines: lines(range) };
    return [
      ...actions,
      action("Edit with Amanu…", RefactorRewrite, "amanu.editInline", place),
      action("Document with Amanu", RefactorRewrite, "amanu.document", place),
      action("Explain with Amanu", EXPLAINING, "amanu.explain", about),
      action("Write Tests with Amanu", TESTING, "amanu.writeTests", place),
      action("Ask Amanu About This…", ASKING, "amanu.ask", about),
    ];
  }

  dispose(): void {
    for (const each of this.subscriptions) each.dispose();
  }
}

function action(
  title: string,
  kind: vscode.CodeActionKind,
  command: string,
  ...given: unknown[]
): vscode.CodeAction {
  const made = new vscode.CodeAction(title, kind);
  made.command = { title, command, arguments: given };
  return made;
}

/** What to say of lines with these findings. */
export function request(findings: Finding[]): string {
  const found = findings.map(({ lines, severity, message, source, code }) => {
    const who = `${source} ${code}`.trim();
    return `${lines.start + 1}: ${severity}: ${oneLine(message, MESSAGE)}${who ? ` (${oneLine(who)})` : ""}`;
  });
  return found.length === 0 ? MEND : FIX + found.join("\n");
}

/** The whole function or class that a single line is in, as far as VS Code knows; several lines as they are. */
async function around(place: Place): Promise<Place> {
  const { document } = place;
  const { start, end } = place.lines;
  if (end > start + 1) return place;
  const symbols = await vscode.commands.executeCommand<(vscode.DocumentSymbol | vscode.SymbolInformation)[]>(
    "vscode.executeDocumentSymbolProvider",
    document.uri,
  );
  const range = innermost((symbols ?? []).filter(nested), start);
  return range === undefined ? place : { document, lines: lines(range) };
}

function nested(symbol: vscode.DocumentSymbol | vscode.SymbolInformation): symbol is vscode.DocumentSymbol {
  return "children" in symbol;
}

/** The range of the innermost of these with more than one line that holds the line (from 0). */
export function innermost(
  symbols: Pick<vscode.DocumentSymbol, "range" | "children">[],
  line: number,
): vscode.Range | undefined {
  const holding = symbols.find(({ range }) => range.start.line <= line && line <= range.end.line);
  if (holding === undefined || holding.range.start.line === holding.range.end.line) return undefined;
  return innermost(holding.children, line) ?? holding.range;
}

/** The range with all lines of the findings. */
function spanning(findings: vscode.Diagnostic[], range: vscode.Range): vscode.Range {
  return findings.reduce((all, each) => all.union(each.range), range);
}

/** What is selected, or the whole lines where nothing is. */
function attachment(document: vscode.TextDocument, range: vscode.Range): AttachmentInput {
  const taken = lines(range);
  const whole = new vscode.Range(taken.start, 0, taken.end, 0);
  const text = document.getText(range.isEmpty || range.isSingleLine ? whole : range);
  return { kind: "selection", path: document.uri.fsPath, lines: taken, text };
}
