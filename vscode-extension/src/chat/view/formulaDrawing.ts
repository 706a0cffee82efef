import type { KatexOptions } from "katex";
import { LONGEST } from "./formula";

type Render = (tex: string, element: HTMLElement, options: KatexOptions) => void;

/** Formulas that wait for KaTeX at most: what is redrawn before it comes leaves its element behind. */
const WAITING = 1_000;
/** Drawn formulas that are kept: the paragraph that grows is drawn again with each piece. */
const KEPT = 200;
/** A model writes them: nothing is loaded, no link is made, and no macro grows without end. */
const OPTIONS: KatexOptions = {
  throwOnError: true,
  trust: false,
  strict: false,
  maxSize: 20,
  maxExpand: 500,
};

/** Draws formulas by KaTeX, which is loaded when the first one comes. Until then, and where it cannot read one, the source
 * is shown. */
class FormulaDrawing {
  /** Loads KaTeX, and gives it to `use`. */
  load = (): void => undefined;
  private render: Render | undefined;
  private isLoading = false;
  private waiting: { element: HTMLElement; tex: string; isDisplay: boolean }[] = [];
  private readonly drawn = new Map<string, Node | null>();

  draw(element: HTMLElement, tex: string, isDisplay: boolean): void {
    if (this.render !== undefined) return this.drawNow(this.render, element, tex, isDisplay);
    element.textContent = tex;
    this.waiting.push({ element, tex, isDisplay });
    if (this.waiting.length > WAITING) this.waiting.splice(0, WAITING / 2);
    if (this.isLoading) return;
    this.isLoading = true;
    this.load();
  }

  use(render: Render): void {
    this.render = render;
    for (const { element, tex, isDisplay } of this.waiting.splice(0))
      if (element.textContent === tex) this.drawNow(render, element, tex, isDisplay);
  }

  private drawNow(render: Render, element: HTMLElement, tex: string, isDisplay: boolean): void {
    const key = `${isDisplay ? "d" : "i"}${tex}`;
    let node = this.drawn.get(key);
    if (node === undefined) {
      node = rendered(render, tex, isDisplay);
      this.drawn.set(key, node);
      const [oldest] = this.drawn.keys();
      if (this.drawn.size > KEPT && oldest !== undefined) this.drawn.delete(oldest);
    }
    if (node === null) element.textContent = tex;
    else element.replaceChildren(node.cloneNode(true));
  }
}

/** Null where it is no TeX. */
function rendered(render: Render, tex: string, displayMode: boolean): Node | null {
  const holder = document.createElement("span");
  if (tex.length > LONGEST) return null;
  try {
    render(tex, holder, { ...OPTIONS, displayMode });
  } catch {
    return null;
  }
  return holder.firstChild;
}

export const formulaDrawing = new FormulaDrawing();
