import { visible } from "../../visible";
import type { Desk } from "./desk";
import { button, h, setText } from "./dom";

/** Over the session of a sub-agent: whose it is, and the way back to the session it works for. */
export class Parent {
  private readonly back = button("← Back", () => this.leave(), {
    class: "link",
    title: "Go to the session it works for",
  });
  private readonly words = h("span", { class: "aside" });
  readonly element = h(
    "nav",
    { class: "parent", "aria-label": "Sub-agent", hidden: true },
    this.back,
    this.words,
  );

  constructor(private readonly desk: Desk) {}

  update(): void {
    const { parentSessionId, agent } = this.desk.session.state;
    this.element.hidden = !parentSessionId;
    setText(this.words, `Session of the sub-agent ${visible(agent ?? "")}`);
  }

  focus(): void {
    this.back.focus();
  }

  private leave(): void {
    const { parentSessionId } = this.desk.session.state;
    if (parentSessionId) this.desk.post({ type: "open", sessionId: parentSessionId });
  }
}
