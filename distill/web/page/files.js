const FOREIGN = "The reply is not from distill: a login page or a proxy may have answered. Reload the page.";

/** The object in a reply, which has this field; throws an Error in plain words for a login page or an empty reply. */
export async function contentOf(reply, field) {
  const content = await reply.json().catch((error) => {
    if (!(error instanceof SyntaxError)) throw error;
  });
  if (reply.ok && content?.[field] !== undefined) return content;
  throw new Error(content?.error ?? (reply.ok ? FOREIGN : `The server replied ${reply.status}.`));
}

/** A JSON file beside the page's own, an object with this field. */
export async function fetched(name, field) {
  return contentOf(await fetch(new URL(name, import.meta.url)), field);
}
