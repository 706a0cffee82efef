import type { Line } from "../../protocol";
import { visible } from "../../editor/visible";
import { h } from "./dom";

/** Lines from the daemon, in the colours of their tones. */
export function toned(lines: Line[]): HTMLElement {
  return h(
    "ul",
    { class: "reasons" },
    ...lines.map(({ tone, text }) => h("li", { class: tone }, visible(text))),
  );
}
