import * as vscode from "vscode";
import type { Daemon } from "../daemon/client";
import { ofEditor, vendorOf } from "./items";
import type { ModelInfo, ModelListResult } from "../protocol";

/** The models the daemon knows. */
export class ModelList implements vscode.Disposable {
  models: ModelInfo[] = [];
  defaultModelId: string | null = null;
  private vendors: ModelListResult["vendors"] = {};
  /** Whether some model can be used, when the daemon has said so. */
  usable: boolean | undefined;
  private readonly changed = new vscode.EventEmitter<void>();
  readonly onChanged = this.changed.event;
  private readonly connection: vscode.Disposable;

  constructor(private readonly daemon: Daemon) {
    this.connection = daemon.onConnection(({ status }) => {
      void this.mark();
      if (status === "ready") void this.refresh().catch(() => undefined); // told when a prompt needs one
    });
  }

  async refresh(): Promise<void> {
    const { models, defaultModelId, vendors } = await this.daemon.request("amanu/model/list", {});
    this.models = models;
    this.defaultModelId = defaultModelId;
    this.vendors = vendors;
    this.usable = defaultModelId !== null || models.some((model) => model.available);
    void this.mark();
    this.changed.fire();
  }

  /** Who gives VS Code the first of its own models, if it has any. */
  get editorVendor(): string | undefined {
    const model = this.models.find(ofEditor);
    return model && this.vendors[vendorOf(model)];
  }

  /** Tell VS Code, for the walkthrough, what is done already. */
  async mark(done = true): Promise<void> {
    const ready = done && this.daemon.connection.status === "ready";
    await vscode.commands.executeCommand("setContext", "amanu.ready", ready);
    await vscode.commands.executeCommand("setContext", "amanu.model", ready && this.usable === true);
  }

  dispose(): void {
    this.connection.dispose();
    this.changed.dispose();
  }
}
