import type { ImageAttachmentInput } from "../../protocol";

type MediaType = ImageAttachmentInput["mediaType"];
const TYPES: ReadonlySet<string> = new Set<MediaType>(["image/png", "image/jpeg", "image/gif", "image/webp"]);

/** Bytes and pixels of the longer side of a picture that is sent as it is: what every model service takes, however many
 * go along (the daemon's limits, `server/amanu/context/images.py`). */
const BYTES = 3_500_000;
const SIDE = 2000;

/** The pictures among pasted or dropped files. */
export function pictures(files: Iterable<File>): File[] {
  return [...files].filter((file) => TYPES.has(file.type));
}

/** A picture as it goes with a prompt, made smaller when it is too big. Throws when it is no picture. */
export async function attachment(file: File): Promise<ImageAttachmentInput> {
  const name = file.name && file.name !== "image.png" ? file.name : "Pasted image"; // a browser's name for any
  const bitmap = await createImageBitmap(file);
  try {
    const fits = file.size <= BYTES && Math.max(bitmap.width, bitmap.height) <= SIDE;
    const sent = fits ? file : await smaller(bitmap);
    return { kind: "image", name, mediaType: sent.type as MediaType, data: await base64(sent) };
  } finally {
    bitmap.close();
  }
}

/** Letters stay sharp as PNG; where that is too much, JPEG is not. */
async function smaller(bitmap: ImageBitmap): Promise<Blob> {
  const scale = Math.min(1, SIDE / Math.max(bitmap.width, bitmap.height));
  const canvas = new OffscreenCanvas(
    Math.max(1, Math.round(bitmap.width * scale)),
    Math.max(1, Math.round(bitmap.height * scale)),
  );
  const drawing = canvas.getContext("2d");
  if (drawing === null) throw new Error("The image could not be resized.");
  drawing.fillStyle = "white"; // JPEG has no transparency
  drawing.fillRect(0, 0, canvas.width, canvas.height);
  drawing.drawImage(bitmap, 0, 0, canvas.width, canvas.height);
  const png = await canvas.convertToBlob({ type: "image/png" });
  return png.size <= BYTES ? png : canvas.convertToBlob({ type: "image/jpeg", quality: 0.85 });
}

function base64(file: Blob): Promise<string> {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve((reader.result as string).replace(/^[^,]*,/, ""));
    reader.onerror = () => reject(reader.error ?? new Error("The image could not be read."));
    reader.readAsDataURL(file);
  });
}
