import type {
  EditScope,
  Hunk,
  Proposal,
  ProposedFile,
  Row,
  SeenProposal,
  SessionState,
  UndoneFile,
} from "../protocol";
import { lineCounts } from "./hunks";
import { asFile, rowTitle } from "./rows";
import { visible } from "../editor/visible";

/** What a session proposes. */
export type Proposing = Pick<SessionState, "sessionId" | "proposals">;

/** One thing that a proposal changes: a file, by its hunks, or a row. */
export interface Change {
  /** The file; if there is a row, its description in the form of a file. */
  file: ProposedFile;
  row?: Row;
}

/** A change, and the proposal and session it belongs to. */
export interface Target extends Change {
  sessionId: string;
  proposal: Proposal;
}

/** All that waits in one file, or as rows of one kind at one path, in any proposal of any session. */
export interface Entry {
  /** Its present path. */
  path: string;
  /** The latest row, if these are rows. */
  row?: Row;
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
  /** The number of files they are in, in words. */
  extent: string;
  /** Lines, of what is applied or may yet be. */
  added: number;
  removed: number;
  open: number;
  applied: number;
  undone: number;
}

/** All that a proposal changes: its files, each with the rows at its path below it, then the other rows. */
export function changesOf({ files, rows = [] }: Pick<Proposal, "files" | "rows">): Change[] {
  const found = rows.map((row): Change => ({ file: asFile(row), row }));
  const beside = (path: string) => found.filter(({ file }) => file.path === path);
  const paths = new Set(files.map(({ path }) => path));
  return [
    ...files.flatMap((file): Change[] => [{ file }, ...beside(file.path)]),
    ...found.filter(({ file }) => !paths.has(file.path)),
  ];
}

/** Everything in a proposal that is decided separately: its hunks, and its rows in the form of hunks. */
export function hunksOf(proposal: Pick<Proposal, "files" | "rows">): Hunk[] {
  return changesOf(proposal).flatMap(({ file }) => file.hunks);
}

/** The changes with only the hunks that pass the test; those without any are left out. */
export function withHunks<T extends Change>(changes: T[], test: (hunk: Hunk) => boolean): T[] {
  return changes
    .map((change) => ({ ...change, file: { ...change.file, hunks: change.file.hunks.filter(test) } }))
    .filter(({ file }) => file.hunks.length > 0);
}

export function targets(sessions: Proposing[]): Target[] {
  return sessions.flatMap(({ sessionId, proposals }) =>
    proposals.flatMap((proposal) =>
      changesOf(proposal).map((change) => ({ sessionId, proposal, ...change })),
    ),
  );
}

/** Those with something that waits. */
export function waiting(sessions: Proposing[]): Target[] {
  return targets(sessions).filter(({ file }) => file.hunks.some((hunk) => hunk.waits !== ""));
}

/** The name of what is changed, and what becomes of it. */
export function title({ file, row }: Change): string {
  if (row !== undefined) return `${called(file.presentPath, row)}: ${rowTitle(row)}`;
  const what = {
    edit: "",
    create: " (new file)",
    delete: " (deleted)",
    rename: ` → ${name(file.newPath ?? "")}`,
  }[file.change];
  return name(file.path) + what;
}

/** The name of what is changed at that path; both names of a rename. */
export function called(path: string, row?: Row): string {
  if (row?.kind === "git") return "the git repository";
  if (!row?.newPath) return name(path);
  const [from, to] = [name(row.path), name(row.newPath)];
  return `${from} → ${from === to ? `${name(row.newPath.slice(0, -to.length - 1))}/${to}` : to}`;
}

/** The number of files and folders the changes are in: "2 files and the git repository". */
export function extent(changes: Change[]): string {
  const git = changes.some(({ row }) => row?.kind === "git");
  const [folders, others] = [changes.filter(isFolder), changes.filter((each) => !isFolder(each))];
  const paths = others.filter(({ row }) => row?.kind !== "git").map(({ file }) => file.presentPath);
  const files = new Set(paths).size;
  return [
    ...(files > 0 || !(git || folders.length > 0) ? [plural(files, "file")] : []),
    ...(folders.length > 0 ? [plural(folders.length, "folder")] : []),
    ...(git ? ["the git repository"] : []),
  ].join(" and ");
}

function isFolder({ row }: Change): boolean {
  return [row?.before, row?.after].some((side) => side?.kind === "folder");
}

