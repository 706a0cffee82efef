import { plural, seen, turnEdits, within } from "../../changes";
import type { Desk } from "./desk";
import { button, h } from "./dom";

/** What a turn's edits came to, below its last card, and what can be done with all of them. */
export class TurnRow {
  readonly element = h("div", { class: "turn", role: "group", "aria-label": "Changes of this turn" });
  private drawn = "";
  /** Not while the turn runs, nor when it changed nothing. */
  shown = false;

  constructor(
    private readonly desk: Desk,
    private readonly turnId: string,
  ) {}

  update(): void {
    const { plan, proposals, turn } = this.desk.session.state;
    const edits = turn?.turnId === this.turnId ? undefined : turnEdits(proposals, this.turnId, plan?.path);
    const key = JSON.stringify(edits ?? null);
    if (key === this.drawn) return; // a button that is drawn anew loses the focus
    this.drawn = key;
    this.shown = edits !== undefined;
    if (edits === undefined) return;
    const { turnId } = this;
    const wish = (what: "review" | "undo" | "redo") => () => this.desk.post({ type: "turn", what, turnId });
    const keep = () => {
      const now = within(this.desk.session.state.proposals, { turnId });
      this.desk.post({ type: "decide", scope: { turnId }, decision: "keep", seen: seen(now) });
    };
    const left = [
      ...(edits.open > 0 ? [`${edits.open} open`] : []),
      ...(edits.undone > 0 ? [`${edits.undone} taken back`] : []),
    ];
    this.element.replaceChildren(
      h("span", { class: "files" }, plural(edits.files, "file")),
      h("span", { class: "stat" }, `+${edits.added} −${edits.removed}`),
      h("span", { class: "aside" }, left.join(", ")),
      button("Review", wish("review"), { class: "link" }),
      edits.applied > 0 ? button("Undo turn", wish("undo"), { class: "link" }) : "",
      edits.undone > 0 ? button("Redo", wish("redo"), { class: "link" }) : "",
      edits.review > 0 ? button("Keep all", keep, { class: "link" }) : "",
    );
  }
}
