import type { ToView } from "../messages";
import { host } from "./host";

/** Of a line: length and style of each of its parts, in turn. */
export type Tokens = readonly number[];

/** Code that can be coloured, from the first line on. */
export interface Paintable {
  readonly element: HTMLElement;
  readonly languageName: string;
  next(): { start: number; lines: string[] } | undefined;
  paint(start: number, tokens: readonly Tokens[]): void;
  unpaint(): void;
}

/** Milliseconds in which lines are gathered for one request. */
const GATHER = 30;

/** Asks the extension for colours, of what is in sight: it has the grammars and the user's theme, and a thread for it, so
 * that no line ever stops the view. */
class Painter {
  private readonly codes = new WeakMap<Element, Paintable>();
  private readonly ids = new WeakMap<Paintable, string>();
  private readonly waiting = new Set<Paintable>();
  /** Those for which an answer is on its way, by request. */
  private asked = new Map<number, { code: Paintable; start: number }>();
  private requests = 0;
  private blocks = 0;
  private readonly view = Math.random().toString(36).slice(2);
  private timer: ReturnType<typeof setTimeout> | undefined;
  private styles: readonly string[] = [];
  private readonly sheet = new CSSStyleSheet();
  private readonly sight = new IntersectionObserver((entries) => this.seen(entries), { rootMargin: "300px" });

  add(code: Paintable): void {
    this.codes.set(code.element, code);
    this.sight.observe(code.element);
  }

  /** There is more of it, or more of it is shown. */
  touch(code: Paintable): void {
    if (!this.ids.has(code)) return; // not in sight yet
    this.waiting.add(code);
    this.timer ??= setTimeout(() => this.ask(), GATHER);
  }

  /** The extension has answered. */
  painted({ request, tokens, styles }: Extract<ToView, { type: "painted" }>): void {
    const asked = this.asked.get(request);
    this.asked.delete(request);
    if (asked === undefined) return; // before another theme came
    if (tokens === null) return void this.ids.delete(asked.code); // it cannot be coloured
    this.dress(styles);
    if (tokens.length === 0) asked.code.unpaint();
    else asked.code.paint(asked.start, tokens);
    this.touch(asked.code);
  }

  /** Another theme: all anew. */
  repaint(): void {
    this.asked.clear();
    for (const element of document.querySelectorAll(".code")) {
      const code = this.codes.get(element);
      code?.unpaint();
      if (code !== undefined) this.touch(code);
    }
  }

  private seen(entries: IntersectionObserverEntry[]): void {
    for (const { isIntersecting, target } of entries) {
      const code = this.codes.get(target);
      if (!isIntersecting || code === undefined) continue;
      this.sight.unobserve(target);
      this.ids.set(code, `${this.view}.${++this.blocks}`);
      this.touch(code);
    }
  }

  private ask(): void {
    this.timer = undefined;
    const busy = new Set([...this.asked.values()].map(({ code }) => code));
    for (const code of this.waiting) {
      if (busy.has(code)) continue;
      this.waiting.delete(code);
      const block = this.ids.get(code);
      const next = code.languageName === "" || !code.element.isConnected ? undefined : code.next();
      if (block === undefined || next === undefined) continue;
      const request = ++this.requests;
      this.asked.set(request, { code, start: next.start });
      host.post({ type: "paint", request, block, language: code.languageName, ...next });
    }
  }

  /** A class for each style. They go into a sheet of our own making: the page allows no style in markup. */
  private dress(styles: readonly string[]): void {
    if (styles.join() === this.styles.join()) return;
    this.styles = styles;
    const rules = styles.flatMap((style, at) => (style === "" ? [] : [`.s${at}{${style}}`]));
    this.sheet.replaceSync(rules.join("\n"));
    if (!document.adoptedStyleSheets.includes(this.sheet)) document.adoptedStyleSheets.push(this.sheet);
  }
}

export const painter = new Painter();
