import * as vscode from "vscode";
import type { Approvals } from "./approvals";
import type { Questions } from "./questions";
import { type KeySet, opened, setKey } from "./auth";
import type { Panel } from "./chat/panel";
import type { Daemon } from "./client";
import { selection } from "./context";
import type { Desk } from "./desk";
import type { Doctor } from "./doctor";
import { allowLocal } from "./local";
import { reviewMemory } from "./memory";
import type { Overview } from "./overview";
import type { Effort, Item, Mode } from "./protocol";
import { MODES } from "./labels";
import { detail } from "./models";
import type { Setup } from "./setup";
import { signIn, signOut } from "./signIn";
import type { Trust } from "./trust";

/** A script of the daemon's that shows Amanu at work in any folder, without a key. */
const TOUR = "scripted:tour";
const TOUR_PROMPT = "Show me how you work.";
const WALKTHROUGH = "amanu.amanu#start";

/** The context menu of a message in the chat, which names the item. */
function messageCommands(desk: Desk, panel: Panel): vscode.Disposable[] {
  const on = (name: string, work: (item: Item) => unknown) =>
    vscode.commands.registerCommand(name, ({ itemId }: { itemId?: unknown } = {}) => {
      const item = desk.state.items.find((each) => each.itemId === itemId);
      return item && desk.attempt(async () => work(item));
    });
  return [
    on("amanu.copyMessage", (item) => "text" in item && vscode.env.clipboard.writeText(item.text)),
    on("amanu.editPrompt", (item) => panel.edit(item.itemId)),
    on("amanu.retry", (item) => item.turnId && panel.retry(item.turnId)),
  ];
}

/** The commands that are about the session and the set-up; those of the review are in review.ts. */
export function commands(
  desk: Desk,
  daemon: Daemon,
  panel: Panel,
  overview: Overview,
  approvals: Approvals,
  questions: Questions,
  setup: Setup,
  doctor: Doctor,
  trust: Trust,
  log: vscode.LogOutputChannel,
): vscode.Disposable[] {
  const on = (name: string, work: () => unknown) =>
    vscode.commands.registerCommand(name, () => desk.attempt(async () => work()));
  const focus = async () => {
    await vscode.commands.executeCommand("amanu.chat.focus");
    panel.post({ type: "focus" });
  };
  /** The usable models have changed; if the session's own cannot answer, it switches to one that a new key opens. */
  const changed = async (outcome: KeySet | undefined) => {
    if (outcome === undefined) return;
    const model = outcome.vendor === undefined ? undefined : await opened(daemon, desk, outcome.vendor);
    if (model !== undefined) await desk.setModel(model.modelId);
    const next = model === undefined ? "" : ` ${model.name} is now in use.`;
    desk.tell({ level: "info", text: outcome.words + next });
    await panel.listModels();
  };
  return [
    on("amanu.focus", focus),
    on("amanu.new", async () => {
      await desk.fresh();
      await focus();
    }),
    on("amanu.sessions", async () => {
      await vscode.commands.executeCommand("amanu.chat.focus");
      panel.post({ type: "showSessions" });
    }),
    on("amanu.stop", () => desk.stop()),
    on("amanu.context", async () => {
      await vscode.commands.executeCommand("amanu.chat.focus");
      panel.post({ type: "showContext" });
    }),
    ...messageCommands(desk, panel),
    on("amanu.compact", () => desk.compact()),
    on("amanu.memory", () => reviewMemory(desk, daemon)),
    on("amanu.attachSelection", async () => {
      const attachment = selection();
      if (attachment === undefined)
        return desk.tell({ level: "info", text: "There is no open file to attach from." });
      return panel.attachToPrompt(attachment);
    }),
    on("amanu.answer", async () => {
      if (desk.state.approvals.length === 0 && (await questions.answer())) return;
      if (desk.state.approvals.length > 0 || !(await overview.answer())) await approvals.answer();
    }),
    on("amanu.setKey", async () => changed(await setKey(daemon))),
    on("amanu.signInOpenAI", async () => changed(await signIn(setup))),
    on("amanu.signOutOpenAI", async () => changed(await signOut(setup))),
    on("amanu.allowLocal", async () => {
      const outcome = await allowLocal(daemon, setup);
      if (outcome === undefined) return;
      desk.tell({ level: "info", text: outcome });
      await panel.listModels();
    }),
    on("amanu.selectModel", () => selectModel(desk, daemon)),
    on("amanu.selectEffort", () => selectEffort(desk, daemon)),
    on("amanu.selectMode", async () => {
      const items = Object.entries(MODES).map(([mode, { name, meaning }]) => ({
        mode: mode as Mode,
        label: name,
        description: meaning,
      }));
      const chosen = await vscode.window.showQuickPick(items, { title: "Mode" });
      if (chosen) await desk.setMode(chosen.mode);
    }),
    on("amanu.install", () => setup.install(daemon)),
    on("amanu.doctor", () => doctor.show()),
    on("amanu.reviewTrust", () => trust.review()),
    on("amanu.start", async () => {
      // VS Code ticks a step off when its key becomes true, but not when it was true before the page was first opened
      await panel.mark(false);
      await vscode.commands.executeCommand("workbench.action.openWalkthrough", WALKTHROUGH);
      await panel.mark();
    }),
    on("amanu.tour", async () => {
      await desk.fresh();
      await desk.setModel(TOUR);
      await focus();
      await desk.prompt(TOUR_PROMPT, [], "send");
    }),
    on("amanu.restart", () => daemon.restart()),
    on("amanu.logs", () => log.show()),
  ];
}

async function selectModel(desk: Desk, daemon: Daemon): Promise<void> {
  const { models } = await daemon.request("amanu/model/list", {});
  const usableFirst = models.toSorted((a, b) => Number(b.available) - Number(a.available));
  const items = usableFirst.map((model) => ({
    label: model.name,
    description: model.modelId + (model.modelId === desk.state.modelId ? " · in use" : ""),
    detail: detail(model),
    model,
  }));
  const chosen = await vscode.window.showQuickPick(items, { title: "Model", matchOnDescription: true });
  if (chosen) await desk.setModel(chosen.model.modelId); // a refusal names the way out
}

const EFFORTS: Record<Effort, string> = {
  none: "no thinking",
  minimal: "as little as possible",
  low: "for simple tasks",
  medium: "for most tasks",
  high: "for hard tasks",
  xhigh: "slow and thorough",
  max: "as much as the model can",
};

async function selectEffort(desk: Desk, daemon: Daemon): Promise<void> {
  const { models, defaultModelId } = await daemon.request("amanu/model/list", {});
  const modelId = desk.state.modelId || defaultModelId;
  const model = models.find((each) => each.modelId === modelId);
  const offered = model && model.efforts.length > 0 ? model.efforts : (Object.keys(EFFORTS) as Effort[]);
  const items = offered.map((effort) => ({
    effort,
    label: effort,
    description: EFFORTS[effort] + (effort === desk.state.effort ? " · in use" : ""),
  }));
  const title = `How much ${model?.name ?? "the model"} thinks`;
  const chosen = await vscode.window.showQuickPick(items, { title });
  if (chosen) await desk.setEffort(chosen.effort);
}
