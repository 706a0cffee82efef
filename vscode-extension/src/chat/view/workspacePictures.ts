import { host } from "./host";

/** Pictures that are kept: the paragraph that grows is drawn again with each piece. */
const KEPT = 20;

/** Draws the pictures of the workspace that an answer shows. The host reads them. */
class WorkspacePictures {
  private readonly sources = new Map<string, string>();
  private readonly asked = new Set<string>();

  draw(image: HTMLImageElement): void {
    const path = image.dataset["path"] ?? "";
    const source = this.sources.get(path);
    if (source !== undefined) return show(image, source);
    if (this.asked.has(path)) return;
    this.asked.add(path);
    host.post({ type: "workspacePicture", path });
  }

  /** `source`: a `data:` address; "" where there is no such picture. */
  found(path: string, source: string): void {
    this.asked.delete(path);
    this.sources.set(path, source);
    const [oldest] = this.sources.keys();
    if (this.sources.size > KEPT && oldest !== undefined) this.sources.delete(oldest);
    for (const image of document.querySelectorAll<HTMLImageElement>(
      `img.workspace[data-path="${CSS.escape(path)}"]`,
    ))
      show(image, source);
  }
}

function show(image: HTMLImageElement, source: string): void {
  if (source !== "") image.src = source;
}

export const workspacePictures = new WorkspacePictures();
