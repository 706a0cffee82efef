import type { ImageAttachmentInput } from "../../protocol";

type MediaType = ImageAttachmentInput["mediaType"];
const TYPES: ReadonlySet<string> = new Set<MediaType>(["image/png", "image/jpeg", "image/gif", "image/webp"]);

/** Bytes of a picture that is sent as it is; the strictest of the model services takes 5 MB as base64. */
const AS_IT_IS = 3_500_000;
/** Pixels of the longer side of one that is made smaller; models look at fewer than that. */
const SIDE = 2048;

/** The pictures among pasted or dropped files. */
export function pictures(files: Iterable<File>): File[] {
  return [...files].filter((file) => TYPES.has(file.type));
}

/** A picture as it goes with a prompt, made smaller when it is too big. Throws when it is no picture. */
export async function attachment(file: File): Promise<ImageAttachmentInput> {
  const name = file.name && file.name !== "image.png" ? file.name : "Pasted image";
  if (file.size <= AS_IT_IS) {
    const data = (await address(file)).replace(/^[^,]*,/, "");
    return { kind: "image", name, mediaType: file.type as MediaType, data };
  }
  const data = await smaller(file);
  return { kind: "image", name, mediaType: "image/jpeg", data };
}

function address(file: Blob): Promise<string> {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(reader.result as string);
    reader.onerror = () => reject(reader.error ?? new Error("The picture could not be read."));
    reader.readAsDataURL(file);
  });
}

async function smaller(file: File): Promise<string> {
  const bitmap = await createImageBitmap(file);
  const scale = Math.min(1, SIDE / Math.max(bitmap.width, bitmap.height));
  const canvas = document.createElement("canvas");
  canvas.width = Math.max(1, Math.round(bitmap.width * scale));
  canvas.height = Math.max(1, Math.round(bitmap.height * scale));
  const drawing = canvas.getContext("2d");
  if (drawing === null) throw new Error("The picture could not be made smaller.");
  drawing.fillStyle = "white"; // JPEG has no transparency
  drawing.fillRect(0, 0, canvas.width, canvas.height);
  drawing.drawImage(bitmap, 0, 0, canvas.width, canvas.height);
  bitmap.close();
  return canvas.toDataURL("image/jpeg", 0.85).replace(/^[^,]*,/, "");
}
