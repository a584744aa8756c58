/** Handing a link to somebody: by the device's own share sheet where it has one, else by the clipboard. */

/**
 * @param {{url: string, text: string, files?: File[]}} what
 * @param {string} name "The link to this game"
 * @returns {Promise<string>} what was done, for the person; empty after the share sheet
 */
export async function send({ url, text, files }, name) {
  const sheet = files && navigator.canShare?.({ files }) ? { url, text, files } : { url, text };
  if (isHandheld() && navigator.canShare?.(sheet)) {
    try {
      await navigator.share(sheet);
      return "";
    } catch (error) {
      if (error.name === "AbortError") return ""; // the person closed the sheet
    }
  }
  return copy(url, name);
}

/** @returns {Promise<string>} what was done, or the text itself where there is no clipboard */
export async function copy(text, name) {
  try {
    await navigator.clipboard.writeText(text);
    return `${name} is copied.`;
  } catch {
    return `${name}: ${text}`;
  }
}

/** Desktop browsers have a share sheet too, but people there expect a copy. */
export const isHandheld = () => matchMedia("(pointer: coarse)").matches && "share" in navigator;
