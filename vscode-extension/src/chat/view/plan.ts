import type { Approval, ApprovalAnswer } from "../../protocol";
import { visible } from "../../editor/visible";
import { BUTTONS } from "../../labels";
import type { ToHost } from "../messages";
import { button, h } from "./dom";

/** The question about a plan. The editor shows its text; here the user only decides. `answer` takes how it is carried
 * out, or why it is not. */
export function planForm(
  { toolCallId, answers, lines }: Approval,
  post: (message: ToHost) => void,
  answer: (chosen: ApprovalAnswer | { reason: string | null }) => void,
): HTMLElement[] {
  const fresh = h("input", { type: "checkbox", class: "fresh" });
  const reason = h("input", {
    class: "reason",
    placeholder: "What should change?",
    "aria-label": "What should change",
  });
  const reject = () => answer({ reason: reason.value.trim() || null });
  reason.addEventListener("keydown", (event) => {
    if (event.key === "Enter") reject();
  });
  const options = answers.filter(({ action }) => action === "allow");
  const ways = options.filter(({ freshContext }) => !freshContext);
  const approve = (way: ApprovalAnswer) =>
    answer(
      options.find(({ mode, freshContext }) => mode === way.mode && freshContext === fresh.checked) ?? way,
    );
  return [
    h("div", { class: "why" }, "Carry out this plan?"),
    ...lines.map(({ text }) => h("div", { class: "aside" }, visible(text))),
    h(
      "div",
      { class: "row" },
      button("Open the plan", () => post({ type: "openPlan", toolCallId }), { class: "open-plan" }),
      options.length > ways.length &&
        h(
          "label",
          { title: "From the conversation so far, the model keeps only your messages and the plan" },
          fresh,
          "With a fresh context",
        ),
    ),
    h(
      "div",
      { class: "row" },
      ...ways.map((way, at) =>
        button(visible(way.label), () => approve(way), {
          class: at === 0 ? "primary approve allow" : "approve",
          "data-mode": way.mode,
        }),
      ),
    ),
    h("div", { class: "row" }, button(BUTTONS.keepPlanning, reject, { class: "reject" }), reason),
  ];
}
