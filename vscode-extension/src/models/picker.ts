import * as vscode from "vscode";
import type { Daemon } from "../daemon/client";
import type { OpenChats } from "../chat/openChats";
import { DEFAULT, KEY, type ModelItem, modelItems, ofEditor, vendorOf } from "./items";
import type { Effort, ModelInfo, ModelListResult } from "../protocol";

const SET_KEY: vscode.QuickInputButton = { iconPath: new vscode.ThemeIcon("key"), tooltip: "API Keys…" };

const EFFORTS: Record<Effort, string> = {
  none: "no thinking",
  minimal: "as little as possible",
  low: "for simple tasks",
  medium: "for most tasks",
  high: "for hard tasks",
  xhigh: "slow and thorough",
  max: "as much as the model can",
};

/** *Select Model…*: every model there is, searchable; its effort, the default for new sessions and a missing key are a
 * button on its row. */
export class ModelPicker {
  constructor(
    private readonly openChats: Pick<OpenChats, "active" | "state" | "tell">,
    private readonly daemon: Pick<Daemon, "request">,
    /** What can be chosen, or what is the default, is another thing now. */
    private readonly changed: () => Promise<void>,
  ) {}

  /** Let the user choose the session's model. */
  async select(): Promise<void> {
    const list = await this.list();
    const pick = this.pick(list, "Model", [SET_KEY]);
    pick.onDidTriggerButton(() => {
      pick.hide();
      void vscode.commands.executeCommand("amanu.setKey");
    });
    pick.onDidTriggerItemButton(({ item, button }) => {
      const { model } = item;
      if (model === undefined) return;
      if (button === DEFAULT) void this.makeDefault(pick, model);
      else {
        pick.hide();
        void (button === KEY ? this.unlock(item) : this.chooseEffort(model));
      }
    });
    const item = await accepted(pick);
    if (item?.model === undefined) return;
    if (item.obstacle !== undefined) return this.unlock(item);
    await this.openChats.active.setModel(item.model.modelId); // a refusal names the way out
  }

  /** Let the user choose one of the models VS Code has from other extensions, for this session and for new ones. */
  async useEditorModel(): Promise<void> {
    const list = await this.list();
    const item = await accepted(this.pick({ ...list, models: list.models.filter(ofEditor) }, "Model", []));
    if (item?.model === undefined) return;
    await this.openChats.active.setModel(item.model.modelId);
    await this.keepDefault(item.model);
  }

  /** Let the user choose a model for something else, by its id. */
  async choose(title: string): Promise<string | undefined> {
    const item = await accepted(this.pick(await this.list(), title, []));
    return item?.model?.modelId;
  }

  /** How much the model thinks, that model when it is named; else the session's. Another one becomes the session's. */
  async chooseEffort(named?: ModelInfo): Promise<void> {
    const { state } = this.openChats;
    const { models, defaultModelId } =
      named === undefined ? await this.list() : { models: [named], defaultModelId: "" };
    const current = state.modelId || defaultModelId;
    const model = named ?? models.find(({ modelId }) => modelId === current);
    const offered = model && model.efforts.length > 0 ? model.efforts : (Object.keys(EFFORTS) as Effort[]);
    const inUse = state.effort ?? model?.defaultEffort;
    const items = offered.map((effort) => ({
      effort,
      label: effort,
      description: EFFORTS[effort] + (effort === inUse ? " · in use" : ""),
      iconPath: new vscode.ThemeIcon(effort === inUse ? "check" : "dashboard"),
    }));
    const title = `Thinking effort of ${model?.name ?? "the model"}`;
    const chosen = await vscode.window.showQuickPick(items, { title });
    if (chosen === undefined) return;
    if (named !== undefined && named.modelId !== state.modelId)
      await this.openChats.active.setModel(named.modelId);
    await this.openChats.active.setEffort(chosen.effort);
  }

  private list(): Promise<ModelListResult> {
    return this.daemon.request("amanu/model/list", {});
  }

  private pick(
    list: ModelListResult,
    title: string,
    buttons: vscode.QuickInputButton[],
  ): vscode.QuickPick<ModelItem> {
    const pick = vscode.window.createQuickPick<ModelItem>();
    pick.title = title;
    pick.placeholder = "Search models by name, id or vendor";
    pick.matchOnDescription = true;
    pick.buttons = buttons;
    pick.items = modelItems(list, this.openChats.state.modelId, this.openChats.state.effort);
    return pick;
  }

  /** What a row lacks: the key of its vendor, which then selects it, or the user's yes to a server. */
  private async unlock({ model, obstacle }: ModelItem): Promise<void> {
    const vendor = model && vendorOf(model);
    await vscode.commands.executeCommand(obstacle ?? "amanu.setKey", vendor, model?.modelId);
  }

  private async makeDefault(pick: vscode.QuickPick<ModelItem>, model: ModelInfo): Promise<void> {
    pick.busy = true;
    try {
      await this.keepDefault(model);
      pick.items = modelItems(await this.list(), this.openChats.state.modelId, this.openChats.state.effort);
    } catch (error) {
      this.openChats.tell({ level: "error", text: error instanceof Error ? error.message : String(error) });
    }
    pick.busy = false;
  }

  private async keepDefault(model: ModelInfo): Promise<void> {
    const { settings } = await this.daemon.request("amanu/settings/set", {
      key: "model",
      value: model.modelId,
    });
    const variable = settings.settings.find(({ key }) => key === "model")?.variable;
    const text = variable
      ? `${model.name} was saved as the default model, but ${variable} in the environment goes before it.`
      : `New sessions use ${model.name}.`;
    this.openChats.tell({ level: variable ? "warning" : "info", text });
    await this.changed();
  }
}

/** The row the user accepted, when the list is gone. */
function accepted(pick: vscode.QuickPick<ModelItem>): Promise<ModelItem | undefined> {
  return new Promise((resolve) => {
    let item: ModelItem | undefined;
    pick.onDidAccept(() => {
      [item] = pick.selectedItems;
      pick.hide();
    });
    pick.onDidHide(() => {
      pick.dispose();
      resolve(item);
    });
    pick.show();
  });
}
