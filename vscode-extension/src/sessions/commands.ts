import * as vscode from "vscode";
import type { Approvals } from "./approvals";
import type { Questions } from "./questions";
import { type KeySet, opened, setKey } from "../models/auth";
import type { Chats } from "../chat/chats";
import type { Daemon } from "../daemon/client";
import { selection } from "../editor/context";
import type { OpenChats } from "../chat/openChats";
import type { Doctor } from "../daemon/doctor";
import { allowLocal } from "../daemon/local";
import { reviewMemory } from "./memory";
import type { Overview } from "./overview";
import type { Mode } from "../protocol";
import { MODES } from "../labels";
import type { ModelList } from "../models/list";
import type { ModelPicker } from "../models/picker";
import type { Setup } from "../daemon/setup";
import { signIn, signOut } from "../models/signIn";
import type { Trust } from "../daemon/trust";
import { MODE_OF_PARENT } from "./words";

/** A script of the daemon's that shows Amanu at work in any folder, without a key. */
const TOUR = "scripted:tour";
const TOUR_PROMPT = "Show me how you work.";
const WALKTHROUGH = "amanu.amanu#start";

/** The commands that are about the session and the set-up; those of the review are in review.ts. */
export function commands(
  openChats: OpenChats,
  daemon: Daemon,
  chats: Chats,
  models: ModelList,
  picker: ModelPicker,
  overview: Overview,
  approvals: Approvals,
  questions: Questions,
  setup: Setup,
  doctor: Doctor,
  trust: Trust,
  log: vscode.LogOutputChannel,
): vscode.Disposable[] {
  const on = (name: string, work: (...given: unknown[]) => unknown) =>
    vscode.commands.registerCommand(name, (...given: unknown[]) =>
      openChats.attempt(async () => work(...given)),
    );
  /** The usable models have changed: the session switches to the one the key was wanted for; if none was named and its
   * own cannot answer, to one that the new key opens. */
  const changed = async (outcome: KeySet | undefined, wanted?: string) => {
    if (outcome === undefined) return;
    const { vendor, words } = outcome;
    const chat = openChats.active;
    const opens = vendor === undefined ? undefined : await opened(daemon, chat, vendor);
    const modelId = vendor === undefined ? undefined : (wanted ?? opens?.modelId);
    if (modelId !== undefined) await chat.setModel(modelId);
    await models.refresh();
    await chats.focus(); // where one goes on
    const name = models.models.find((model) => model.modelId === modelId)?.name ?? modelId;
    chat.tell({ level: "info", text: modelId === undefined ? words : `${words} ${name} is now in use.` });
  };
  return [
    on("amanu.focus", (text) => chats.focus(typeof text === "string" ? text : undefined)),
    on("amanu.new", () => chats.startSession()),
    on("amanu.openInEditor", () => chats.moveToEditor()),
    on("amanu.newInEditor", () => chats.openInEditor()),
    on("amanu.sessions", () => chats.showSession(undefined)),
    on("amanu.stop", () => openChats.active.stop()),
    on("amanu.context", () => chats.show({ type: "showContext" })),
    on("amanu.compact", () => openChats.active.compact()),
    on("amanu.memory", () => reviewMemory(openChats, daemon)),
    on("amanu.attachSelection", async () => {
      const attachment = selection();
      if (attachment === undefined)
        return openChats.tell({ level: "info", text: "There is no open file to attach a selection from." });
      return chats.attachToPrompt(attachment);
    }),
    on("amanu.answer", async () => {
      const here = openChats.state.approvals.length + openChats.state.questions.length;
      if (here === 0 && overview.waiting !== undefined) await chats.accompany(overview.waiting);
      if (openChats.state.approvals.length > 0 || !(await questions.answer())) await approvals.answer();
    }),
    on("amanu.setKey", async (vendor, wanted) => {
      const named = typeof vendor === "string" ? vendor : undefined;
      const outcome = await setKey(daemon, () => signIn(setup), named);
      await changed(outcome, typeof wanted === "string" ? wanted : undefined);
    }),
    on("amanu.signInOpenAI", async () => changed(await signIn(setup))),
    on("amanu.signOutOpenAI", async () => changed(await signOut(setup))),
    on("amanu.allowLocal", async () => {
      const outcome = await allowLocal(daemon, setup);
      if (outcome === undefined) return;
      openChats.tell({ level: "info", text: outcome });
      await models.refresh();
    }),
    on("amanu.selectModel", () => picker.select()),
    on("amanu.useEditorModel", () => picker.useEditorModel()),
    on("amanu.selectEffort", () => picker.chooseEffort()),
    on("amanu.selectMode", async () => {
      if (openChats.active.state.atWork) return openChats.tell({ level: "info", text: MODE_OF_PARENT });
      const items = Object.entries(MODES).map(([mode, { name, meaning }]) => ({
        mode: mode as Mode,
        label: name,
        description: meaning,
      }));
      const chosen = await vscode.window.showQuickPick(items, { title: "Mode" });
      if (chosen) await openChats.active.setMode(chosen.mode);
    }),
    on("amanu.install", () => setup.install(daemon)),
    on("amanu.doctor", () => doctor.show()),
    on("amanu.report", () => doctor.report()),
    on("amanu.reviewTrust", () => trust.review()),
    on("amanu.start", async () => {
      // VS Code ticks a step off when its key becomes true, but not when it was true before the page was first opened
      await models.mark(false);
      await vscode.commands.executeCommand("workbench.action.openWalkthrough", WALKTHROUGH);
      await models.mark();
    }),
    on("amanu.tour", async () => {
      await chats.startSession();
      await openChats.active.setModel(TOUR);
      await openChats.active.prompt(TOUR_PROMPT, [], "send");
    }),
    on("amanu.restart", () => daemon.restart()),
    on("amanu.logs", () => log.show()),
  ];
}
