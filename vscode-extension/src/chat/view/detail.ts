import { plural } from "../../review/changes";
import { visible } from "../../editor/visible";
import { button, h, setText } from "./dom";

/** Pixels of a line where the style does not say. */
const LINE = 18;

/** What will happen, in full. What is out of sight is counted: blank lines must not hide the end. */
export class Detail {
  private readonly text: HTMLPreElement;
  private readonly count = h("span", {});
  private readonly rest = h(
    "div",
    { class: "rest", hidden: true },
    this.count,
    button("Show all", () => this.unfold(), { class: "link" }),
  );
  readonly element: HTMLElement;
  private readonly sizes = new ResizeObserver(() => this.look());

  constructor(detail: string) {
    this.text = h(
      "pre",
      { class: "detail", tabindex: "0", "aria-label": "What will happen", onscroll: () => this.look() },
      visible(detail),
    );
    this.element = h("div", { class: "what" }, this.text, this.rest);
    this.sizes.observe(this.text);
  }

  /** Count anew what is below. */
  look(): void {
    const { scrollHeight, clientHeight, scrollTop } = this.text;
    const height = parseFloat(getComputedStyle(this.text).lineHeight) || LINE;
    const below = Math.round((scrollHeight - clientHeight - scrollTop) / height);
    this.rest.hidden = below < 1;
    setText(this.count, `${plural(below, "more line")} below`);
  }

  private unfold(): void {
    this.text.classList.add("whole");
    this.text.focus();
    this.look();
  }
}
