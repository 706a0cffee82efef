import MarkdownIt from "markdown-it";
import { footnotes } from "./footnotes";
import { formattingTags } from "./formattingTags";
import { formulas } from "./formula";
import { leadsToWeb, placeAttributes } from "./links";
import { linkedPlace, spannedPlace } from "./places";

/** No HTML but tags that format, no pictures but those of the workspace (nothing is loaded), links only to the web, and
 * where they lead to be seen, and to files of the workspace, which the host opens: what a model writes is not to be
 * trusted. */
export const parser = new MarkdownIt({ html: false, linkify: false, breaks: false })
  .use(formattingTags)
  .use(footnotes)
  .use(formulas);
parser.validateLink = (url) => leadsToWeb(url) || linkedPlace(url) !== undefined;
parser.normalizeLink = (url) => {
  if (leadsToWeb(url)) return new URL(url).href; // letters of other scripts as what they are
  return linkedPlace(url) === undefined ? "" : url;
};
parser.renderer.rules.link_open = (tokens, at, options, _env, self) => {
  const token = tokens[at];
  const href = token?.attrGet("href") ?? "";
  const place = leadsToWeb(href) ? undefined : linkedPlace(href);
  if (token && !leadsToWeb(href)) token.attrs = place === undefined ? [] : placeAttributes(place);
  else token?.attrSet("title", href);
  return self.renderToken(tokens, at, options);
};
/** Where a link leads stands beside it, in full, unless it is what it says or a file. */
parser.renderer.rules.link_close = (tokens, at) => {
  const open = tokens.slice(0, at).findLastIndex(({ type }) => type === "link_open");
  const href = tokens[open]?.attrGet("href") ?? "";
  const said = tokens
    .slice(open + 1, at)
    .map(({ content }) => content)
    .join("");
  const same = href === "" || said === href || `${said}/` === href;
  return `${same ? "" : ` <span class="where">${parser.utils.escapeHtml(href)}</span>`}</a>`;
};
/** A picture of the workspace, which the host reads; of any other, where it is. */
parser.renderer.rules.image = (tokens, at) => {
  const { escapeHtml } = parser.utils;
  const source = tokens[at]?.attrGet("src") ?? "";
  const words = escapeHtml(tokens[at]?.content ?? "");
  const place = leadsToWeb(source) ? undefined : linkedPlace(source);
  if (place !== undefined)
    return `<img class="workspace" data-path="${escapeHtml(place.path)}" alt="${words}">`;
  if (!leadsToWeb(source) || inLink(tokens, at)) return words;
  const address = escapeHtml(source);
  return `<a href="${address}" title="${address}">${words || "Image"} <span class="where">${address}</span></a>`;
};
/** A code span that names a file leads there, unless it stands in a link. */
parser.renderer.rules.code_inline = (tokens, at, _options, _env, self) => {
  const token = tokens[at];
  const code = `<code>${parser.utils.escapeHtml(token?.content ?? "")}</code>`;
  const place = inLink(tokens, at) ? undefined : spannedPlace(token?.content ?? "");
  if (!token || place === undefined) return code;
  token.attrs = placeAttributes(place);
  return `<a${self.renderAttrs(token)}>${code}</a>`;
};

function inLink(tokens: { type: string }[], at: number): boolean {
  const last = tokens.slice(0, at).findLast(({ type }) => type === "link_open" || type === "link_close");
  return last?.type === "link_open";
}
