import type { Hunk } from "../protocol";

/** Behind its state: whose text it is by now. In the file, a formatter may have changed it. */
export function altered(hunk: Hunk): string {
  if (!hunk.editedByUser) return "";
  return hunk.appliedText === null ? ", with your changes" : ", changed in the file since";
}

/** Lines with their ends. */
export function split(text: string): string[] {
  return text.match(/[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+$/g) ?? [];
}

/** Lines that a change takes away and brings. */
export function lineCounts({ oldText, newText }: Hunk): { removed: number; added: number } {
  return { removed: split(oldText).length, added: split(newText).length };
}
