import type MarkdownIt from "markdown-it";
import type { StateBlock, StateInline } from "markdown-it";

/** Tags that only format the text between them. They are drawn without attributes, and only where they are closed. */
const OPENING = /^<(kbd|sub|sup|u|ins|del|mark|small|b|i|em|strong)>/i;
const BREAK = /^<br\s*\/?>/i;
const DETAILS = /^<details(?:\s+open)?>\s*(?:<summary>(.*)<\/summary>)?\s*$/i;
const SUMMARY = /^<summary>(.*)<\/summary>\s*$/i;

/** HTML that people write in Markdown and that can do nothing but format: `<kbd>`, `<sub>`, `<br>`, `<details>`. */
export function formattingTags(parser: MarkdownIt): void {
  parser.inline.ruler.before("autolink", "tag", tag);
  parser.block.ruler.before("paragraph", "details", details, { alt: ["paragraph", "blockquote", "list"] });
}

function tag(state: StateInline, silent: boolean): boolean {
  const rest = state.src.slice(state.pos, state.posMax);
  const [lineBreak] = BREAK.exec(rest) ?? [];
  if (lineBreak !== undefined) {
    if (!silent) state.push("hardbreak", "br", 0);
    state.pos += lineBreak.length;
    return true;
  }
  const [opening, written = ""] = OPENING.exec(rest) ?? [];
  if (opening === undefined) return false;
  const name = written.toLowerCase();
  const length = rest.toLowerCase().indexOf(`</${name}>`);
  if (length < 0) return false;
  const { pos, posMax } = state;
  if (!silent) {
    state.push(`${name}_open`, name, 1);
    state.pos = pos + opening.length;
    state.posMax = pos + length;
    state.md.inline.tokenize(state);
    state.push(`${name}_close`, name, -1);
  }
  state.pos = pos + length + name.length + 3;
  state.posMax = posMax;
  return true;
}

/** `<details>` and `</details>` on lines of their own, with blocks in between. One that is not closed goes to the end. */
function details(state: StateBlock, first: number, last: number, silent: boolean): boolean {
  const [opening, beside] = DETAILS.exec(line(state, first)) ?? [];
  if (opening === undefined || (state.sCount[first] ?? 0) - state.blkIndent >= 4) return false;
  if (silent) return true;
  const below = beside === undefined ? SUMMARY.exec(line(state, first + 1))?.[1] : undefined;
  const begin = first + (below === undefined ? 1 : 2);
  const end = closing(state, begin, last);
  const { lineMax, parentType } = state;
  state.push("details_open", "details", 1).map = [first, end];
  state.push("summary_open", "summary", 1);
  const summary = state.push("inline", "", 0);
  summary.content = (beside ?? below ?? "").trim() || "Details";
  summary.children = [];
  state.push("summary_close", "summary", -1);
  state.lineMax = end;
  state.md.block.tokenize(state, begin, end);
  state.push("details_close", "details", -1);
  state.lineMax = lineMax;
  state.parentType = parentType;
  state.line = Math.min(end + 1, last);
  return true;
}

/** The line that closes it, or the one after its last. */
function closing(state: StateBlock, begin: number, last: number): number {
  let depth = 1;
  for (let at = begin; at < last; at++) {
    if (!state.isEmpty(at) && (state.sCount[at] ?? 0) < state.blkIndent) return at;
    const text = line(state, at);
    if (DETAILS.test(text)) depth++;
    if (/^<\/details>\s*$/i.test(text) && --depth === 0) return at;
  }
  return last;
}

function line(state: StateBlock, at: number): string {
  const begin = (state.bMarks[at] ?? 0) + (state.tShift[at] ?? 0);
  return state.src.slice(begin, state.eMarks[at] ?? begin);
}
