/**
 * The boundary around what adorns a game: sounds, animations, the browser's history and storage. A browser may lack or
 * refuse any of them, and the game goes on without.
 */

/** Run an effect. Returns whether it succeeded. */
export function tryEffect(effect) {
  try {
    effect();
    return true;
  } catch (error) {
    console.info(error);
    return false;
  }
}

/** The object that this key of the browser's storage holds; an empty one where there is none. */
export function stored(key) {
  try {
    return JSON.parse(localStorage.getItem(key) ?? "{}") ?? {};
  } catch {
    return {}; // private windows may refuse
  }
}
