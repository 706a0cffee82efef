import * as vscode from "vscode";

const SCHEME = "amanu-page";
/** Pages that are remembered: VS Code asks again for those it shows anew. */
const KEPT = 20;

/** Texts to be read, in editors nobody has to save. */
export class Pages implements vscode.TextDocumentContentProvider, vscode.Disposable {
  private readonly changed = new vscode.EventEmitter<vscode.Uri>();
  readonly onDidChange = this.changed.event;
  private readonly texts = new Map<string, string>();
  private readonly registered = vscode.workspace.registerTextDocumentContentProvider(SCHEME, this);

  provideTextDocumentContent(uri: vscode.Uri): string {
    return this.texts.get(uri.path) ?? "";
  }

  /** Show a text; another of the same name gives way. `language` is VS Code's word for it, "diff". */
  async show(name: string, text: string, language?: string): Promise<void> {
    const document = await vscode.workspace.openTextDocument(this.keep(name, text));
    if (language !== undefined) await vscode.languages.setTextDocumentLanguage(document, language);
    await vscode.window.showTextDocument(document, { preview: true });
  }

  /** The address of a text; another of the same name gives way. */
  keep(name: string, text: string): vscode.Uri {
    const page = vscode.Uri.from({ scheme: SCHEME, path: `/${name}` });
    this.texts.delete(page.path);
    this.texts.set(page.path, text);
    for (const old of [...this.texts.keys()].slice(0, -KEPT)) this.texts.delete(old);
    this.changed.fire(page);
    return page;
  }

  dispose(): void {
    this.registered.dispose();
    this.changed.dispose();
  }
}
