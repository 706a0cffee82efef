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
/** The user's settings by their whole names, and the event of a change. */
export const settings: Record<string, unknown> = {};
export const configured = new EventEmitter<unknown>();
/** A text becomes another. */
export const typed = new EventEmitter<unknown>();
/** A text is saved; tabs come and go. */
export const saved = new EventEmitter<unknown>();
export const tabs = new EventEmitter<{ closed: unknown[] }>();
export const workspace = {
  isTrusted: true,
  getConfiguration: () => ({
    get: (name: string, or?: unknown) => settings[name] ?? or,
    inspect: (name: string) => ({ globalValue: settings[name] }),
    update: async (name: string, value: unknown) => void (settings[name] = value),
  }),
  onDidChangeConfiguration: configured.event,
  workspaceFolders: [{ uri: { scheme: "file", fsPath: "/w" } }],
  textDocuments: [] as unknown[],
  onDidChangeTextDocument: typed.event,
  onDidSaveTextDocument: saved.event,
  asRelativePath: ({ path }: { path: string }) => (path.startsWith("/w/") ? path.slice(3) : path),
};

interface Parts {
  scheme: string;
  path: string;
  query: string;
  authority?: string;
}

export class Uri {
  private constructor(
    readonly scheme: string,
    readonly path: string,
    readonly query: string,
    readonly authority = "",
  ) {}

  static from({ scheme, path, query, authority }: Parts): Uri {
    return new Uri(scheme, path, query, authority);
  }

  static file(path: string): Uri {
    return new Uri("file", path, "");
  }

  static joinPath({ fsPath }: { fsPath: string }, ...parts: string[]): { fsPath: string } {
    return { fsPath: [fsPath, ...parts].join("/") };
  }

  with(parts: Partial<Parts>): Uri {
    const { scheme, path, query, authority } = this;
    return Uri.from({ scheme, path, query, authority, ...parts });
  }

  toString(): string {
    const authority = this.authority && `//${this.authority}`;
    return `${this.scheme}:${authority}${this.path}?${this.query}`;
  }
}

export const FileType = { File: 1 };
export const FileChangeType = { Changed: 1 };
export const FilePermission = { Readonly: 1 };
export const FileSystemError = {
  NoPermissions: (uri: Uri) => new Error(`NoPermissions ${uri.path}`),
  Unavailable: (text: string) => new Error(text),
};

export class Range {
  readonly start: Position;
  readonly end: Position;

  constructor(line: number, character: number, endLine: number, endCharacter: number) {
    this.start = new Position(line, character);
    this.end = new Position(endLine, endCharacter);
  }
}

export class CodeLens {
  constructor(
    readonly range: Range,
    readonly command: { title: string; command: string; arguments: unknown[] },
  ) {}
}

export class Position {
  constructor(
    readonly line: number,
    readonly character: number,
  ) {}
}

export const SymbolKind: Record<number, string> = { 11: "Function" };

/** The commands VS Code has, and those that were run. */
export const commands = {
  ran: [] as [string, ...unknown[]][],
  getCommands: async () => ["_open.mergeEditor"],
  executeCommand: async (...run: [string, ...unknown[]]) => void commands.ran.push(run),
};

interface Item {
  label: string;
  description?: string;
  kind?: number;
}

/** A quick pick the test answers. */
export class Pick {
  title = "";
  placeholder = "";
  items: Item[] = [];
  selectedItems: Item[] = [];
  activeItems: Item[] = [];
  shown = false;
  private readonly accepted = new EventEmitter<void>();
  private readonly hidden = new EventEmitter<void>();
  readonly onDidAccept = this.accepted.event;
  readonly onDidHide = this.hidden.event;
  readonly onDidTriggerItemButton = new EventEmitter<unknown>().event;

  show(): void {
    this.shown = true;
    picks.push(this);
  }

  choose(at: number): void {
    this.selectedItems = this.items.slice(at, at + 1);
    this.accepted.fire();
  }

  /** Press the row whose words these are. */
  press(words: string): void {
    const at = this.items.findIndex(({ label }) => label.replace(/^\$\([^)]*\) /, "") === words);
    if (at === -1)
      throw new Error(`no row ${words} among ${this.items.map(({ label }) => label).join(", ")}`);
    this.choose(at);
  }

  hide(): void {
    this.shown = false;
    this.hidden.fire();
  }

  dispose(): void {}
}

/** Those that were shown. */
export const picks: Pick[] = [];
export const QuickPickItemKind = { Separator: -1, Default: 0 };
export class ThemeIcon {
  static readonly File = new ThemeIcon("file");
  constructor(readonly id: string) {}
}
/** An input box the test fills in. */
export class Box {
  value = "";
  title = "";
  prompt = "";
  enabled = true;
  busy = false;
  shown = false;
  validationMessage: string | undefined;
  buttons: { tooltip?: string }[] = [];
  private readonly changed = new EventEmitter<string>();
  private readonly accepted = new EventEmitter<void>();
  private readonly hidden = new EventEmitter<void>();
  private readonly pressed = new EventEmitter<unknown>();
  readonly onDidChangeValue = this.changed.event;
  readonly onDidAccept = this.accepted.event;
  readonly onDidHide = this.hidden.event;
  readonly onDidTriggerButton = this.pressed.event;

