import { diffArrays } from "diff";
import type { Hunk, HunkState } from "../protocol";

/** Behind its state: whose text it is by now. In the file, a formatter may have changed it. */
export function altered(hunk: Hunk): string {
  if (!hunk.editedByUser) return "";
  return hunk.appliedText === null ? ", with your changes" : ", changed in the file since";
}

/** Where a hunk's new text stands in a composed text: lines, from 0. `lines` may be 0: then before line `start`. */
export interface Place {
  hunk: Hunk;
  start: number;
  lines: number;
}

/** What the proposed side of a diff shows: everything that is not refused. */
export const SHOWN: ReadonlySet<HunkState> = new Set<HunkState>([
  "pending",
  "conflicted",
  "accepted",
  "applied",
  "undoing",
]);
/** What stands in the file already. */
export const DONE: ReadonlySet<HunkState> = new Set<HunkState>(["accepted", "applied", "undoing"]);

/** The base with those of its hunks that are in one of the states; `own` are the user's own texts, by hunk. */
export function compose(
  base: string,
  hunks: Hunk[],
  states: ReadonlySet<HunkState>,
  own: ReadonlyMap<string, string> = new Map(),
): { text: string; places: Place[] } {
  const lines = split(base);
  const places = placesIn(hunks, states, own);
  const made: string[] = [];
  let at = 0;
  for (const { hunk } of places) {
    made.push(...lines.slice(at, begin(hunk)));
    at = begin(hunk) + hunk.oldLines;
    if (states.has(hunk.state)) made.push(own.get(hunk.hunkId) ?? hunk.newText);
    else made.push(...lines.slice(begin(hunk), at));
  }
  made.push(...lines.slice(at));
  return { text: made.join(""), places };
}

/** Where the hunks are in the text that `compose` makes, in order; this does not need the base. */
export function placesIn(
  hunks: Hunk[],
  states: ReadonlySet<HunkState>,
  own: ReadonlyMap<string, string> = new Map(),
): Place[] {
  let shift = 0;
  return [...hunks]
    .sort((a, b) => begin(a) - begin(b))
    .map((hunk) => {
      const chosen = states.has(hunk.state);
      const lines = chosen ? split(own.get(hunk.hunkId) ?? hunk.newText).length : hunk.oldLines;
      const start = begin(hunk) + shift;
      shift += lines - hunk.oldLines;
      return { hunk, start, lines };
    });
}

/** The user's own text of hunks, read from an edited copy of the composed text. */
export interface Own {
  texts: Map<string, string>;
  /** Something was edited outside of every hunk: that cannot be taken. */
  outside: boolean;
}

export function ownTexts(composed: string, places: Place[], edited: string): Own {
  const before = split(composed);
  const after = split(edited);
  const texts = new Map<string, string>();
  const changes = edits(before, after);
  let outside = false;
  const touched = new Map<Place, { from: number; shift: number }>();
  let shift = 0;
  for (const change of changes) {
    const place = places.find((each) => change.start >= each.start && change.end <= each.start + each.lines);
    if (place === undefined || place.hunk.waits !== "decision") outside = true;
    else {
      const known = touched.get(place);
      const grown = change.added - (change.end - change.start);
      touched.set(place, { from: known?.from ?? place.start + shift, shift: (known?.shift ?? 0) + grown });
    }
    shift += change.added - (change.end - change.start);
  }
  for (const [place, { from, shift: grown }] of touched) {
    const text = after.slice(from, from + place.lines + grown).join("");
    texts.set(place.hunk.hunkId, text);
  }
  return { texts, outside };
}

/**
 * Where hunks stand in the present text of a file: by their new lines where they are applied, else by their old ones,
 * for the user may have edited around them. `base`: undefined where it is not loaded; a hunk that has no lines there
 * then stands where the daemon last saw it. Without `wanted`: those that wait for something.
 */
export function locate(
  text: string,
  base: string | undefined,
  hunks: Hunk[],
  wanted: (hunk: Hunk) => boolean = (hunk) => hunk.waits !== "",
): Place[] {
  const lines = split(text).map(bare);
  const found = placesIn(hunks, DONE);
  const texts = new Map(
    hunks.map(({ hunkId, state, oldText, newText }) => [
      hunkId,
      split(DONE.has(state) ? newText : oldText).map(bare),
    ]),
  );
  const stands = ({ hunk, start }: Place) =>
    texts.get(hunk.hunkId)?.every((line, at) => line === lines[start + at]) ?? false;
  const exact = base === undefined ? found.every(stands) : same(lines, split(present(base, hunks)).map(bare));
  return found.flatMap((place) => {
    if (!wanted(place.hunk)) return [];
    if (exact) return [place];
    const start = nearest(lines, texts.get(place.hunk.hunkId) ?? [], place.start);
    return start === undefined ? [] : [{ ...place, start }];
  });
}

function same(one: string[], other: string[]): boolean {
  return one.length === other.length && one.every((line, at) => line === other[at]);
}

/** One proposal's part in a file, for `original`. */
export interface Part {
  /** Undefined where it is not known. */
  base: string | undefined;
  hunks: Hunk[];
}

/**
 * The text without our applied hunks of that sort, the latest proposal last in `parts`. Where two of them overlap, the
 * earlier one's old lines stand for both: what it replaced was there before the later one.
 */
export function original(text: string, parts: Part[], wanted: (hunk: Hunk) => boolean = () => true): string {
  const places = parts
    .flatMap(({ base, hunks }) =>
      locate(text, base, hunks, (hunk) => hunk.state === "applied" && wanted(hunk)),
    )
    .sort((a, b) => a.start - b.start);
  const lines = split(text);
  const made: string[] = [];
  let at = 0;
  for (const { hunk, start, lines: count } of places) {
    if (start < at) continue;
    made.push(...lines.slice(at, start), ...split(hunk.oldText));
    at = start + count;
  }
  return [...made, ...lines.slice(at)].join("");
}

/** The file's text as it was last seen. */
export function present(base: string, hunks: Hunk[]): string {
  return compose(base, hunks, DONE).text;
}

/** Line index in the base at which a hunk begins. A side with no lines names the line it comes after. */
function begin(hunk: Hunk): number {
  return hunk.oldLines === 0 ? hunk.oldStart : hunk.oldStart - 1;
}

function nearest(lines: string[], wanted: string[], from: number): number | undefined {
  if (wanted.length === 0) return undefined; // a pure insertion in a text that has moved: nothing to know it by
  for (let away = 0; away <= lines.length; away++)
    for (const start of away === 0 ? [from] : [from - away, from + away])
      if (start >= 0 && wanted.every((line, at) => lines[start + at] === line)) return start;
  return undefined;
}

/** Changed regions: lines [start, end) of `before` became `added` lines. Line ends alone are no change. */
function edits(before: string[], after: string[]): { start: number; end: number; added: number }[] {
  const found: { start: number; end: number; added: number }[] = [];
  let at = 0;
  let open: { start: number; end: number; added: number } | undefined;
  for (const part of diffArrays(before.map(bare), after.map(bare))) {
    const count = part.value.length;
    if (!part.added && !part.removed) {
      at += count;
      open = undefined;
      continue;
    }
    if (open === undefined) {
      open = { start: at, end: at, added: 0 };
      found.push(open);
    }
    if (part.removed) {
      at += count;
      open.end = at;
    } else open.added += count;
  }
  return found;
}

function bare(line: string): string {
  return line.replace(/[\r\n]+$/, "");
}

/** Lines with their ends. */
export function split(text: string): string[] {
  return text.match(/[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+$/g) ?? [];
}
