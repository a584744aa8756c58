/* Marks the compact form, and says what is wrong where the page cannot run: opened as a file, from which browsers load no modules, or incomplete. */

if (new URLSearchParams(location.search).has("embed")) document.documentElement.dataset.embed = "";

if (location.protocol === "file:") {
  const isServed = document.documentElement.dataset.engine === "./server.js";
  insteadOfThePage(isServed
    ? "This page needs its server: run python -m distill.serve and open the address that it prints."
    : "This page needs a file server: run python -m http.server in its folder and open http://127.0.0.1:8000 instead.");
} else {
  document.querySelector("script[type=module]").addEventListener("error", failed); // a file that is missing
  addEventListener("error", failed); // one that cannot be run
  addEventListener("unhandledrejection", failed);
}

function failed() {
  if ("ready" in document.documentElement.dataset) return;
  insteadOfThePage("A part of this page could not be loaded. Check the connection, then reload the page.");
}

function insteadOfThePage(text) {
  const line = document.createElement("p");
  line.setAttribute("role", "alert");
  line.textContent = text;
  document.querySelector("main").replaceChildren(line);
  document.querySelector("nav")?.remove();
}
