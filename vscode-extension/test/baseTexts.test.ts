import { expect, test } from "vitest";
import { BaseTexts } from "../src/review/baseTexts";

/** A daemon that gives blobs in pages of four characters, and what it was asked for. */
function daemon(blobs: Record<string, string>) {
  const asked: string[] = [];
  const request = (_: string, { blobId, offset }: { blobId: string; offset: number }) => {
    const text = blobs[blobId];
    if (text === undefined) return Promise.reject(new Error("There is no such blob."));
    asked.push(`${blobId} ${offset}`);
    const end = offset + 4;
    return Promise.resolve({ text: text.slice(offset, end), nextOffset: end < text.length ? end : null });
  };
  return { asked, texts: new BaseTexts({ request: request as never }) };
}

test("a small base text is there at once", async () => {
  const { asked, texts } = daemon({});
  await texts.load("s", { baseText: "text", baseBlob: null });
  expect([texts.get({ baseText: "text", baseBlob: null }), asked]).toEqual(["text", []]);
  expect(texts.get({ baseText: null, baseBlob: null })).toBe("");
});

test("that of a big file is fetched once, page by page", async () => {
  const { asked, texts } = daemon({ a: "0123456789" });
  const file = { baseText: null, baseBlob: "a" };
  expect(texts.get(file)).toBeUndefined();
  await texts.load("s", file);
  await texts.load("s", file);
  expect([texts.get(file), asked]).toEqual(["0123456789", ["a 0", "a 4", "a 8"]]);
});

test("the few used last are kept", async () => {
  const names = [..."abcdefghi"];
  const { texts } = daemon(Object.fromEntries(names.map((name) => [name, name])));
  for (const baseBlob of ["a", "b", "a", ...names.slice(2)])
    await texts.load("s", { baseText: null, baseBlob });
  const known = names.filter((baseBlob) => texts.get({ baseText: null, baseBlob }) !== undefined);
  expect(known).toEqual([..."acdefghi"]);
});

test("one that cannot be had fails", async () => {
  const { texts } = daemon({});
  await expect(texts.load("s", { baseText: null, baseBlob: "gone" })).rejects.toThrow("no such blob");
});
