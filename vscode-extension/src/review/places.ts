import * as vscode from "vscode";
import type { Target } from "./changes";
import { LineEdits } from "./lineEdits";
import { PROPOSED, type Proposals } from "./proposals";
import type { Hunk } from "../protocol";

/** A change, and the lines in a document where it stands, from 0. `lines` may be 0: then before line `start`. */
export interface LocatedChange {
  target: Target;
  hunk: Hunk;
  start: number;
  lines: number;
}

export type Place = Pick<LocatedChange, "hunk" | "start" | "lines">;
export type Wanted = (hunk: Hunk) => boolean;

const waiting: Wanted = (hunk) => hunk.waits !== "";

/**
 * Where in documents the changes stand: proposed text in a diff, applied text and what would be replaced in the file.
 * The daemon says it of a version that it has seen; what was typed since shifts it.
 */
export class Places implements vscode.Disposable {
  private readonly edits = new WeakMap<vscode.TextDocument, LineEdits>();
  private readonly subscription = vscode.workspace.onDidChangeTextDocument((change) => this.note(change));

  constructor(
    private readonly proposals: Pick<Proposals, "all" | "waiting" | "target" | "shown" | "since">,
  ) {}

  dispose(): void {
    this.subscription.dispose();
  }

  /** The files of proposals that the document shows, with something wanted in them. */
  targets({ uri }: vscode.TextDocument, wanted = waiting): Target[] {
    if (uri.scheme === PROPOSED) {
      const target = this.proposals.target(uri);
      return target === undefined ? [] : [target];
    }
    if (uri.scheme !== "file") return [];
    return this.proposals.all.filter(
      ({ file, row }) => !row && file.presentPath === uri.path && file.hunks.some(wanted),
    );
  }

  /** The changes in a document, in the order of its text. */
  in(document: vscode.TextDocument, wanted = waiting): LocatedChange[] {
    const proposed = document.uri.scheme === PROPOSED;
    return this.targets(document, wanted)
      .flatMap((target) => {
        const hunks = proposed ? this.proposals.shown(document.uri) : target.file.hunks;
        return hunks.filter(wanted).map((hunk) => {
          const lines = proposed ? hunk.proposedLines : hunk.lines;
          const since = proposed ? this.proposals.since(document.uri) : target.file.baseVersion;
          const { start, end } = this.shift(document, lines, since);
          return { target, hunk, start, lines: end - start };
        });
      })
      .sort((a, b) => a.start - b.start);
  }

  /** The change the line is in. The line above belongs to it, too: its lenses stand there. */
  at(document: vscode.TextDocument, line: number, wanted = waiting): LocatedChange | undefined {
    const covers = ({ start, lines }: Place) => line >= start - 1 && line < start + Math.max(1, lines);
    const found = this.in(document, wanted);
    return found.find(({ start }) => start === line) ?? found.find(covers);
  }

  /** Which of all that waits in its session a change is, by `changeKey`, and of how many. */
  numbers(sessionId: string): { of: ReadonlyMap<string, number>; count: number } {
    const own = this.proposals.waiting.filter((target) => target.sessionId === sessionId);
    const keys = own.flatMap((target) =>
      target.file.hunks.filter(waiting).map((hunk) => changeKey({ target, hunk })),
    );
    return { of: new Map(keys.map((key, at) => [key, at + 1])), count: keys.length };
  }

  private shift(document: vscode.TextDocument, lines: Hunk["lines"], since: number | null): Hunk["lines"] {
    return this.edits.get(document)?.shift(lines, since) ?? lines;
  }

  /** A document of ours that is clean has the text that was read, however it came to it. */
  private note({ document, contentChanges }: vscode.TextDocumentChangeEvent): void {
    const { scheme } = document.uri;
    if (scheme !== "file" && scheme !== PROPOSED) return;
    const edits = this.edits.get(document) ?? new LineEdits();
    this.edits.set(document, edits);
    if (scheme === PROPOSED && !document.isDirty) edits.clear();
    else if (contentChanges.length > 0) edits.add(document.version, contentChanges);
  }
}

export function changeKey({ target, hunk }: Pick<LocatedChange, "target" | "hunk">): string {
  return `${target.proposal.proposalId} ${hunk.hunkId}`;
}
