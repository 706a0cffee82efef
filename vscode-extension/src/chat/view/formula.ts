import type MarkdownIt from "markdown-it";
import type { StateBlock, StateInline } from "markdown-it";

/** Characters of a formula that is drawn; a longer one is shown as it was written. */
export const LONGEST = 5_000;
const CLOSING: Record<string, string> = { $: "$", $$: "$$", "\\(": "\\)", "\\[": "\\]" };

/** TeX between `$`, `$$`, `\(` and `\)`, `\[` and `\]`. What begins a line with `$$` or `\[` is a block, which ends at
 * the first blank line at the latest. */
export function formulas(parser: MarkdownIt): void {
  parser.inline.ruler.before("escape", "formula", inline);
  parser.block.ruler.before("fence", "formula", block, { alt: ["paragraph", "blockquote", "list"] });
  const { escapeHtml } = parser.utils;
  parser.renderer.rules["formula"] = (tokens, at) => {
    const { content = "", markup = "" } = tokens[at] ?? {};
    const kind = markup === "$$" || markup === "\\[" ? ' data-display=""' : "";
    return `<span class="formula"${kind}>${escapeHtml(content)}</span>`;
  };
  parser.renderer.rules["formula_block"] = (tokens, at) =>
    `<div class="formula">${escapeHtml(tokens[at]?.content ?? "")}</div>`;
}

function inline(state: StateInline, silent: boolean): boolean {
  const { src, pos, posMax } = state;
  const opening = /^(?:\$\$?|\\[([])/.exec(src.slice(pos, pos + 2))?.[0];
  if (opening === undefined) return false;
  const begin = pos + opening.length;
  const end = endOf(src.slice(begin, Math.min(posMax, begin + LONGEST)), CLOSING[opening] ?? "");
  if (end === undefined) return false;
  const tex = src.slice(begin, begin + end);
  const after = begin + end + opening.length;
  if (opening === "$" && isMoney(tex, src[pos - 1] ?? "", src[after] ?? "")) return false;
  if (tex.trim() === "") return false;
  if (!silent) {
    const token = state.push("formula", "", 0);
    token.content = tex;
    token.markup = opening;
  }
  state.pos = after;
  return true;
}

/** Where the closing mark is: the first one that no backslash escapes. */
function endOf(text: string, closing: string): number | undefined {
  for (let at = 0; at < text.length; at++) {
    if (text.startsWith(closing, at)) return at;
    if (text[at] === "\\") at++;
  }
  return undefined;
}

/** Whether two dollars mean money or names of variables, `$5 and $10`, `$HOME/$USER`. */
function isMoney(tex: string, before: string, after: string): boolean {
  return /^\s|\s$|`/.test(tex) || /[\w$\\]/.test(before) || /[\w$]/.test(after);
}

function block(state: StateBlock, first: number, last: number, silent: boolean): boolean {
  const opening = /^(?:\$\$|\\\[)/.exec(line(state, first))?.[0];
  if (opening === undefined || (state.sCount[first] ?? 0) - state.blkIndent >= 4) return false;
  const closing = CLOSING[opening] ?? "";
  let end = first;
  let tex: string | undefined;
  for (; end < last && !state.isEmpty(end) && (state.sCount[end] ?? 0) >= state.blkIndent; end++) {
    const text = line(state, end).slice(end === first ? opening.length : 0);
    const at = text.indexOf(closing);
    if (at < 0) continue;
    if (text.slice(at + closing.length).trim() !== "") return false; // text goes on behind it
    const lines = state.getLines(first, end + 1, state.blkIndent, false).trim();
    tex = lines.slice(opening.length, -closing.length).trim();
    end++;
    break;
  }
  if (silent) return true;
  const token = state.push("formula_block", "div", 0);
  token.map = [first, end];
  token.content = tex ?? state.getLines(first, end, state.blkIndent, false);
  token.info = tex === undefined ? "open" : "";
  state.line = end;
  return true;
}

function line(state: StateBlock, at: number): string {
  const begin = (state.bMarks[at] ?? 0) + (state.tShift[at] ?? 0);
  return state.src.slice(begin, state.eMarks[at] ?? begin).trimEnd();
}
