import { h, setText } from "../../chat/view/dom";
import type { ToServersHost, ToServersPage } from "../messages";
import { ServerCard } from "./server";

const DEFERRED =
  "Their tools would take up too much of the context window, so the model finds them by search.";

/** The page of MCP servers: a card for each. What is unfolded, and where the user is, stays when it is drawn anew. */
export class ServersView {
  private readonly cards = new Map<string, ServerCard>();
  private readonly list = h("div", { class: "servers" });
  private readonly nothing = h("p", { class: "aside", hidden: true });
  private readonly deferred = h("p", { class: "aside", hidden: true }, DEFERRED);
  readonly element = h("main", {}, h("h1", {}, "MCP servers"), this.nothing, this.deferred, this.list);

  constructor(private readonly post: (message: ToServersHost) => void) {}

  receive(message: ToServersPage): void {
    switch (message.type) {
      case "servers":
        return this.draw(message);
      case "told":
        return this.cards.get(message.name)?.tell(message.level, message.text);
      case "show": {
        const card = this.cards.get(message.name)?.element;
        card?.scrollIntoView({ block: "nearest" });
        card?.focus();
      }
    }
  }

  private draw({ servers, deferred, nothing }: Extract<ToServersPage, { type: "servers" }>): void {
    this.deferred.hidden = !deferred;
    this.nothing.hidden = nothing === "";
    setText(this.nothing, nothing);
    const names = new Set(servers.map(({ name }) => name));
    for (const [name, card] of this.cards) {
      if (names.has(name)) continue;
      card.element.remove();
      this.cards.delete(name);
    }
    for (const [at, server] of servers.entries()) {
      const card = this.cards.get(server.name) ?? new ServerCard(this.post);
      this.cards.set(server.name, card);
      card.update(server);
      const place = this.list.children[at] ?? null;
      if (place !== card.element) this.list.insertBefore(card.element, place);
    }
  }
}
