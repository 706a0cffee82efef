import type { Approval, Grant } from "../../protocol";
import { GRANTS } from "../../labels";
import { capital } from "../../sessions/words";
import { h } from "./dom";

/** What the user may add to a yes, for this one call. What the command does not ask for is folded away. */
export class Grants {
  private readonly boxes = new Map<Grant, HTMLInputElement>();
  readonly element: HTMLElement;

  constructor(approval: Approval, changed: () => void) {
    const { likelyGrants, grants, answers } = approval;
    const ticked = answers[0]?.grants ?? [];
    for (const grant of grants) {
      this.boxes.set(
        grant,
        h("input", {
          type: "checkbox",
          "data-grant": grant,
          checked: ticked.includes(grant),
          onchange: changed,
        }),
      );
    }
    const rest = grants.filter((grant) => !likelyGrants.includes(grant));
    this.element = h(
      "div",
      { class: "grants", role: "group", "aria-label": "For this call", hidden: grants.length === 0 },
      ...grants
        .filter((grant) => likelyGrants.includes(grant))
        .map((grant) => this.line(grant, "it probably needs this")),
      rest.length > 0 &&
        h(
          "details",
          {},
          h("summary", {}, "Additional permissions…"),
          ...rest.map((grant) => this.line(grant, "it did not ask for this")),
        ),
    );
  }

  private line(grant: Grant, aside: string): HTMLElement {
    const words = h(
      "span",
      { title: capital(GRANTS[grant].meaning) },
      `${capital(GRANTS[grant].name)} `,
      h("span", { class: "aside" }, aside),
    );
    return h("label", {}, this.boxes.get(grant), words);
  }

  get chosen(): Grant[] {
    return [...this.boxes].filter(([, box]) => box.checked).map(([grant]) => grant);
  }
}
