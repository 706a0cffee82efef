import { chmodSync, mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeEach, expect, test, vi } from "vitest";

const opened: string[] = [];
let leave: (() => void) | undefined;
vi.mock("vscode", () => ({
  ProgressLocation: { Notification: 15 },
  Uri: { parse: (text: string) => text },
  env: { openExternal: async (address: string) => opened.push(address) },
  window: {
    withProgress: (_: unknown, work: (report: unknown, token: unknown) => unknown) =>
      work(undefined, { onCancellationRequested: (heard: () => void) => (leave = heard) }),
  },
}));
vi.mock("../src/setup", () => ({ env: () => ({ PATH: process.env.PATH }) }));
const { signIn, signOut } = await import("../src/signIn");

/** A daemon's program that does this. */
function amanu(script: string) {
  const command = join(mkdtempSync(join(tmpdir(), "amanu-")), "amanu");
  writeFileSync(command, `#!/bin/sh\n${script}\n`);
  chmodSync(command, 0o755);
  return { find: () => ({ command, from: "storage" }) } as unknown as Parameters<typeof signIn>[0];
}

beforeEach(() => void opened.splice(0));

const ADDRESS = "https://auth.openai.com/api/accounts/authorize?state=x";

test("the page is opened, and what became of it is told", async () => {
  const setup = amanu(
    `[ "$*" = "auth login openai --no-browser" ] || exit 9\necho; echo '${ADDRESS}'; echo 'openai: signed in as ada'; echo 'Unset it.'`,
  );
  expect(await signIn(setup)).toEqual({ words: "openai: signed in as ada Unset it.", vendor: "openai" });
  expect(opened).toEqual([ADDRESS]);
});

test("what went wrong is told", async () => {
  const setup = amanu(`echo '${ADDRESS}'; echo 'You are not signed in: you said no.' >&2; exit 4`);
  await expect(signIn(setup)).rejects.toThrow("You are not signed in: you said no.");
});

test("who leaves ends the program", async () => {
  const signingIn = signIn(amanu(`echo '${ADDRESS}'; sleep 60`));
  await vi.waitFor(() => expect(opened).toEqual([ADDRESS]));
  leave?.();
  expect(await signingIn).toBeUndefined();
});

test("without a daemon there is something to do first", async () => {
  const setup = { find: () => ({ failure: "x" }) } as unknown as Parameters<typeof signIn>[0];
  await expect(signIn(setup)).rejects.toThrow("Install the Daemon");
});

test("signing out", async () => {
  const setup = amanu(`[ "$*" = "auth logout openai" ] && echo 'openai: signed out on this machine'`);
  expect(await signOut(setup)).toEqual({ words: "openai: signed out on this machine" });
});
