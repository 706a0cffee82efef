import type { SessionSummary } from "../../protocol";
import type { ChatView } from "./chatView";
import { button, h } from "./dom";
import { iconButton } from "./icon";
import { grouped, name, row, type RowActions } from "./sessionRow";

/** The list of conversations: how each stands, search, open, rename, delete. It lies over the conversation and leaves
 * with Escape. */
export class Sessions {
  private readonly search = h("input", {
    type: "search",
    placeholder: "Search sessions",
    "aria-label": "Search sessions",
  });
  private readonly list = h("div", { class: "groups" });
  readonly element = h(
    "section",
    { class: "sessions", role: "dialog", "aria-label": "Sessions", hidden: true },
    h(
      "div",
      { class: "row" },
      this.search,
      button("New", () => this.leave(() => this.view.post({ type: "new" })), { class: "primary" }),
      iconButton("close", "Close the list", () => this.leave()),
    ),
    this.list,
  );
  private all: SessionSummary[] = [];
  private current = "";
  private renaming: string | undefined;
  private readonly actions: RowActions = {
    open: ({ sessionId }) => this.leave(() => this.view.post({ type: "open", sessionId })),
    openInEditor: ({ sessionId }) => this.leave(() => this.view.post({ type: "openInEditor", sessionId })),
    rename: ({ sessionId }) => this.rename(sessionId),
    remove: (session) =>
      this.view.post({ type: "delete", sessionId: session.sessionId, title: name(session) }),
  };

  constructor(
    private readonly view: ChatView,
    private readonly modelName: (modelId: string) => string,
    private readonly left: () => void,
  ) {
    this.search.addEventListener("input", () => this.draw());
    this.element.addEventListener("keydown", (event) => this.key(event));
    // on the document: a row that is drawn anew takes the focus with it
    document.addEventListener("keydown", (event) => {
      if (event.key === "Escape" && !this.element.hidden) this.leave();
    });
  }

  /** At the user's wish. */
  show(): void {
    this.cover(true);
    this.search.value = "";
    this.draw();
    this.list.scrollTop = 0; // the newest, wherever it was left
    this.search.focus();
    this.view.post({ type: "sessions" });
  }

  update(all: SessionSummary[], current: string): void {
    this.all = all;
    this.current = current;
    if (!this.element.hidden && this.renaming === undefined) this.draw();
  }

  /** To the conversation. */
  leave(then?: () => void): void {
    this.cover(false);
    this.renaming = undefined;
    then?.();
    this.left();
  }

  /** What it lies over is out of reach, of the Tab key as well. */
  private cover(over: boolean): void {
    this.element.hidden = !over;
    for (const other of this.element.parentElement?.children ?? [])
      if (other !== this.element && !other.hasAttribute("aria-live")) other.toggleAttribute("inert", over);
  }

  private draw(): void {
    const focused = this.focused();
    const words = this.search.value.toLowerCase().split(/\s+/);
    const found = this.all.filter((each) => words.every((word) => name(each).toLowerCase().includes(word)));
    this.list.replaceChildren(
      ...grouped(found, Date.now()).flatMap(({ group, sessions }) => [
        h("h3", {}, group),
        h("ul", { "aria-label": group }, ...sessions.map((each) => this.row(each))),
      ]),
      ...(found.length === 0
        ? [h("p", { class: "aside" }, this.all.length ? "No matching sessions." : "No sessions yet.")]
        : []),
    );
    if (focused === undefined || this.renaming !== undefined) return;
    const still = this.rows.find((each) => each.dataset.session === focused);
    (still?.querySelector<HTMLElement>(".open") ?? this.search).focus();
  }

  private row(session: SessionSummary): HTMLElement {
    const { sessionId } = session;
    if (this.renaming === sessionId) return this.renameRow(session);
    return row(session, sessionId === this.current, this.modelName(session.modelId), this.actions);
  }

  private renameRow(session: SessionSummary): HTMLElement {
    const input = h("input", { "aria-label": "New name", value: name(session) });
    const done = (save: boolean) => {
      this.renaming = undefined;
      const title = input.value.trim();
      if (save && title !== "") this.view.post({ type: "rename", sessionId: session.sessionId, title });
      this.draw();
      this.focus(session.sessionId);
    };
    input.addEventListener("keydown", (event) => {
      event.stopPropagation();
      if (event.key === "Enter" || event.key === "Escape") done(event.key === "Enter");
    });
    return h(
      "li",
      { "data-session": session.sessionId },
      input,
      button("Save", () => done(true)),
    );
  }

  private rename(sessionId: string): void {
    this.renaming = sessionId;
    this.draw();
    const input = this.list.querySelector("input");
    input?.focus();
    input?.select();
  }

  /** Arrows go through the list, from the search box too; the other keys are about the session they stand on. */
  private key(event: KeyboardEvent): void {
    const at = this.rows.findIndex((each) => each.dataset.session === this.focused());
    const session = this.all.find(({ sessionId }) => sessionId === this.focused());
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step !== undefined) {
      const next = this.rows[at + step];
      (next?.querySelector<HTMLElement>(".open") ?? (at + step < 0 ? this.search : undefined))?.focus();
    } else if (session === undefined) {
      if (event.key !== "Enter" || event.target !== this.search) return;
      this.rows[0]?.querySelector<HTMLElement>(".open")?.click(); // what the search found first
    } else if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) this.actions.openInEditor(session);
    else if (event.key === "F2") this.actions.rename(session);
    else if (event.key === "Delete") this.actions.remove(session);
    else return;
    event.preventDefault();
  }

  private get rows(): HTMLElement[] {
    return [...this.list.querySelectorAll<HTMLElement>("li")];
  }

  /** The session of the row that has the focus. */
  private focused(): string | undefined {
    const { activeElement } = document;
    return this.list.contains(activeElement) ? activeElement?.closest("li")?.dataset.session : undefined;
  }

  private focus(sessionId: string): void {
    this.rows
      .find((each) => each.dataset.session === sessionId)
      ?.querySelector<HTMLElement>(".open")
      ?.focus();
  }
}
