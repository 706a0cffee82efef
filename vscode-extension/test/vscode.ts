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

interface Item {
  label: string;
  kind?: number;
}

/** A quick pick the test answers. */
export class Pick {
  items: Item[] = [];
  selectedItems: Item[] = [];
  private readonly accepted = new EventEmitter<void>();
  private readonly hidden = new EventEmitter<void>();
  readonly onDidAccept = this.accepted.event;
  readonly onDidHide = this.hidden.event;

  show(): void {
    picks.push(this);
  }

  choose(at: number): void {
    this.selectedItems = this.items.slice(at, at + 1);
    this.accepted.fire();
  }

  hide(): void {
    this.hidden.fire();
  }

  dispose(): void {}
}

/** Those that are shown. */
export const picks: Pick[] = [];
export const QuickPickItemKind = { Separator: -1, Default: 0 };
export const window = { createQuickPick: () => new Pick() };
