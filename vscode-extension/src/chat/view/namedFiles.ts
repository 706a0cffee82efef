import { placeLink } from "./links";
import { linkedPlace } from "./places";
import { host } from "./host";

/** A path with a folder, or a name with an ending, and perhaps a line; not the middle of an address or of another word. */
const NAMED =
  /(?<![\w/.:@+\\-])(?:(?:\.\/)?(?:[\w@+.-]+\/)+[\w@+.-]*\w|[\w+-][\w+.-]*\.[A-Za-z]\w{0,9})(?::\d{1,7}(?:[:-]\d{1,7})?|#L\d{1,7}(?:-L?\d{1,7})?)?(?![\w/\\@])/g;
/** Milliseconds in which names are gathered for one question to the host, and how many it takes. */
const GATHER = 400;
const MOST = 200;

/** Makes links of what prose names, where the workspace has such a file. The host knows: until it has said so, and where
 * there is none, the text stays as it is. */
class NamedFiles {
  private readonly known = new Map<string, boolean>();
  private readonly asked = new Set<string>();
  private timer: ReturnType<typeof setTimeout> | undefined;

  /** Mark what may be a file. */
  mark(root: DocumentFragment): void {
    const texts: Text[] = [];
    const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) texts.push(walker.currentNode as Text);
    for (const text of texts)
      if (!text.parentElement?.closest("a, .formula")) this.markText(text, text === root.lastChild);
  }

  /** What the host has found of those that it was asked for. */
  found(asked: readonly string[], found: readonly string[]): void {
    for (const path of asked) this.known.set(path, found.includes(path));
    for (const element of document.querySelectorAll<HTMLElement>(".named")) this.link(element);
  }

  /** Files may have come since: ask again for what was not there. */
  lookAgain(): void {
    for (const [path, isThere] of this.known) if (!isThere) this.known.delete(path);
    for (const element of document.querySelectorAll<HTMLElement>("span.named"))
      this.want(element.dataset["name"] ?? "");
  }

  private markText(text: Text, mayGrow: boolean): void {
    const whole = text.data;
    let end = 0;
    const nodes: (Node | string)[] = [];
    for (const { 0: name, index } of whole.matchAll(NAMED)) {
      if (linkedPlace(name) === undefined) continue;
      const element = document.createElement("span");
      element.className = "named";
      element.dataset["name"] = name;
      element.textContent = name;
      nodes.push(whole.slice(end, index), element);
      end = index + name.length;
    }
    if (nodes.length === 0) return;
    text.replaceWith(...nodes, whole.slice(end));
    for (const node of nodes) {
      if (!(node instanceof HTMLElement) || this.link(node)) continue;
      const isWhole = !mayGrow || end < whole.length || node !== nodes.at(-1);
      if (isWhole) this.want(node.dataset["name"] ?? "");
    }
  }

  /** Whether the host has said something about it. */
  private link(element: HTMLElement): boolean {
    const place = linkedPlace(element.dataset["name"] ?? "");
    const isThere = place && this.known.get(place.path);
    if (place === undefined || isThere !== true) return isThere !== undefined;

    element.replaceWith(placeLink(place, element.textContent));

    return true;
  }

  private want(name: string): void {
    const path = linkedPlace(name)?.path;
    if (path === undefined || this.known.has(path) || this.asked.has(path)) return;
    this.asked.add(path);
    this.timer ??= setTimeout(() => this.ask(), GATHER);
  }

  private ask(): void {
    this.timer = undefined;
    const paths = [...this.asked].slice(0, MOST);
    for (const path of paths) this.asked.delete(path);
    if (paths.length > 0) host.post({ type: "namedFiles", paths });
    if (this.asked.size > 0) this.timer = setTimeout(() => this.ask(), GATHER);
  }
}

export const namedFiles = new NamedFiles();
