import { visible } from "../../editor/visible";
import type { ChatView } from "./chatView";
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

  constructor(private readonly view: ChatView) {}

  update(): void {
    const { parentSessionId, agent } = this.view.session.state;
    this.element.hidden = !parentSessionId;
    setText(this.words, `Session of the sub-agent ${visible(agent ?? "")}`);
  }

  focus(): void {
    this.back.focus();
  }

  private leave(): void {
    const { parentSessionId } = this.view.session.state;
    if (parentSessionId) this.view.post({ type: "open", sessionId: parentSessionId });
  }
}
