import { split } from "./hunks";
import type { HunkState, ProposedFile, Row, RowKind, RowVersion } from "../protocol";
import { oneLine, visible } from "../editor/visible";

/** Characters of a title. */
const TITLE = 200;

/** The states of a change that is in the workspace already. */
const DONE: HunkState[] = ["accepted", "applied", "undoing"];

const files = new WeakMap<Row, ProposedFile>();

/**
 * The row as a file of one hunk, whose lines say what is there before and after, so that code that handles changes has
 * only files and hunks to handle. The same row always gives the same file.
 */
export function asFile(row: Row): ProposedFile {
  const known = files.get(row);
  if (known !== undefined) return known;
  const file = described(row);
  files.set(row, file);
  return file;
}

/** The title on one line. */
export function rowTitle({ title }: Row): string {
  return oneLine(title, TITLE);
}

/** Its icon, one of VS Code's own (codicons). */
export function rowIcon(row: Row): string {
  return row.before?.picture || row.after?.picture ? "file-media" : ICONS[row.kind];
}

/** The path of its file in the workspace now; undefined where there is no file to be opened. */
export function openable({ kind, path, presentPath, before, after, state }: Row): string | undefined {
  if (kind === "git") return undefined;
  if (kind === "mode") return path;
  const done = DONE.includes(state);
  const now = done ? after : before;
  return now?.kind === "file" ? presentPath : undefined;
}

const ICONS: Record<RowKind, string> = {
  file: "file-binary",
  link: "file-symlink-file",
  folder: "folder",
  mode: "gear",
  deletion: "trash",
  rename: "arrow-right",
  git: "source-control",
};

function described(row: Row): ProposedFile {
  const { rowId, kind, path, newPath, state, reason, reviewed } = row;
  const oldText = text(kind === "mode" ? [] : version(row.before)); // its title says what the bits were
  const newText = text([rowTitle(row), ...row.lines.map((line) => line.text)]);
  return {
    path,
    change: kind === "deletion" ? "delete" : kind === "rename" ? "rename" : "edit",
    newPath,
    mode: null,
    baseSha256: "",
    baseVersion: null,
    baseText: oldText,
    baseBlob: null,
    hunks: [
      {
        hunkId: rowId,
        oldText,
        newText,
        state,
        editedByUser: false,
        reason,
        appliedText: null,
        reviewed,
        explanation: "",
        lines: { start: 0, end: split(oldText).length },
        proposedLines: { start: 0, end: split(newText).length },
        waits: row.waits,
        verbs: row.verbs,
      },
    ],
    presentPath: row.presentPath,
    added: 0,
    removed: 0,
    encoding: "utf-8",
    finalNewline: true,
    unsaved: false,
    checks: [],
  };
}

/** The old side in words; the title says what the new one is. */
function version(side: RowVersion | null): string[] {
  if (side === null) return [];
  if (side.kind === "folder") return ["Folder"];
  if (side.kind === "link") return [`Link to ${side.target}`];
  return [`${side.size.toLocaleString("en")} bytes`];
}

function text(lines: string[]): string {
  return lines.map(visible).join("\n");
}
