import type { LineRange } from "../protocol";

/** Lines [start, end) of a text, from 0, that gave way to `added` lines. */
export interface LineEdit extends LineRange {
  added: number;
}

/** A change of a document as VS Code tells it. */
interface ContentChange {
  range: { start: { line: number; character: number }; end: { line: number; character: number } };
  text: string;
}

/** Versions of a document of which the edits are kept; the daemon tells anew where hunks stand long before that. */
const KEPT = 5000;

/** The edits of a document since it was opened: what the daemon says of one version is shifted to the present one. */
export class LineEdits {
  private readonly versions: { version: number; edits: LineEdit[] }[] = [];

  /** The edits that made this version. */
  add(version: number, changes: readonly ContentChange[]): void {
    this.versions.push({ version, edits: changes.map(lineEdit) });
    if (this.versions.length > KEPT) this.versions.shift();
  }

  clear(): void {
    this.versions.length = 0;
  }

  /** The present place of lines of an earlier version; `since`: null where that was the file on disk. */
  shift(lines: LineRange, since: number | null): LineRange {
    const first = (since ?? 0) > (this.versions.at(-1)?.version ?? 0) ? 0 : (since ?? 0); // another opening's version
    return this.versions
      .filter(({ version }) => version > first)
      .flatMap(({ edits }) => edits)
      .reduce(shifted, lines);
  }
}

/** The place of lines after an edit. An edit inside of them changes only their number; what is deleted whole leaves its place. */
export function shifted({ start, end }: LineRange, edit: LineEdit): LineRange {
  const grown = edit.added - (edit.end - edit.start);
  if (edit.end <= start) return { start: start + grown, end: end + grown };
  if (edit.start >= end) return { start, end };
  if (start <= edit.start && edit.end <= end) return { start, end: end + grown };
  const after = edit.start + edit.added;
  return {
    start: start < edit.start ? start : edit.end < end ? after : Math.min(start, after),
    end: edit.end < end ? end + grown : start < edit.start ? edit.start : Math.min(end, after),
  };
}

/** An edit that begins or ends inside a line changes that line. */
export function lineEdit({ range: { start, end }, text }: ContentChange): LineEdit {
  const added = text.match(/\r\n|\r|\n/g)?.length ?? 0;
  const whole = start.character === 0 && end.character === 0 && (text === "" || /[\r\n]$/.test(text));
  return whole
    ? { start: start.line, end: end.line, added }
    : { start: start.line, end: end.line + 1, added: added + 1 };
}
