import { split } from "../src/hunks";
import type { Hunk, HunkState, Proposal, ProposedFile, Row, RowVersion } from "../src/protocol";

/** A hunk that replaces old lines, which begin at that line of the base. */
export function hunk(
  hunkId: string,
  oldStart: number,
  oldText: string,
  newText: string,
  state: HunkState = "pending",
  reviewed = false,
): Hunk {
  return {
    hunkId,
    oldStart,
    oldLines: split(oldText).length,
    newStart: 0,
    newLines: split(newText).length,
    oldText,
    newText,
    state,
    editedByUser: false,
    reason: null,
    appliedText: null,
    reviewed,
    explanation: "",
  };
}

export function file(
  path: string,
  baseText: string,
  hunks: Hunk[],
  more: Partial<ProposedFile> = {},
): ProposedFile {
  return {
    path,
    change: "edit",
    newPath: null,
    mode: null,
    baseSha256: "",
    baseVersion: null,
    baseText,
    baseBlob: null,
    hunks,
    added: 0,
    removed: 0,
    encoding: "utf-8",
    finalNewline: true,
    unsaved: false,
    checks: [],
    ...more,
  };
}

/** A binary file that is replaced by a bigger one. */
export function row(rowId: string, path: string, more: Partial<Row> = {}): Row {
  return {
    rowId,
    kind: "file",
    path,
    newPath: null,
    before: version({ size: 2048 }),
    after: version({ size: 4096 }),
    state: "pending",
    reason: null,
    reviewed: false,
    title: "binary file, 4,096 bytes",
    lines: [],
    needs: [],
    undecidable: "",
    digest: rowId,
    committed: [],
    earlier: [],
    turnId: "t",
    ...more,
  };
}

export function version(more: Partial<RowVersion> = {}): RowVersion {
  return {
    kind: "file",
    size: 0,
    mode: 0o644,
    fileId: "",
    target: "",
    picture: null,
    mediaType: "",
    madeAbove: 0,
    ...more,
  };
}

export function proposal(
  proposalId: string,
  turnId: string,
  files: ProposedFile[],
  rows: Row[] = [],
): Proposal {
  return {
    proposalId,
    turnId,
    agentId: null,
    draft: false,
    runs: [],
    rows,
    toolCallIds: [`call-${proposalId}`],
    version: 1,
    state: "pending",
    files,
  };
}
