import { split } from "../src/review/hunks";
import type { Hunk, HunkState, LineRange, Proposal, ProposedFile, Row, RowVersion } from "../src/protocol";

/** A hunk with the lines of the base that it replaces. */
export interface BaseHunk extends Hunk {
  base: LineRange;
}

/** A hunk that replaces old lines, the first of which is that of the base, from 1; or inserts behind that line. */
export function hunk(
  hunkId: string,
  line: number,
  oldText: string,
  newText: string,
  state: HunkState = "pending",
  reviewed = false,
): BaseHunk {
  const start = oldText === "" ? line : line - 1;
  return {
    hunkId,
    base: { start, end: start + split(oldText).length },
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
function placed(hunks: BaseHunk[]): BaseHunk[] {
  let [present, proposed] = [0, 0];
  return [...hunks]
    .sort((a, b) => a.base.start - b.base.start)
    .map((each) => {
      const oldLines = each.base.end - each.base.start;
      const newLines = split(each.newText).length;
      const here = PRESENT.has(each.state) ? newLines : oldLines;
      const there = PROPOSED.has(each.state) ? newLines : oldLines;
      const [start, from] = [each.base.start + present, each.base.start + proposed];
      present += here - oldLines;
      proposed += there - oldLines;
      return {
        ...each,
        ...meaning(each.state, each.reviewed),
        lines: { start, end: start + here },
        proposedLines: { start: from, end: from + there },
      };
    });
}

export function file(
  path: string,
  baseText: string,
  hunks: BaseHunk[],
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
