import * as vscode from "vscode";
import { isDecidable, needing, type Target } from "./changes";
import { lineCounts } from "./hunks";
import type { Merge } from "./merge";
import { PROPOSED, type Proposals } from "./proposals";
import type { Hunk } from "../protocol";
import type { Sessions } from "../sessions/sessions";
import { plain } from "../editor/visible";
import { why } from "./why";
import { changeKey, type LocatedChange, type Places } from "./places";

/** What yes and no are called. */
const WORDS = {
  open: ["Accept", "Reject"],
  conflicted: ["Try again", "Reject"],
  review: ["Keep", "Undo"],
} as const;

/** What a change of a whole file is called. */
const WHOLE = { edit: "", create: " the new file", delete: " the deletion", rename: " the rename" } as const;

/**
 * Above each change a bar: yes, no, which of how many, previous and next. Where the change's text is not on screen, in
 * the file itself, it offers to show it and nothing that says yes.
 */
export class Lenses implements vscode.CodeLensProvider, vscode.HoverProvider {
  private readonly changed = new vscode.EventEmitter<void>();
  readonly onDidChangeCodeLenses = this.changed.event;

  constructor(
    private readonly places: Places,
    private readonly proposals: Pick<Proposals, "whose">,
    private readonly sessions: Pick<Sessions, "get">,
    private readonly merge: Pick<Merge, "fits">,
  ) {}

  refresh(): void {
    this.changed.fire();
  }

  provideCodeLenses(document: vscode.TextDocument): vscode.CodeLens[] {
    const changes = this.places.in(document);
    const last = Math.max(0, document.lineCount - 1);
    const lens = (line: number, title: string, command: string, ...args: unknown[]) => {
      const at = Math.min(line, last);
      return new vscode.CodeLens(new vscode.Range(at, 0, at, 0), { title, command, arguments: args });
    };
    const proposed = document.uri.scheme === PROPOSED;
    // what is decided already looks like the rest in the diff
    const applied = ({ state, waits }: Hunk) => state === "applied" && waits === "";
    const decided = (proposed ? this.places.in(document, applied) : [])
      .filter(({ lines }) => lines > 0)
      .map(({ start }) => lens(start, "$(pass) applied", ""));
    const numbers = new Map(
      changes.map(({ target: { sessionId } }) => [sessionId, this.places.numbers(sessionId)]),
    );
    const bars = changes.flatMap((change) => {
      const { target, hunk, start } = change;
      const args = [target.proposal.proposalId, target.file.path, hunk.hunkId];
      const own = (title: string, command: string) => lens(start, title, command, ...args);
      const { of, count } = numbers.get(target.sessionId) ?? { of: new Map<string, number>(), count: 0 };
      return [
        ...answers(change, proposed, this.merge.fits(change)).map(([title, command]) => own(title, command)),
        ...(count < 2
          ? []
          : [
              own(`${of.get(changeKey(change))} of ${count}`, "amanu.openDiff"),
              own("$(arrow-up)", "amanu.previousHunk"),
              own("$(arrow-down)", "amanu.nextHunk"),
            ]),
        ...(change === changes[0] && proposed ? byCells(target) : []).map(([title, command]) =>
          own(title, command),
        ),
        ...named(this.proposals.whose(target.sessionId)).map((title) => lens(start, title, "")),
      ];
    });
    const all = [...numbers.keys()].flatMap((sessionId) => {
      const own = changes.filter(({ target }) => target.sessionId === sessionId);
      return ofAll(own, proposed).map(([title, command, ...args]) => lens(0, title, command, ...args));
    });
    return [...all, ...bars, ...decided];
  }

  /** Why a change is there: nothing in it is more than text. */
  provideHover(document: vscode.TextDocument, position: vscode.Position): vscode.Hover | undefined {
    const found = this.places
      .in(document)
      .filter(({ start, lines }) => position.line >= start && position.line < start + Math.max(1, lines))
      .map((change) => {
        const { items = [] } = this.sessions.get(change.target.sessionId)?.state ?? {};
        return why(items, change.target, change, document.uri.scheme !== PROPOSED);
      });
    return found.length === 0 ? undefined : new vscode.Hover(found);
  }
}

type Answer = [title: string, command: string, ...args: string[]];

function named(session: string | undefined): string[] {
  return session === undefined ? [] : [`$(comment-discussion) ${plain(session)}`];
}

function answers({ target, hunk }: LocatedChange, proposed: boolean, canMerge: boolean): Answer[] {
  const [yes, no] =
    WORDS[hunk.waits === "review" ? "review" : hunk.state === "conflicted" ? "conflicted" : "open"];
  if (target.row !== undefined && !isDecidable(target)) return [[plain(target.row.undecidable), ""]];
  const what = WHOLE[target.file.change];
  const { removed, added } = lineCounts(hunk);
  const lines = `−${removed} +${added}`;
  const refuse: Answer = [`$(${no === "Undo" ? "discard" : "x"}) ${no}${what}`, "amanu.rejectHunk"];
  const agree: Answer = [`$(check) ${yes}${what}${needing(target.row)}`, "amanu.acceptHunk"];
  const settle: Answer[] = canMerge ? [["$(git-merge) Merge…", "amanu.mergeHunk"]] : [];
  if (hunk.state === "conflicted") settle.push(["$(sparkle) Ask Amanu to redo it", "amanu.retryHunk"]);
  if (proposed) return [agree, ...settle, refuse];
  if (hunk.waits === "review") return [agree, refuse, [lines, "amanu.openDiff"]];
  return [[`Amanu proposes ${lines}: Review`, "amanu.openDiff"], ...settle, refuse];
}

/** In the editor of several files a notebook is the text it is made of. */
function byCells({ file, row }: Target): Answer[] {
  const isNotebook = row === undefined && file.path.endsWith(".ipynb");
  return isNotebook ? [["$(notebook) Compare cells", "amanu.openDiff"]] : [];
}

/** What is offered for all changes of a session in a document that has several. */
function ofAll(changes: LocatedChange[], proposed: boolean): Answer[] {
  const [first] = changes;
  if (first === undefined || changes.length < 2) return [];
  const { sessionId, proposal, file } = first.target;
  const open = changes.some(({ hunk }) => hunk.waits === "decision");
  const [yes, no] = WORDS[open ? "open" : "review"];
  const refuse: Answer = [`$(${open ? "close-all" : "discard"}) ${no} all`, "amanu.rejectFile", sessionId];
  if (open && !proposed)
    return [
      [`Amanu proposes ${changes.length} changes: Review`, "amanu.openDiff", proposal.proposalId, file.path],
      refuse,
    ];
  return [[`$(check-all) ${yes} all ${changes.length}`, "amanu.acceptFile", sessionId], refuse];
}
