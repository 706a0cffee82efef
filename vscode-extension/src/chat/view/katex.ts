import { render } from "katex";

/** A script of its own: most conversations have no formula. */
window.dispatchEvent(new CustomEvent("katex", { detail: render }));
