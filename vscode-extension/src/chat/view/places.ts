import { visible } from "../../editor/visible";

/** A file of the workspace that a model named, and a line of it. */
export interface Place {
  path: string;
  line: number | null;
}

/** The daemon's code for what a reviewing sub-agent found: a line each. */
export const FINDINGS = "agentFindings";
/** `:219`, `:219:5`, `:219-230`, `#L219`, `#L219-L230` after a path. */
const LINE = /(?::(\d{1,7})(?:[:-]\d{1,7})?|#L(\d{1,7})(?:-L?\d{1,7})?)$/;
/** What a code span must be to be a file for sure: a name with an ending, and a line or a folder. */
const NAMED = /^[\w@+.-]+(?:\/[\w@+.-]+)*\.[A-Za-z]\w*$/;

/** The file an address of a link names: relative to the workspace, never above it. The host looks whether it is there.
 * Anything with a scheme or a host is none, nor what would be shown otherwise than it is. */
export function linkedPlace(address: string): Place | undefined {
  const found = split(decoded(address) ?? "");
  const { path } = found;
  const segments = path.split("/");
  if (path === "" || /^[/\\~#?]/.test(path) || /[:\\]/.test(path) || visible(path) !== path) return undefined;
  if (segments.includes("..")) return undefined;
  return found.line !== null && !/[./]/.test(path) ? undefined : found; // "x:1" is a scheme as well
}

/** The file a code span names, if it cannot be anything else. */
export function spannedPlace(code: string): Place | undefined {
  const found = split(code);
  const sure = NAMED.test(found.path) && (found.line !== null || found.path.includes("/"));
  return sure ? linkedPlace(code) : undefined;
}

/** A line of what a reviewing sub-agent found, `path:line: words`; undefined for any other line. */
export function finding(text: string): { place: Place; where: string; words: string } | undefined {
  const [whole, where = ""] = /^(\S+?:\d{1,7}): /.exec(text) ?? [];
  const place = whole === undefined ? undefined : linkedPlace(where);
  return place && { place, where, words: text.slice(where.length + 2) };
}

function split(text: string): Place {
  const [whole = "", colon, hash] = LINE.exec(text) ?? [];
  const line = colon ?? hash;
  return { path: text.slice(0, text.length - whole.length), line: line === undefined ? null : Number(line) };
}

function decoded(address: string): string | undefined {
  try {
    return decodeURIComponent(address);
  } catch {
    return undefined; // a % that stands for nothing
  }
}
