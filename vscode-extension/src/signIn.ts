import * as vscode from "vscode";
import type { KeySet } from "./auth";
import { run } from "./run";
import { env, type Setup } from "./setup";

const VENDOR = "openai";

/** Sign in with ChatGPT, so that requests count towards the user's plan: the daemon's program waits for the browser's
 * answer and keeps it. What became of it, in words; undefined when the user left. Throws a sentence that says what to
 * do. */
export async function signIn(setup: Pick<Setup, "find">): Promise<KeySet | undefined> {
  const command = program(setup);
  const progress = {
    location: vscode.ProgressLocation.Notification,
    title: "Sign in with ChatGPT in your browser",
    cancellable: true,
  };
  const { code, output } = await vscode.window.withProgress(progress, (_, token) => {
    const left = new AbortController();
    token.onCancellationRequested(() => left.abort());
    // the address stands on a line of its own
    const line = (said: string) => {
      if (/^https?:\S+$/.test(said)) void vscode.env.openExternal(vscode.Uri.parse(said, true));
    };
    return run(command, ["auth", "login", VENDOR, "--no-browser"], { env: env(), signal: left.signal, line });
  });
  if (code === null) return undefined;
  const said = output.split("\n");
  if (code !== 0) throw new Error(said.at(-1) || "The sign-in failed.");
  const began = said.findIndex((line) => line.startsWith(`${VENDOR}: `));
  return { words: said.slice(began).join(" "), vendor: VENDOR };
}

/** Forget the sign-in. In words, what became of it. */
export async function signOut(setup: Pick<Setup, "find">): Promise<KeySet> {
  const { output } = await run(program(setup), ["auth", "logout", VENDOR], { env: env() });
  return { words: output || "The daemon's program did not answer." };
}

function program(setup: Pick<Setup, "find">): string {
  const found = setup.find();
  if (!("command" in found)) throw new Error("Install Amanu's daemon first: Amanu: Install the Daemon.");
  return found.command;
}
