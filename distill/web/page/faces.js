/** A face for every opponent: a stone that looks from playful to unmoved. */

const MOUTHS = {
  open: '<path d="M9 18.5h14a7 7 0 0 1-14 0z" class="filled"/><path d="M14.5 18.5h3v2.4h-3z" class="tooth"/>',
  smile: '<path d="M10 19.5q6 5.5 12 0"/>',
  grin: '<path d="M11 20q6 3.5 10-1"/>',
  calm: '<path d="M11 21q5 1.5 10 0"/>',
  flat: '<path d="M11 21h10"/>',
  grille: '<path d="M10 20.5h12M12.5 18.8v3.4M16 18.8v3.4M19.5 18.8v3.4"/>',
};
const EYES = {
  wide: '<circle cx="11.5" cy="12.5" r="2.6" class="filled"/><circle cx="20.5" cy="12.5" r="2.6" class="filled"/>',
  round: '<circle cx="11.5" cy="13" r="1.9" class="filled"/><circle cx="20.5" cy="13" r="1.9" class="filled"/>',
  brows: '<path d="M8.5 9.5l5.5 1.8M23.5 9.5L18 11.3"/><circle cx="11.8" cy="13.8" r="1.8" class="filled"/><circle cx="20.2" cy="13.8" r="1.8" class="filled"/>',
  glasses: '<circle cx="11" cy="13" r="3.6"/><circle cx="21" cy="13" r="3.6"/><path d="M14.6 12.6q1.4-1 2.8 0"/><circle cx="11" cy="13" r="1.3" class="filled"/><circle cx="21" cy="13" r="1.3" class="filled"/>',
  squares: '<path d="M9 11h5v4H9zM18 11h5v4h-5z" class="filled"/><path d="M16 3.5v-2.2"/><circle cx="16" cy="1" r="1" class="filled"/>',
};
const FACES = {
  starter: ["wide", "open"], beginner: ["round", "smile"], casual: ["round", "grin"], regular: ["round", "calm"],
  club: ["glasses", "calm"], expert: ["brows", "flat"], perfect: ["squares", "grille"],
};
const TWO = '<circle cx="11" cy="16" r="8.5" class="other"/><circle cx="21" cy="16" r="8.5" class="stone"/>' +
  '<circle cx="18.6" cy="14.6" r="1.1" class="filled"/><circle cx="23.6" cy="14.6" r="1.1" class="filled"/><path d="M18.4 18.6q2.6 2.2 5.2 0"/>';

/** The drawing of a player's face, by name; "person" is a friend. */
export function face(name) {
  const [eyes, mouth] = FACES[name] ?? ["squares", "flat"];
  const drawing = name === "person" ? TWO : `<circle cx="16" cy="16" r="14.5" class="stone"/>${EYES[eyes]}${MOUTHS[mouth]}`;
  return `<svg class="face" viewBox="0 -1 32 33" aria-hidden="true">${drawing}</svg>`;
}
