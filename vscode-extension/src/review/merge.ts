import * as vscode from "vscode";
import type { Pages } from "../editor/pages";
import { name } from "./changes";
import type { Edits } from "./edits";
import { split } from "./hunks";
import type { LocatedChange } from "./places";
import type { Proposals } from "./proposals";

/** VS Code's merge editor has no public command; git's extension opens it by this one, too. */
const OPEN = "_open.mergeEditor";
/** Told to VS Code, for menus. */
const OFFERED = "amanu.mergeOffered";
/** Said to the model. */
const BY_HAND = "The user merged this change into the file by hand.";

/** A change in conflict in VS Code's merge editor: the lines it was made for, the user's, and the proposed ones. */
export class Merge implements vscode.Disposable {
  /** By file the change that is merged there, and whether a result was saved. */
  private readonly underWay = new Map<string, { change: LocatedChange; isSaved: boolean }>();
  private readonly subscriptions: vscode.Disposable[];
  private known = false;

  constructor(
    private readonly pages: Pick<Pages, "keep">,
    private readonly edits: Pick<Edits, "resolve">,
    private readonly proposals: Pick<Proposals, "waiting">,
  ) {
    this.subscriptions = [
      vscode.workspace.onDidSaveTextDocument(({ uri }) => this.saved(uri)),
      vscode.window.tabGroups.onDidChangeTabs(({ closed }) => closed.forEach((tab) => void this.left(tab))),
    ];
    void this.look();
  }

  dispose(): void {
    for (const each of this.subscriptions) each.dispose();
  }

  /** Whether this VS Code can merge that change. */
  fits({ target: { file, row }, hunk }: Pick<LocatedChange, "target" | "hunk">): boolean {
    return this.known && row === undefined && file.change === "edit" && hunk.state === "conflicted";
  }

  /** The change, where it stands in the file. */
  async open(change: LocatedChange, document: vscode.TextDocument): Promise<void> {
    await document.save(); // VS Code would do it, which must not pass for the result
    const { base, proposed } = mergedTexts(document.getText(), change);
    const { uri } = document;
    const side = (which: string, text: string) => this.pages.keep(`${which}/${name(uri.path)}`, text);
    this.underWay.set(uri.toString(), { change, isSaved: false });
    await vscode.commands.executeCommand(OPEN, {
      base: side("merge-base", base),
      input1: { uri: side("merge-file", document.getText()), title: "Yours", detail: "In the file" },
      input2: {
        uri: side("merge-proposed", proposed),
        title: "Amanu’s",
        detail: "Proposed · save and close to finish",
      },
      output: uri,
    });
  }

  private async look(): Promise<void> {
    this.known = (await vscode.commands.getCommands(false)).includes(OPEN);
    await vscode.commands.executeCommand("setContext", OFFERED, this.known);
  }

  private saved(uri: vscode.Uri): void {
    const merging = this.underWay.get(uri.toString());
    if (merging !== undefined) merging.isSaved = true;
  }

  /** Its editor was closed: with a result that is in the file the conflict is over. */
  private async left({ input }: vscode.Tab): Promise<void> {
    const key = resultOf(input)?.toString() ?? "";
    const merging = this.underWay.get(key);
    if (merging === undefined) return;
    this.underWay.delete(key);
    if (!merging.isSaved) return;
    const { target, hunk } = merging.change;
    const { hunkId } = hunk;
    const now = this.proposals.waiting.find(
      ({ proposal, file }) =>
        proposal.proposalId === target.proposal.proposalId &&
        file.hunks.some((each) => each.hunkId === hunkId),
    );
    if (now === undefined) return; // decided meanwhile
    const hunks = [{ hunkId, decision: "reject" as const, reason: BY_HAND }];
    await this.edits.resolve(now.sessionId, now.proposal, { hunks, rows: [] });
  }
}

/** The file's text with the lines the change was made for, and with the proposed ones, in the place of the user's. */
export function mergedTexts(
  text: string,
  { hunk, start, lines }: Pick<LocatedChange, "hunk" | "start" | "lines">,
): { base: string; proposed: string } {
  const all = split(text);
  const ending = (words: string) => (text.includes("\r\n") ? words.replace(/\r?\n/g, "\r\n") : words);
  const [before, after] = [all.slice(0, start), all.slice(start + lines)];
  const having = (words: string) => [...before, ending(words), ...after].join("");
  return { base: having(hunk.oldText), proposed: having(hunk.newText) };
}

/** The file that a merge editor writes; its type is not public. */
function resultOf(input: unknown): vscode.Uri | undefined {
  return typeof input === "object" && input !== null && "result" in input
    ? (input.result as vscode.Uri)
    : undefined;
}
