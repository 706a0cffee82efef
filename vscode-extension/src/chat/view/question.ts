import { BUTTONS } from "../../labels";
import type { Item, Question, QuestionField } from "../../protocol";
import { visible } from "../../editor/visible";
import type { Card, ChatView } from "./chatView";
import { button, h } from "./dom";
import { icon } from "./icon";

/** One field as it is filled in; `read` is its answer, undefined while there is none. */
interface Drawn {
  element: HTMLElement;
  read(): unknown;
}

/** Questions to the user, answered together. Drawn once while they are open: what was chosen stays. No focus is taken.
 * Once they are over they are one line, like a call, with the answers behind it. */
export class QuestionCard implements Card {
  private readonly box = h("div", { class: "approval question", role: "group" });
  readonly element = h("article", { "aria-label": "Question" });
  private drawn = "";

  constructor(private readonly view: ChatView) {}

  update(item: Item): void {
    const question = item as Question;
    if (this.drawn === question.state) return;
    this.drawn = question.state;
    this.box.dataset.call = question.itemId; // what is said of it is said here
    this.box.setAttribute("aria-label", `${visible(question.asker)} asks: ${visible(question.title)}`);
    const open = question.state === "open";
    this.element.className = open ? "card asking" : "card tool settled";
    if (open) this.box.replaceChildren(...this.open(question));
    this.element.replaceChildren(open ? this.box : over(question));
  }

  private open(question: Question): HTMLElement[] {
    const answer = (outcome: "answered" | "declined") => {
      const given = fields
        .map(({ read }, at) => [question.fields[at]?.fieldId ?? "", read()] as const)
        .filter(([, value]) => value !== undefined);
      this.view.post({
        type: "answer",
        questionId: question.itemId,
        outcome,
        answers: outcome === "answered" ? Object.fromEntries(given) : {},
        note: outcome === "declined" ? note.value.trim() : "",
      });
    };
    const send = button(BUTTONS.send, () => answer("answered"), { class: "primary send" });
    const look = () => {
      send.disabled = fields.some(
        ({ read }, at) => question.fields[at]?.required === true && read() === undefined,
      );
    };
    const fields = question.fields.map((field, at) =>
      drawField(field, `${question.itemId}.${at}`, look, () => send.click()),
    );
    const note = h("input", {
      class: "reason",
      placeholder: "Reason (optional)",
      "aria-label": "Reason for declining (optional)",
    });
    note.addEventListener("keydown", (event) => {
      if (event.key === "Enter") answer("declined");
    });
    look();
    return [
      h("div", { class: "why" }, `${visible(question.asker)} asks`),
      ...fields.map(({ element }) => element),
      h("div", { class: "row" }, send),
      h(
        "div",
        { class: "row" },
        button(BUTTONS.decline, () => answer("declined"), { class: "decline" }),
        note,
      ),
      h("div", { class: "note", role: "status" }),
    ];
  }
}

function over({ asker, title, state, summary, fields, answers, note }: Question): HTMLElement {
  const told = fields.map(({ fieldId, text }) => `${text}\n${written(answers[fieldId])}`.trim());
  return h(
    "details",
    {},
    h(
      "summary",
      {},
      h("span", { class: "mark" }, icon(state === "answered" ? "check" : "circle-slash")),
      h("span", { class: "title" }, `${visible(asker)} asked: ${visible(title)}`),
      h("span", { class: "went" }, visible(summary)),
    ),
    h(
      "pre",
      { "aria-label": "Questions and answers", tabindex: "0" },
      visible([...told, note].filter(Boolean).join("\n\n")),
    ),
  );
}

/** "" where there is none. */
function written(answer: unknown): string {
  if (typeof answer === "boolean") return BUTTONS[answer ? "yes" : "no"];
  return Array.isArray(answer) ? answer.join(", ") : String(answer ?? "");
}

function drawField(field: QuestionField, name: string, look: () => void, send: () => void): Drawn {
  const legend = h(
    "legend",
    {},
    field.header !== "" && h("span", { class: "header" }, visible(field.header)),
    visible(field.text),
  );
  const preset = typeof field.default === "string" ? visible(field.default) : "";
  const own = h("input", {
    class: "own",
    type: "text",
    value: field.options.length === 0 ? preset : "",
    placeholder: visible(field.placeholder) || (field.options.length > 0 ? BUTTONS.other : ""),
    "aria-label": field.options.length > 0 ? BUTTONS.other : visible(field.text),
  });
  const several = field.kind === "choices";
  const options =
    field.kind === "confirm"
      ? [
          { label: BUTTONS.yes, description: "", value: true as unknown },
          { label: BUTTONS.no, description: "", value: false as unknown },
        ]
      : field.options.map((option) => ({ ...option, value: option.label as unknown }));
  const boxes = options.map(({ value }) =>
    h("input", {
      type: several ? "checkbox" : "radio",
      name,
      checked: Array.isArray(field.default) ? field.default.includes(value) : field.default === value,
    }),
  );
  const rows = options.map(({ label, description }, at) =>
    h(
      "label",
      { class: "option" },
      boxes[at],
      h(
        "span",
        {},
        h("span", { class: "label" }, visible(label)),
        description !== "" && h("span", { class: "about" }, visible(description)),
      ),
    ),
  );
  own.addEventListener("input", () => {
    if (!several && own.value.trim() !== "") for (const box of boxes) box.checked = false;
    look();
  });
  own.addEventListener("keydown", (event) => {
    if (event.key === "Enter") send();
  });
  for (const box of boxes)
    box.addEventListener("change", () => {
      if (!several) own.value = "";
      look();
    });
  const read = () => {
    const chosen = options.filter((_, at) => boxes[at]?.checked).map(({ value }) => value);
    const text = own.value.trim();
    if (several) {
      const all = text === "" ? chosen : [...chosen, text];
      return all.length > 0 ? all : undefined;
    }
    return chosen[0] ?? (text === "" ? undefined : text);
  };
  const writes = field.other || (options.length === 0 && field.kind !== "confirm");
  return { element: h("fieldset", {}, legend, ...rows, writes && own), read };
}
