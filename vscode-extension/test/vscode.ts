/** As much of VS Code as the parts need that are tested without it. */

export class EventEmitter<T> {
  private heard: ((value: T) => void)[] = [];
  readonly event = (each: (value: T) => void) => {
    this.heard.push(each);
    return { dispose: () => (this.heard = this.heard.filter((other) => other !== each)) };
  };

  fire(value: T): void {
    for (const each of [...this.heard]) each(value);
  }

  dispose(): void {}
}

export const env = { appRoot: "/nowhere" };
export const workspace = {
  isTrusted: true,
  workspaceFolders: [{ uri: { scheme: "file", fsPath: "/w" } }],
};
