import * as vscode from "vscode";
import type { Daemon } from "./client";
import { run } from "./run";
import { env, type Setup } from "./setup";

/** Milliseconds the daemon's program may take: the server must answer. */
const WITHIN = 30_000;

/** The user says yes to a model server on this machine, once and for all: it gets their code. What became of it, in
 * words; undefined when they left. */
export async function allowLocal(daemon: Daemon, setup: Setup): Promise<string | undefined> {
  const { models } = await daemon.request("amanu/model/list", {});
  const vendors = [
    ...new Set(
      models.flatMap(({ unavailable }) => /amanu auth local ([\w-]+)/.exec(unavailable ?? "")?.[1] ?? []),
    ),
  ];
  const found = setup.find();
  if (vendors.length === 0 || !("command" in found)) return "No other local model server was found.";
  const vendor =
    vendors.length === 1
      ? vendors[0]
      : await vscode.window.showQuickPick(vendors, { title: "Local model server" });
  if (vendor === undefined) return undefined;
  const question = `Allow ${vendor} on this machine to receive your code and prompts?`;
  if ((await vscode.window.showWarningMessage(question, { modal: true }, "Allow")) !== "Allow")
    return undefined;
  const signal = AbortSignal.timeout(WITHIN);
  const { output } = await run(found.command, ["auth", "local", vendor], { env: env(), signal });
  return output || `${vendor} did not answer.`;
}
