import * as vscode from "vscode";
import { called, entries, type Entry, extent } from "./changes";
import type { SessionState } from "../protocol";
import { rowIcon } from "./rows";
import { summary } from "./list";
import { plain, titled } from "../editor/visible";

/** A session, or an entry of one. */
export interface Choice extends vscode.QuickPickItem {
  sessionId?: string;
  entry?: Entry;
}

/** The files that wait, each session's under its name. */
export function grouped(owners: SessionState[]): Choice[] {
  return owners.flatMap((owner) => {
    const found = entries([owner]);
    const where = extent(found.flatMap(({ targets }) => targets));
    return [
      { label: plain(titled(owner)), kind: vscode.QuickPickItemKind.Separator },
      {
        label: `$(diff-multiple) Review ${where} of ${plain(titled(owner))}`,
        sessionId: owner.sessionId,
      },
      ...found.map((entry) => ({
        label: `$(${entry.row === undefined ? "file" : rowIcon(entry.row)}) ${plain(called(entry.path, entry.row))}`,
        description: plain(summary(entry)),
        entry,
      })),
    ];
  });
}
