/* Says what to do where the page was opened as a file: from there browsers load no modules, so nothing else runs. */

if (location.protocol === "file:") {
  const isServed = document.documentElement.dataset.engine === "./server.js";
  const line = document.createElement("p");
  line.textContent = isServed
    ? "This page needs its server: run python -m distill.serve and open the address that it prints."
    : "This page needs a file server: run python -m http.server in its folder and open http://127.0.0.1:8000 instead.";
  document.querySelector("main").replaceChildren(line);
  document.querySelector("nav").remove();
}
