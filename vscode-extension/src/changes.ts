import { DONE, OPEN, waits } from "./hunks";
import type {
  EditScope,
  Hunk,
  Proposal,
  ProposedFile,
  SeenProposal,
  SessionState,
  UndoneFile,
} from "./protocol";
import { visible } from "./visible";

/** What a session proposes. */
export type Proposing = Pick<SessionState, "sessionId" | "proposals">;

/** A file of a proposal, and the session it belongs to. */
export interface Target {
  sessionId: string;
  proposal: Proposal;
  file: ProposedFile;
}

/** All that waits in one file, in whichever proposals of whichever sessions. */
export interface Row {
  /** Where the file is now. */
  path: string;
  targets: Target[];
  /** Hunks that wait for a decision, that a rule applied and nobody looked at, and that do not fit any more. */
  open: number;
  review: number;
  conflicts: number;
  added: number;
  removed: number;
}

/** What is to be said of a turn's edits. */
export interface TurnEdits {
  files: number;
  /** Lines, of what is applied or may yet be. */
  added: number;
  removed: number;
  open: number;
  applied: number;
  undone: number;
}

export function targets(sessions: Proposing[]): Target[] {
  return sessions.flatMap(({ sessionId, proposals }) =>
    proposals.flatMap((proposal) => proposal.files.map((file) => ({ sessionId, proposal, file }))),
  );
}

/** Those with something that waits. */
export function waiting(sessions: Proposing[]): Target[] {
  return targets(sessions).filter(({ file }) => file.hunks.some((hunk) => waits(hunk) !== undefined));
}

/** Where the file is now: a rename may have been applied. */
export function whereabouts({ change, path, newPath, hunks }: ProposedFile): string {
  const moved = change === "rename" && hunks.some((hunk) => DONE.has(hunk.state));
  return moved ? (newPath ?? path) : path;
}

/** A file's name, and what becomes of the file. */
export function title(file: ProposedFile): string {
  const what = {
    edit: "",
    create: " (new file)",
    delete: " (deleted)",
    rename: ` → ${name(file.newPath ?? "")}`,
  }[file.change];
  return name(file.path) + what;
}

/** A file's name as it is shown. */
export function name(path: string): string {
  return visible(path.split(/[\\/]/).pop() ?? path).replaceAll("\n", "<U+000A>");
}

/** The files with something that waits, in the order in which they were first touched. */
export function rows(sessions: Proposing[]): Row[] {
  const found = new Map<string, Target[]>();
  for (const target of waiting(sessions)) {
    const path = whereabouts(target.file);
    found.set(path, [...(found.get(path) ?? []), target]);
  }
  return [...found].map(([path, group]) => {
    const hunks = group.flatMap(({ file }) => file.hunks).filter((hunk) => waits(hunk) !== undefined);
    return {
      path,
      targets: group,
      open: hunks.filter((hunk) => OPEN.has(hunk.state)).length,
      review: hunks.filter((hunk) => waits(hunk) === "review").length,
      conflicts: hunks.filter((hunk) => hunk.state === "conflicted").length,
      ...lines(
        group.map(({ file }) => file),
        (hunk) => waits(hunk) !== undefined,
      ),
    };
  });
}

/** What a turn's edits came to; undefined when it made none. */
export function turnEdits(proposals: Proposal[], turnId: string, plan?: string): TurnEdits | undefined {
  const ofTurn = proposals.filter((proposal) => proposal.turnId === turnId);
  const found = ofTurn.flatMap(({ files }) => files).filter(({ path }) => path !== plan);
  if (found.length === 0) return undefined;
  const hunks = found.flatMap((file) => file.hunks);
  const count = (test: (hunk: Hunk) => boolean) => hunks.filter(test).length;
  return {
    files: new Set(found.map(({ path }) => path)).size,
    ...lines(found, ({ state }) => state !== "rejected" && state !== "reverted"),
    open: count((hunk) => OPEN.has(hunk.state)),
    applied: count((hunk) => hunk.state === "applied"),
    undone: count((hunk) => hunk.state === "reverted"),
  };
}

/** The versions the user sees: what is decided counts for these alone. */
export function seen(proposals: Pick<Proposal, "proposalId" | "version">[]): SeenProposal[] {
  return proposals.map(({ proposalId, version }) => ({ proposalId, version }));
}

/** The proposals an `EditScope` is about. */
export function within(proposals: Proposal[], { proposalId, turnId, path }: EditScope): Proposal[] {
  return proposals.filter(
    (each) =>
      (!proposalId || each.proposalId === proposalId) &&
      (!turnId || each.turnId === turnId) &&
      (!path || each.files.some((file) => file.path === path || file.newPath === path)),
  );
}

/** The turn of the latest proposal with such a hunk. */
export function lastTurn(proposals: Proposal[], test: (hunk: Hunk) => boolean): string | undefined {
  return proposals.findLast(({ files }) => files.some((file) => file.hunks.some(test)))?.turnId;
}

/** What undoing does to a file, in words. */
export function undoing({ action, newPath, undone, skipped }: UndoneFile): string {
  const words = {
    edit: `takes back ${plural(undone.length, "change")}`,
    create: "brings it back",
    delete: "removes it: Amanu made it",
    rename: `gives it back its name, ${name(newPath ?? "")}`,
    none: "stays as it is",
  }[action];
  const why = [...new Set(skipped.map(({ reason }) => reason))].join(" ");
  return skipped.length === 0
    ? words
    : `${words} · ${plural(skipped.length, "change")} cannot be taken back: ${why}`;
}

export function plural(count: number, word: string): string {
  return `${count} ${word}${count === 1 ? "" : "s"}`;
}

/** Lines of those hunks. A renamed file has one hunk with all of its text: there the file says what has changed. */
function lines(found: ProposedFile[], test: (hunk: Hunk) => boolean): { added: number; removed: number } {
  const counted = found.flatMap((file) => {
    const hunks = file.hunks.filter((hunk) => test(hunk) && hunk.oldText !== hunk.newText); // a mere rename changes none
    if (file.change === "rename") return hunks.length > 0 ? [file] : [];
    return hunks.map(({ newLines, oldLines }) => ({ added: newLines, removed: oldLines }));
  });
  return {
    added: counted.reduce((sum, { added }) => sum + added, 0),
    removed: counted.reduce((sum, { removed }) => sum + removed, 0),
  };
}
