import * as vscode from "vscode";
import { name, plural, type Row, rows } from "../changes";
import type { SessionState } from "../protocol";
import { summary } from "../scm";
import { plain, titled } from "../visible";

/** A session, or a file of one. */
export interface Choice extends vscode.QuickPickItem {
  sessionId?: string;
  row?: Row;
}

/** The files that wait, each session's under its name. */
export function grouped(owners: SessionState[]): Choice[] {
  return owners.flatMap((owner) => {
    const found = rows([owner]);
    return [
      { label: plain(titled(owner)), kind: vscode.QuickPickItemKind.Separator },
      {
        label: `$(diff-multiple) Review ${plural(found.length, "file")} of ${plain(titled(owner))}`,
        sessionId: owner.sessionId,
      },
      ...found.map((row) => ({ label: `$(file) ${plain(name(row.path))}`, description: summary(row), row })),
    ];
  });
}
