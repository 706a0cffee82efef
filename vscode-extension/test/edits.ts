import { split } from "../src/review/hunks";
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
    lines: { start: 0, end: 0 },
    proposedLines: { start: 0, end: 0 },
    ...meaning(state, reviewed),
  };
}

/** The daemon's fields for a state. */
export function meaning(state: HunkState, reviewed: boolean): Pick<Hunk, "waits" | "verbs"> {
  if (state === "pending" || state === "conflicted")
    return { waits: "decision", verbs: ["accept", "reject"] };
  if (state === "applied" && !reviewed) return { waits: "review", verbs: ["keep", "undo"] };
  if (state === "applied") return { waits: "", verbs: ["undo"] };
  return { waits: "", verbs: state === "reverted" ? ["redo"] : [] };
}

const PRESENT = new Set<HunkState>(["accepted", "applied", "undoing"]);
const PROPOSED = new Set<HunkState>(["pending", "conflicted", ...PRESENT]);

/** The hunks with their places, as the daemon tells them. */
function placed(hunks: Hunk[]): Hunk[] {
  let [present, proposed] = [0, 0];
  return [...hunks]
    .sort((a, b) => first(a) - first(b))
    .map((each) => {
      const newLines = split(each.newText).length;
      const here = PRESENT.has(each.state) ? newLines : each.oldLines;
      const there = PROPOSED.has(each.state) ? newLines : each.oldLines;
      const [start, from] = [first(each) + present, first(each) + proposed];
      present += here - each.oldLines;
      proposed += there - each.oldLines;
      return {
        ...each,
        ...meaning(each.state, each.reviewed),
        lines: { start, end: start + here },
        proposedLines: { start: from, end: from + there },
      };
    });
}

function first({ oldStart, oldLines }: Hunk): number {
  return oldLines === 0 ? oldStart : oldStart - 1;
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
    hunks: placed(hunks),
    added: 0,
    removed: 0,
    encoding: "utf-8",
    finalNewline: true,
    unsaved: false,
    checks: [],
    presentPath:
      more.change === "rename" && hunks.some(({ state }) => PRESENT.has(state))
        ? (more.newPath ?? path)
        : path,
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
    presentPath: (PRESENT.has(more.state ?? "pending") && more.newPath) || (more.path ?? path),
    ...meaning(more.state ?? "pending", more.reviewed ?? false),
    ...(more.undecidable ? { verbs: [] } : {}),
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
