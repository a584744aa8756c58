/** The page inside another site: `?embed` shows the board, the line above it and the buttons for it (`embed.css`). */

export const isEmbedded = "embed" in document.documentElement.dataset; // which `opened.js` has set

/** A link to the whole page, which opens beside the site around. */
export function addWayOut() {
  const link = Object.assign(document.createElement("a"), { id: "way-out", target: "_blank", rel: "noopener", textContent: "Open the whole page" });
  const aim = () => {
    const url = new URL(location.href);
    url.searchParams.delete("embed");
    link.href = url.href;
  };
  aim();
  for (const event of ["pointerenter", "focus", "click"]) link.addEventListener(event, aim);
  document.querySelector("aside").append(link);
}
