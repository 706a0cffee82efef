import { h } from "./dom";
import type { Place } from "./places";

/** A link VS Code may be asked to open, which it does after a question of its own. None that carries a name and a
 * password: what stands before the @ looks like where it leads. */
export function leadsToWeb(url: string): boolean {
  if (!/^https?:\/\//i.test(url) || !URL.canParse(url)) return false;
  const { username, password } = new URL(url);
  return username === "" && password === "";
}

/** A link to a file. It has no address: the list asks `placeAt`, and tells the host. */
export function placeLink(place: Place, text: string): HTMLElement {
  return h("a", Object.fromEntries(placeAttributes(place)), text);
}

export function placeAttributes({ path, line }: Place): [string, string][] {
  const title = line === null ? path : `${path}:${line}`;
  return [
    ["class", "file"],
    ["role", "link"],
    ["tabindex", "0"],
    ["title", title],
    ["data-path", path],
    ["data-line", line === null ? "" : String(line)],
  ];
}

/** The file a click or a key in drawn Markdown means, if any. */
export function placeAt(target: EventTarget | null): Place | undefined {
  const link = target instanceof Element ? target.closest<HTMLElement>("a.file") : null;
  if (!link) return undefined;
  const { path = "", line = "" } = link.dataset;
  return { path, line: line === "" ? null : Number(line) };
}
