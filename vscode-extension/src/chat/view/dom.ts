import { straight } from "../../editor/visible";

type Child = Node | string | null | undefined | false;
type Props = { class?: string; [name: string]: unknown };

/** Attributes a user reads. */
const READ: ReadonlySet<string> = new Set(["title", "aria-label", "alt", "placeholder"]);

/** An element: `on…` are listeners, the rest attributes (false and null leave one out). Text is never markup, and stands
 * in the order it has. */
export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  props: Props = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (typeof value === "function")
      element.addEventListener(name.slice(2).toLowerCase(), value as EventListener);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined)
      element.setAttribute(name, READ.has(name) ? straight(String(value)) : String(value));
  }
  element.append(
    ...children
      .filter((child): child is Node | string => child !== null && child !== undefined && child !== false)
      .map((child) => (typeof child === "string" ? straight(child) : child)),
  );
  return element;
}

/** Set the text only when it differs: an untouched node keeps the selection in it. */
export function setText(element: Element, text: string): void {
  const shown = straight(text);
  if (element.textContent !== shown) element.textContent = shown;
}

/** Show `text` in the one text node of `element`; what only grew is appended. */
export function growText(element: Element, grown: string): void {
  const text = straight(grown);
  const node = element.firstChild;
  if (node instanceof Text && node.data !== "" && text.startsWith(node.data)) {
    if (text.length > node.data.length) node.appendData(text.slice(node.data.length));
  } else setText(element, text);
}

export function button(label: string, press: () => void, props: Props = {}): HTMLButtonElement {
  return h("button", { type: "button", onclick: press, ...props }, label);
}
