import type * as vscode from "vscode";
import type { Target } from "./changes";
import { locate, type Place } from "./hunks";
import { PROPOSED, type Proposals } from "./proposals";
import type { Hunk } from "../protocol";

/** A change, and where it stands in a document. */
export interface LocatedChange extends Place {
  target: Target;
}

export type Wanted = (hunk: Hunk) => boolean;

const waiting: Wanted = (hunk) => hunk.waits !== "";

/** Where in documents the changes stand: proposed text in a diff, applied text and what would be replaced in the file. */
export class Places {
  constructor(private readonly proposals: Pick<Proposals, "all" | "waiting" | "target" | "places">) {}

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

  /** In the order of the text. A side with no lines stands before the line at its start. */
  in(document: vscode.TextDocument, wanted = waiting): LocatedChange[] {
    return this.targets(document, wanted)
      .flatMap((target) => {
        const { baseText, baseBlob, hunks } = target.file;
        const base = baseBlob === null ? (baseText ?? "") : undefined;
        const places =
          document.uri.scheme === PROPOSED
            ? this.proposals.places(document).filter(({ hunk }) => wanted(hunk))
            : locate(document.getText(), base, hunks, wanted);
        return places.map((place) => ({ ...place, target }));
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
      target.file.hunks
        .filter(waiting)
        .sort((a, b) => a.oldStart - b.oldStart)
        .map((hunk) => changeKey({ target, hunk })),
    );
    return { of: new Map(keys.map((key, at) => [key, at + 1])), count: keys.length };
  }
}

export function changeKey({ target, hunk }: Pick<LocatedChange, "target" | "hunk">): string {
  return `${target.proposal.proposalId} ${hunk.hunkId}`;
}
