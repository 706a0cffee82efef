import type { Chat } from "./chat";
import type { Edits } from "../review/edits";
import type { Attachment, AttachmentInput, UserMessage } from "../protocol";
import type { ToView } from "./messages";

/** An earlier prompt as the view edits it; undefined where the item is none that began a turn. */
export async function earlier(
  chat: Chat,
  itemId: string,
): Promise<Extract<ToView, { type: "edit" }> | undefined> {
  const prompt = promptOf(chat, (item) => item.itemId === itemId);
  if (prompt === undefined) return undefined;
  const { text, turnId } = prompt;
  return { type: "edit", text, attachments: await inputs(chat, prompt.attachments), replaces: turnId };
}

/** Send the prompt of a turn again, in its place; `giveBack` takes it where that fails. */
export async function retry(
  chat: Chat,
  edits: Edits,
  turnId: string,
  giveBack: (prompt: { text: string; attachments: AttachmentInput[] }) => unknown,
): Promise<void> {
  const prompt = promptOf(chat, (item) => item.turnId === turnId);
  if (prompt === undefined) return;
  const { text } = prompt;
  const attachments = await inputs(chat, prompt.attachments); // while they are of the session
  if (!(await edits.rewind(chat.state.sessionId, turnId))) return;
  try {
    await chat.prompt(text, attachments, "send");
  } catch (error) {
    giveBack({ text, attachments });
    throw error;
  }
}

function promptOf(chat: Chat, test: (item: UserMessage) => boolean): UserMessage | undefined {
  return chat.state.items.find(
    (item): item is UserMessage => item.kind === "userMessage" && !item.steer && test(item),
  );
}

/** What went with a prompt, to go again. */
async function inputs(chat: Chat, attachments: Attachment[]): Promise<AttachmentInput[]> {
  const found = attachments.map(async (each): Promise<AttachmentInput | undefined> => {
    if (each.kind !== "image" || each.blob === null) return each;
    const { name, mediaType, blob } = each;
    const address = await chat.picture(blob.blobId, mediaType);
    const data = address.slice(address.indexOf(",") + 1);
    return data === "" ? undefined : { kind: "image", name, mediaType, data };
  });
  return (await Promise.all(found)).filter((each) => each !== undefined);
}