  show(): void {
    this.shown = true;
    boxes.push(this);
  }

  type(value: string): void {
    this.value = value;
    this.changed.fire(value);
  }

  accept(): void {
    this.accepted.fire();
  }

  press(tooltip: string): void {
    this.pressed.fire(this.buttons.find((button) => button.tooltip === tooltip));
  }

  hide(): void {
    this.shown = false;
    this.hidden.fire();
  }

  dispose(): void {}
}

/** Those that were shown. */
export const boxes: Box[] = [];
/** What was shown beside the window, and the way to press its button. */
export const ConfigurationTarget = { Global: 1 };

export const notifications: { text: string; buttons: string[]; press(button?: string): void }[] = [];

/** The user does something in an editor. */
export const edited = new EventEmitter<{ kind: number }>();
const shown = new EventEmitter<unknown>();
export const TextEditorSelectionChangeKind = { Keyboard: 1, Mouse: 2, Command: 3 };

export const ColorThemeKind = { Light: 1, Dark: 2, HighContrast: 3, HighContrastLight: 4 };
/** Another theme is seen. */
export const themed = new EventEmitter<unknown>();

export const window = {
  state: { focused: true },
  activeColorTheme: { kind: ColorThemeKind.Dark },
  onDidChangeActiveColorTheme: themed.event,
  /** An editor comes to the front. */
  shown,
  onDidChangeActiveTextEditor: shown.event,
  tabGroups: {
    all: [],
    onDidChangeTabs: tabs.event,
    activeTabGroup: {
      get activeTab(): { input: unknown } | undefined {
        return undefined;
      },
    },
  },
  onDidChangeTextEditorSelection: edited.event,
  get activeTextEditor(): unknown {
    return undefined;
  },
  onDidChangeTextEditorVisibleRanges: new EventEmitter<unknown>().event,
  onDidChangeVisibleTextEditors: new EventEmitter<unknown>().event,
  visibleTextEditors: [] as unknown[],
  setStatusBarMessage: (text: string) => notifications.push({ text, buttons: [], press: () => undefined }),
  showInformationMessage: (text: string, ...buttons: string[]) =>
    new Promise<string | undefined>((press) => notifications.push({ text, buttons, press })),
  createQuickPick: () => new Pick(),
  createInputBox: () => new Box(),
  registerFileDecorationProvider: () => ({ dispose: () => undefined }),
  createTreeView: () => ({ badge: undefined, dispose: () => undefined }),
  showQuickPick: (items: Item[], options: { title?: string; placeHolder?: string }) => {
    const pick = new Pick();
    Object.assign(pick, { items, title: options.title ?? "", placeholder: options.placeHolder ?? "" });
    pick.show();
    return new Promise<Item | undefined>((resolve) => pick.onDidAccept(() => resolve(pick.selectedItems[0])));
  },
};

/** The documents in tabs. */
export class TabInputText {
  constructor(readonly uri: Uri) {}
}
export class TabInputNotebookDiff {
  constructor(
    readonly original: Uri,
    readonly modified: Uri,
  ) {}
}

export enum TreeItemCollapsibleState {
  None,
  Collapsed,
  Expanded,
}

/** Parts of what is said to the models of other extensions. */
export class LanguageModelTextPart {
  constructor(readonly value: string) {}
}
export class LanguageModelToolCallPart {
  constructor(
    readonly callId: string,
    readonly name: string,
    readonly input: object,
  ) {}
}
export class LanguageModelToolResultPart {
  constructor(
    readonly callId: string,
    readonly content: unknown[],
  ) {}
}
export const LanguageModelDataPart = {
  image: (data: Uint8Array, mimeType: string) => ({ data: [...data], mimeType }),
};
export const LanguageModelChatMessageRole = { User: 1, Assistant: 2 };
export class LanguageModelChatMessage {
  constructor(
    readonly role: number,
    readonly content: unknown[],
  ) {}
}
export class LanguageModelError extends Error {
  constructor(
    message: string,
    readonly code: string,
  ) {
    super(message);
  }
}
/** The models of other extensions; `models` is the test's to fill. */
export const lm = {
  models: [] as unknown[],
  changed: new EventEmitter<void>(),
  onDidChangeChatModels: (each: () => void) => lm.changed.event(each),
  selectChatModels: async () => lm.models,
};
export const extensions = {
  all: [] as { packageJSON: unknown; extensionUri?: { fsPath: string } }[],
  getExtension: (_id: string): unknown => undefined,
};
class Kind {
  constructor(readonly value: string) {}
  append(part: string): Kind {
    return new Kind(this.value ? `${this.value}.${part}` : part);
  }
}

export const CodeActionKind = {
  Empty: new Kind(""),
  QuickFix: new Kind("quickfix"),
  RefactorRewrite: new Kind("refactor.rewrite"),
};
