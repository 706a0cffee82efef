import * as vscode from "vscode";
import type { Approvals } from "./approvals";
import type { Questions } from "./questions";
import { type KeySet, opened, setKey } from "./auth";
import type { Chats } from "./chat/chats";
import type { Daemon } from "./client";
import { selection } from "./context";
import type { Desk } from "./desk";
import type { Desks } from "./desks";
import type { Doctor } from "./doctor";
import { allowLocal } from "./local";
import { reviewMemory } from "./memory";
import type { Overview } from "./overview";
import type { Effort, Mode } from "./protocol";
import { MODES } from "./labels";
import { detail } from "./models";
import type { ModelList } from "./modelList";
import type { Setup } from "./setup";
import { signIn, signOut } from "./signIn";
import type { Trust } from "./trust";

/** A script of the daemon's that shows Amanu at work in any folder, without a key. */
const TOUR = "scripted:tour";
const TOUR_PROMPT = "Show me how you work.";
const WALKTHROUGH = "amanu.amanu#start";

/** The commands that are about the session and the set-up; those of the review are in review.ts. */
export function commands(
  desks: Desks,
  daemon: Daemon,
  chats: Chats,
  models: ModelList,
  overview: Overview,
  approvals: Approvals,
  questions: Questions,
  setup: Setup,
  doctor: Doctor,
  trust: Trust,
  log: vscode.LogOutputChannel,
): vscode.Disposable[] {
  const on = (name: string, work: () => unknown) =>
    vscode.commands.registerCommand(name, () => desks.attempt(async () => work()));
  /** The usable models have changed; if the session's own cannot answer, it switches to one that a new key opens. */
  const changed = async (outcome: KeySet | undefined) => {
    if (outcome === undefined) return;
    const model =
      outcome.vendor === undefined ? undefined : await opened(daemon, desks.active, outcome.vendor);
    if (model !== undefined) await desks.active.setModel(model.modelId);
    const next = model === undefined ? "" : ` ${model.name} is now in use.`;
    desks.tell({ level: "info", text: outcome.words + next });
    await models.refresh();
  };
  return [
    on("amanu.focus", () => chats.focus()),
    on("amanu.new", async () => {
      await desks.active.fresh();
      await chats.focus();
    }),
    on("amanu.openInEditor", () => chats.moveToEditor()),
    on("amanu.newInEditor", () => chats.openInEditor()),
    on("amanu.sessions", () => chats.showSession(undefined)),
    on("amanu.stop", () => desks.active.stop()),
    on("amanu.context", () => chats.show({ type: "showContext" })),
    on("amanu.compact", () => desks.active.compact()),
    on("amanu.memory", () => reviewMemory(desks, daemon)),
    on("amanu.attachSelection", async () => {
      const attachment = selection();
      if (attachment === undefined)
        return desks.tell({ level: "info", text: "There is no open file to attach from." });
      return chats.attachToPrompt(attachment);
    }),
    on("amanu.answer", async () => {
      if (desks.state.approvals.length === 0 && (await questions.answer())) return;
      if (desks.state.approvals.length > 0 || !(await overview.answer())) await approvals.answer();
    }),
    on("amanu.setKey", async () => changed(await setKey(daemon))),
    on("amanu.signInOpenAI", async () => changed(await signIn(setup))),
    on("amanu.signOutOpenAI", async () => changed(await signOut(setup))),
    on("amanu.allowLocal", async () => {
      const outcome = await allowLocal(daemon, setup);
      if (outcome === undefined) return;
      desks.tell({ level: "info", text: outcome });
      await models.refresh();
    }),
    on("amanu.selectModel", () => selectModel(desks.active, daemon)),
    on("amanu.selectEffort", () => selectEffort(desks.active, daemon)),
    on("amanu.selectMode", async () => {
      const items = Object.entries(MODES).map(([mode, { name, meaning }]) => ({
        mode: mode as Mode,
        label: name,
        description: meaning,
      }));
      const chosen = await vscode.window.showQuickPick(items, { title: "Mode" });
      if (chosen) await desks.active.setMode(chosen.mode);
    }),
    on("amanu.install", () => setup.install(daemon)),
    on("amanu.doctor", () => doctor.show()),
    on("amanu.reviewTrust", () => trust.review()),
    on("amanu.start", async () => {
      // VS Code ticks a step off when its key becomes true, but not when it was true before the page was first opened
      await models.mark(false);
      await vscode.commands.executeCommand("workbench.action.openWalkthrough", WALKTHROUGH);
      await models.mark();
    }),
    on("amanu.tour", async () => {
      await desks.active.fresh();
      await desks.active.setModel(TOUR);
      await chats.focus();
      await desks.active.prompt(TOUR_PROMPT, [], "send");
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
