import type { Citations, Item, Source } from "../../protocol";
import type { Card } from "./chatView";
import { h } from "./dom";
import { leadsToWeb } from "./links";

/** What the answer before it rests on, numbered. A title is what a stranger wrote: only the address, in full, is a link. */
export class CitationsCard implements Card {
  private readonly list = h("ol", {});
  readonly element = h(
    "article",
    { class: "card citations", "aria-label": "Sources" },
    h("div", { class: "aside" }, "Sources"),
    this.list,
  );

  update(item: Item): void {
    this.list.replaceChildren(...(item as Citations).sources.map((source) => h("li", {}, ...drawn(source))));
  }
}

function drawn(source: Source): (Node | false)[] {
  const title =
    source.title !== "" && source.title !== source.url && h("span", { class: "title" }, source.title);
  const where = source.url !== "" && address(source.url);
  const quote =
    source.quote !== "" && h("details", {}, h("summary", {}, "Quote"), h("blockquote", {}, source.quote));
  return [title, where, quote];
}

function address(url: string): HTMLElement {
  if (!leadsToWeb(url)) return h("span", { class: "where" }, url);
  const { href } = new URL(url); // letters of other scripts in a host's name as what they are
  return h("a", { class: "where", href, title: href }, href);
}
