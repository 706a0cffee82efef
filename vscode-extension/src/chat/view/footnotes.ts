import type MarkdownIt from "markdown-it";
import type { StateBlock, StateInline } from "markdown-it";

const DEFINITION = /^\[\^([\w-]{1,30})\]:[ \t]*(?=\S)/;
const REFERENCE = /^\[\^([\w-]{1,30})\]/;

/** `[^1]` where the text has a `[^1]: note`, which is drawn where it stands. Labels are kept among the references of links,
 * so that text drawn before its note came is drawn again. */
export function footnotes(parser: MarkdownIt): void {
  parser.block.ruler.before("reference", "footnote", note, { alt: ["paragraph", "reference"] });
  parser.inline.ruler.before("link", "footnote", reference);
  parser.renderer.rules["footnote"] = (tokens, at) =>
    `<sup class="footnote">${parser.utils.escapeHtml(tokens[at]?.content ?? "")}</sup>`;
}

function note(state: StateBlock, first: number, last: number, silent: boolean): boolean {
  const begin = (state.bMarks[first] ?? 0) + (state.tShift[first] ?? 0);
  const [mark, label] = DEFINITION.exec(state.src.slice(begin, state.eMarks[first])) ?? [];
  if (mark === undefined || label === undefined || (state.sCount[first] ?? 0) - state.blkIndent >= 4)
    return false;
  if (silent) return true;
  let end = first + 1;
  while (end < last && !state.isEmpty(end) && !ends(state, end, last)) end++;
  const env = state.env as { references?: Record<string, { title: string; href: string }> };
  env.references ??= {};
  env.references[key(state, label)] ??= { title: "", href: "" };
  const text = state.getLines(first, end, state.blkIndent, false).trim().replace(DEFINITION, `[^${label}] `);
  const paragraph = state.push("paragraph_open", "p", 1);
  paragraph.map = [first, end];
  paragraph.attrSet("class", "footnote");
  const inline = state.push("inline", "", 0);
  inline.content = text;
  inline.children = [];
  state.push("paragraph_close", "p", -1);
  state.line = end;
  return true;
}

/** Whether a line begins another block, as it would after a paragraph. */
function ends(state: StateBlock, at: number, last: number): boolean {
  if ((state.sCount[at] ?? 0) < state.blkIndent) return true;
  if ((state.sCount[at] ?? 0) - state.blkIndent > 3) return false;
  return state.md.block.ruler.getRules("paragraph").some((rule) => rule(state, at, last, true));
}

function reference(state: StateInline, silent: boolean): boolean {
  const [mark, label] = REFERENCE.exec(state.src.slice(state.pos, state.pos + 40)) ?? [];
  const { references } = state.env as { references?: Record<string, unknown> };
  if (mark === undefined || label === undefined || state.pos + mark.length > state.posMax) return false;
  if (references === undefined || !Object.hasOwn(references, key(state, label))) return false;
  if (!silent) state.push("footnote", "", 0).content = label;
  state.pos += mark.length;
  return true;
}

function key({ md }: StateBlock | StateInline, label: string): string {
  return md.utils.normalizeReference(`^${label}`);
}