/** Whether it can be decided: the change a row stands for may be lost. */
export function isDecidable({ row }: Change): boolean {
  return !row?.undecidable;
}

/** The words that go after the yes to an open row: the number of changes that are accepted with it. */
export function needing(row: Row | undefined): string {
  if (row?.waits !== "decision" || row.needs.length === 0) return "";
  return ` with ${plural(row.needs.length, "change")} it needs`;
}

/** A file's name as it is shown. */
export function name(path: string): string {
  return visible(path.split(/[\\/]/).pop() ?? path).replaceAll("\n", "<U+000A>");
}

/** All that waits, by path, in the order in which the paths were first touched; at each path the hunks come first. */
export function entries(sessions: Proposing[]): Entry[] {
  const found = new Map<string, Map<string, Target[]>>();
  for (const target of waiting(sessions)) {
    const path = target.file.presentPath;
    const kinds = found.get(path) ?? new Map<string, Target[]>();
    const kind = target.row?.kind ?? "";
    found.set(path, kinds.set(kind, [...(kinds.get(kind) ?? []), target]));
  }
  return [...found].flatMap(([path, kinds]) =>
    [...kinds].sort(([a], [b]) => Number(a !== "") - Number(b !== "")).map(([, group]) => entry(path, group)),
  );
}

function entry(path: string, group: Target[]): Entry {
  const row = group.at(-1)?.row;
  const files = group.map(({ file }) => file);
  const hunks = files.flatMap((file) => file.hunks).filter((hunk) => hunk.waits !== "");
  return {
    path,
    ...(row === undefined ? {} : { row }),
    targets: group,
    open: hunks.filter((hunk) => hunk.waits === "decision").length,
    review: hunks.filter((hunk) => hunk.waits === "review").length,
    conflicts: hunks.filter((hunk) => hunk.state === "conflicted").length,
    ...lines(row === undefined ? files : [], (hunk) => hunk.waits !== ""),
  };
}

/** What a turn's edits came to; undefined when it made none. */
export function turnEdits(proposals: Proposal[], turnId: string, plan?: string): TurnEdits | undefined {
  const ofTurn = proposals.filter((proposal) => proposal.turnId === turnId);
  const found = ofTurn.flatMap(changesOf).filter(({ file }) => file.path !== plan);
  if (found.length === 0) return undefined;
  const hunks = found.flatMap(({ file }) => file.hunks);
  const count = (test: (hunk: Hunk) => boolean) => hunks.filter(test).length;
  const files = found.filter(({ row }) => row === undefined).map(({ file }) => file);
  return {
    extent: extent(found),
    ...lines(files, ({ state }) => state !== "rejected" && state !== "reverted"),
    open: count((hunk) => hunk.waits === "decision"),
    applied: count((hunk) => hunk.state === "applied"),
    undone: count((hunk) => hunk.state === "reverted"),
  };
}

/** The versions the user sees: what is decided counts for these alone. */
export function seen(proposals: Pick<Proposal, "proposalId" | "version">[]): SeenProposal[] {
  return proposals.map(({ proposalId, version }) => ({ proposalId, version }));
}

/** The scope of the hunks and rows of these changes, and no others. */
export function scopeOf(proposalId: string, changes: Change[]): EditScope {
  const hunkIds = changes
    .filter(({ row }) => row === undefined)
    .flatMap(({ file }) => file.hunks.map(({ hunkId }) => hunkId));
  const rowIds = changes.flatMap(({ row }) => row?.rowId ?? []);
  return {
    proposalId,
    ...(hunkIds.length > 0 ? { hunkIds } : {}),
    ...(rowIds.length > 0 ? { rowIds } : {}),
  };
}

/** The proposals an `EditScope` is about. */
export function within(proposals: Proposal[], { proposalId, turnId, path }: EditScope): Proposal[] {
  return proposals.filter(
    (each) =>
      (!proposalId || each.proposalId === proposalId) &&
      (!turnId || each.turnId === turnId) &&
      (!path || changesOf(each).some(({ file }) => file.path === path || file.newPath === path)),
  );
}

/** The turn of the latest proposal with a change that passes the test. */
export function lastTurn(proposals: Proposal[], test: (hunk: Hunk) => boolean): string | undefined {
  return proposals.findLast((proposal) => hunksOf(proposal).some(test))?.turnId;
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
    return hunks.map(lineCounts);
  });
  return {
    added: counted.reduce((sum, { added }) => sum + added, 0),
    removed: counted.reduce((sum, { removed }) => sum + removed, 0),
  };
}
