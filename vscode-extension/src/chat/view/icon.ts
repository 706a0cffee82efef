import { h } from "./dom";

/** A picture of VS Code's own set (codicons). Without words it is decoration. */
export function icon(name: string, words = ""): HTMLElement {
  const told = words === "" ? { "aria-hidden": "true" } : { role: "img", "aria-label": words };
  const element = h("span", told);
  setIcon(element, name);
  return element;
}

/** Let it show another picture; `loading` turns. */
export function setIcon(element: HTMLElement, name: string): void {
  const shown = `codicon codicon-${name}${name === "loading" ? " codicon-modifier-spin" : ""}`;
  if (element.className !== shown) element.className = shown;
}

/** A button that is a picture alone: its words are told, and shown on hover. */
export function iconButton(
  name: string,
  words: string,
  press: (event: Event) => void,
  props: { class?: string; [name: string]: unknown } = {},
): HTMLButtonElement {
  const { class: more = "", ...rest } = props;
  return h(
    "button",
    {
      type: "button",
      title: words,
      "aria-label": words,
      onclick: press,
      class: `icon ${more}`.trim(),
      ...rest,
    },
    icon(name),
  );
}

/** Let a button that is a picture say something else. */
export function rename(button: HTMLElement, words: string): void {
  if (button.title === words) return;
  button.title = words;
  button.setAttribute("aria-label", words);
}
