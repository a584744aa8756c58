/*
 * The page without a connection, once it has been loaded: every file of the site comes out of a cache, and nothing else.
 * `write_static_page` puts a line before this one: `const SITE = {version, files, later}`, the version a hash of the
 * files. Those of `later`, which are large, are kept from the first time that the page asks for them.
 */

const OWN = `distill ${registration.scope} `; // other sites of this host have caches too
const CACHE = OWN + SITE.version;
const FILES = new Set(SITE.files.map(addressOf));
const LATER = new Set(SITE.later.map(addressOf));

/** A file's address; the page itself is asked for by the folder's, which every host gives without another turn. */
function addressOf(file) {
  const path = file === "index.html" ? "./" : file.split("/").map(encodeURIComponent).join("/");
  return new URL(path, registration.scope).href;
}

// A newer site waits until no page of the older one is open, because one page must not mix the files of two.
self.addEventListener("install", (event) => event.waitUntil(fill()));

self.addEventListener("activate", (event) => event.waitUntil(takeOver()));

self.addEventListener("fetch", (event) => {
  const { request } = event;
  const { origin, pathname } = new URL(request.url);
  const address = (origin + pathname).replace(/index\.html$/, "");
  if (request.method === "GET" && (FILES.has(address) || LATER.has(address))) event.respondWith(give(address, request));
});

/** All or none; the host is asked whether what the browser kept is still right. */
async function fill() {
  const cache = await caches.open(CACHE);
  await cache.addAll([...FILES].map((address) => new Request(address, { cache: "no-cache" })));
}

async function takeOver() {
  const old = (await caches.keys()).filter((name) => name.startsWith(OWN) && name !== CACHE);
  await Promise.all(old.map((name) => caches.delete(name)));
  await clients.claim();
}

/** Without room it is fetched again the next time. */
async function keep(address, answer) {
  try {
    await (await caches.open(CACHE)).put(address, answer);
  } catch { /* QuotaExceededError */ }
}

async function give(address, request) {
  const kept = await caches.match(address, { cacheName: CACHE }).catch(() => null); // a browser may lose its storage
  if (kept) return kept;
  if (LATER.has(address)) {
    await registration.update().catch(() => {});
    if (registration.installing || registration.waiting) { // the host has the newer site's file
      return new Response("", { status: 503, statusText: "close all tabs: there is a newer version" });
    }
  }
  const answer = await fetch(request);
  if (LATER.has(address) && answer.ok) await keep(address, answer.clone());
  return answer;
}
