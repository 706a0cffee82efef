import type { KatexOptions } from "katex";
import { formulaDrawing } from "./formulaDrawing";

/** Let formulas be drawn by KaTeX, whose script and style lie beside that script of ours. */
export function loadKatexBeside(script: HTMLScriptElement): void {
  const beside = (name: string) => new URL(name, script.src).href;
  formulaDrawing.load = () => {
    window.addEventListener(
      "katex",
      (event) =>
        formulaDrawing.use(
          (event as CustomEvent<(tex: string, element: HTMLElement, options: KatexOptions) => void>).detail,
        ),
      { once: true },
    );
    const style = document.createElement("link");
    style.rel = "stylesheet";
    style.href = beside("katex.css");
    const loaded = document.createElement("script");
    loaded.nonce = script.nonce;
    loaded.src = beside("katex.js");
    document.head.append(style, loaded);
  };
}
