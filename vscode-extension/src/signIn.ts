import * as vscode from "vscode";
import type { KeySet } from "./auth";
import { run } from "./run";
import { env, type Setup } from "./setup";

const VENDOR = "openai";

/** Sign in with ChatGPT, so that requests count towards the user's plan: the daemon's program waits for the browser's
 * answer and stores it. Returns the outcome in words, or undefined if the user cancelled. Throws a sentence that says
 * what to do. */
export async function signIn(setup: Pick<Setup, "find">): Promise<KeySet | undefined> {
  const command = program(setup);
  const progress = {
    location: vscode.ProgressLocation.Notification,
    title: "Sign in with ChatGPT in your browser",
    cancellable: true,
  };
  const { code, output } = await vscode.window.withProgress(progress, (_, token) => {
    const cancelled = new AbortController();
    token.onCancellationRequested(() => cancelled.abort());
    // the address stands on a line of its own
    const line = (text: string) => {
      if (/^https?:\S+$/.test(text)) void vscode.env.openExternal(vscode.Uri.parse(text, true));
    };
    return run(command, ["auth", "login", VENDOR, "--no-browser"], { env: env(), signal: cancelled.signal, line });
  });
  if (code === null) return undefined;
  const lines = output.split("\n");
  if (code !== 0) throw new Error(lines.at(-1) || "The sign-in failed.");
  const start = lines.findIndex((line) => line.startsWith(`${VENDOR}: `));
  return { words: lines.slice(start).join(" "), vendor: VENDOR };
}

/** Remove the sign-in. Returns the outcome in words. */
export async function signOut(setup: Pick<Setup, "find">): Promise<KeySet> {
  const { output } = await run(program(setup), ["auth", "logout", VENDOR], { env: env() });
  return { words: output || "The daemon's program did not answer." };
}

function program(setup: Pick<Setup, "find">): string {
  const daemon = setup.find();
  if (!("command" in daemon)) throw new Error("Install Amanu's daemon first: Amanu: Install the Daemon.");
  return daemon.command;
}
