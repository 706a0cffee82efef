import { type TurnEdits, turnEdits } from "../../review/changes";
import type { ChatView } from "./chatView";
import { button, h } from "./dom";
import { iconButton } from "./icon";

/** Below the last card of a turn: its answer copied, its prompt sent again; what its edits came to, and what can be done
 * with all of them. */
export class TurnRow {
  readonly element = h("article", { class: "turn", "aria-label": "This turn" });
  private drawn = "";
  /** Not while the turn runs. */
  shown = false;

  constructor(
    private readonly view: ChatView,
    private readonly turnId: string,
  ) {}

  update(): void {
    const { plan, proposals, turn, readOnly } = this.view.session.state;
    this.shown = turn?.turnId !== this.turnId;
    const edits = this.shown ? turnEdits(proposals, this.turnId, plan?.path) : undefined;
    const key = JSON.stringify([this.shown, readOnly, edits]);
    if (key === this.drawn) return; // a button that is drawn anew loses the focus
    this.drawn = key;
    this.element.classList.toggle("plain", edits === undefined);
    this.element.replaceChildren(...this.actions(readOnly), ...(edits ? this.edits(edits) : []));
  }

  private actions(readOnly: boolean): HTMLElement[] {
    const copy = () => void navigator.clipboard.writeText(this.answer ?? "");
    const retry = () => this.view.post({ type: "retry", turnId: this.turnId });
    return [
      ...(this.answer === undefined
        ? []
        : [iconButton("copy", "Copy the answer", copy, { class: "copy-answer" })]),
      ...(readOnly ? [] : [iconButton("refresh", "Retry: send the prompt again", retry, { class: "retry" })]),
    ];
  }

  /** The last thing it said, as Markdown. */
  private get answer(): string | undefined {
    const last = this.view.session.state.items.findLast(
      (item) => item.kind === "answer" && item.turnId === this.turnId && !item.agentId,
    );
    return last?.kind === "answer" ? last.text : undefined;
  }

  private edits(edits: TurnEdits): Node[] {
    const { turnId } = this;
    const wish = (what: "review" | "undo" | "redo") => () => this.view.post({ type: "turn", what, turnId });
    const left = [
      ...(edits.open > 0 ? [`${edits.open} open`] : []),
      ...(edits.undone > 0 ? [`${edits.undone} undone`] : []),
    ];
    return [
      h("span", { class: "files" }, edits.extent),
      ...(edits.added + edits.removed > 0
        ? [h("span", { class: "stat" }, `+${edits.added} −${edits.removed}`)]
        : []),
      h("span", { class: "aside" }, left.join(", ")),
      button("Review", wish("review"), { class: "link" }),
      ...(edits.applied > 0
        ? [button("Undo", wish("undo"), { class: "link", title: "Undo this turn's edits" })]
        : []),
      ...(edits.undone > 0 ? [button("Redo", wish("redo"), { class: "link" })] : []),
    ];
  }
}
