import type { SessionSummary } from "../../protocol";
import type { Desk } from "./desk";
import { button, h } from "./dom";

const STATUS: Record<SessionSummary["status"], string> = {
  idle: "",
  running: "running",
  waiting: "waits for you",
  interrupted: "interrupted",
  closed: "",
};

/** The list of conversations: search, open, rename, delete. It lies over the conversation and leaves with Escape. */
export class Sessions {
  private readonly search = h("input", {
    type: "search",
    placeholder: "Search sessions",
    "aria-label": "Search sessions",
  });
  private readonly rows = h("ul", { "aria-label": "Sessions" });
  readonly element = h(
    "section",
    { class: "sessions", role: "dialog", "aria-label": "Sessions", hidden: true },
    h(
      "div",
      { class: "row" },
      this.search,
      button("New", () => this.leave(() => this.desk.post({ type: "new" })), { class: "primary" }),
      button("×", () => this.leave(), { "aria-label": "Close the list" }),
    ),
    this.rows,
  );
  private all: SessionSummary[] = [];
  private current = "";
  private renaming: string | undefined;

  constructor(
    private readonly desk: Desk,
    private readonly left: () => void,
  ) {
    this.search.addEventListener("input", () => this.draw());
    // on the document: a row that is drawn anew takes the focus with it
    document.addEventListener("keydown", (event) => {
      if (event.key === "Escape" && !this.element.hidden) this.leave();
    });
  }

  /** At the user's wish. */
  show(): void {
    this.element.hidden = false;
    this.search.value = "";
    this.draw();
    this.search.focus();
    this.desk.post({ type: "sessions" });
  }

  update(all: SessionSummary[], current: string): void {
    this.all = all;
    this.current = current;
    if (!this.element.hidden && this.renaming === undefined) this.draw();
  }

  /** To the conversation. */
  leave(then?: () => void): void {
    this.element.hidden = true;
    this.renaming = undefined;
    then?.();
    this.left();
  }

  private draw(): void {
    const focused = (document.activeElement as HTMLElement | null)?.closest("li")?.dataset.session;
    const inRows = this.rows.contains(document.activeElement);
    const words = this.search.value.toLowerCase().split(/\s+/);
    const found = this.all.filter((each) => words.every((word) => name(each).toLowerCase().includes(word)));
    this.rows.replaceChildren(
      ...found.map((each) => this.row(each)),
      ...(found.length === 0
        ? [h("li", { class: "aside" }, this.all.length ? "None fits." : "No session yet.")]
        : []),
    );
    if (!inRows || this.renaming !== undefined) return;
    const row = [...this.rows.children].find((each) => (each as HTMLElement).dataset.session === focused);
    (row?.querySelector<HTMLElement>(".open") ?? this.search).focus();
  }

  private row(session: SessionSummary): HTMLElement {
    const { sessionId } = session;
    if (this.renaming === sessionId) return this.renameRow(session);
    const status = STATUS[session.status];
    const left = status === "" && session.changes > 0 ? `${session.changes} to review` : "";
    return h(
      "li",
      { class: sessionId === this.current ? "current" : "", "data-session": sessionId },
      button("", () => this.leave(() => this.desk.post({ type: "open", sessionId })), {
        class: "open",
        "aria-label": `Open ${name(session)}`,
        ...(sessionId === this.current ? { "aria-current": "true" } : {}),
      }),
      h("span", { class: "name" }, name(session)),
      h(
        "span",
        { class: `aside ${session.status}` },
        [status, left, ago(session.updatedAt, Date.now())].filter(Boolean).join(" · "),
      ),
      button(
        "Rename",
        () => {
          this.renaming = sessionId;
          this.draw();
          this.rows.querySelector<HTMLInputElement>("input")?.select();
        },
        { class: "link", "aria-label": `Rename ${name(session)}` },
      ),
      button("Delete", () => this.desk.post({ type: "delete", sessionId, title: name(session) }), {
        class: "link",
        "aria-label": `Delete ${name(session)}`,
      }),
    );
  }

  private renameRow(session: SessionSummary): HTMLElement {
    const input = h("input", { "aria-label": "New name", value: name(session) });
    const done = (save: boolean) => {
      this.renaming = undefined;
      const title = input.value.trim();
      if (save && title !== "") this.desk.post({ type: "rename", sessionId: session.sessionId, title });
      this.draw();
    };
    input.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" && event.key !== "Escape") return;
      event.stopPropagation();
      done(event.key === "Enter");
    });
    return h(
      "li",
      { "data-session": session.sessionId },
      input,
      button("Save", () => done(true)),
    );
  }
}

function name(session: SessionSummary): string {
  return session.title || "Untitled";
}

/** How long ago, in words. */
export function ago(then: number, now: number): string {
  const minutes = Math.floor((now - then) / 60_000);
  if (minutes < 1) return "now";
  if (minutes < 60) return `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  return hours < 24 ? `${hours} h` : `${Math.floor(hours / 24)} d`;
}
