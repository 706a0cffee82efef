import { diffArrays } from "diff";
import { split } from "./hunks";
import type { Hunk } from "../protocol";

/** Changed lines up to which a hunk is looked at line by line. */
const EDITS = 400;

/** A stretch of lines, from the first of a hunk on. */
export interface Stretch {
  from: number;
  lines: number;
}

const known = new WeakMap<Hunk, Stretch[]>();

/** What of a hunk's text was not there before; all of it where nothing was, or where it is much. */
export function newLines(hunk: Hunk): Stretch[] {
  const before = known.get(hunk);
  if (before !== undefined) return before;
  const stretches = compare(hunk);
  known.set(hunk, stretches);
  return stretches;
}

function compare({ oldText, newText, appliedText }: Hunk): Stretch[] {
  const [old, lines] = [split(oldText), split(appliedText ?? newText)];
  let same = 0; // at the end: blank lines between two blocks are not to be found within the first
  while (same < old.length && old.at(-1 - same) === lines.at(-1 - same)) same++;
  const [before, after] = [old.slice(0, old.length - same), lines.slice(0, lines.length - same)];
  const stretches: Stretch[] = [];
  let at = 0;
  for (const { added, removed, count } of diffArrays(before, after, { maxEditLength: EDITS }) ?? []) {
    if (added) stretches.push({ from: at, lines: count });
    if (!removed) at += count;
  }
  return stretches.length > 0 ? stretches : [{ from: 0, lines: lines.length }];
}
