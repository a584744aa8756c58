/** A JSON file beside the page's own; throws an Error that names it. */
export async function fetched(name) {
  const reply = await fetch(new URL(name, import.meta.url));
  if (!reply.ok) throw new Error(`${name}: ${reply.status}`);
  return reply.json();
}
