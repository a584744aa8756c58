/** Draws docs.html from the server's own openapi.json: operations with a form to try them, and the schemas. */

import { fetched } from "./files.js";

const api = await fetched("openapi.json", "paths").catch(({ message }) => {
  document.querySelector("main").append(message);
  throw new Error(message);
});

const make = (tag, text = "", ...children) => {
  const element = document.createElement(tag);
  if (text) element.textContent = text;
  element.append(...children);
  return element;
};
const named = (schema) => schema.$ref?.split("/").at(-1);

/** A schema in a few words. */
function kind(schema) {
  if (schema.$ref) return named(schema);
  if (schema.anyOf) return schema.anyOf.map(kind).join(" or ");
  if (schema.enum) return schema.enum.join(", ");
  if (schema.type !== "array") return schema.type;
  const { minItems: least, maxItems: most } = schema;
  return `list${least && least === most ? ` of ${least}` : ""}: ${kind(schema.items)}`;
}

function table(rows) {
  const body = make("tbody");
  for (const cells of rows) body.append(make("tr", "", ...cells.map((cell) => make("td", String(cell)))));
  return make("table", "", body);
}

function operation(path, method, { description, requestBody, responses }) {
  const heading = make("h3", "", make("span", method.toUpperCase()), path);
  const panel = make("section", "", heading, make("p", description));
  panel.className = "panel";
  panel.append(table(Object.entries(responses).map(([status, { description: meaning, content }]) => {
    const schema = content?.["application/json"]?.schema;
    return [status, `${meaning}${schema ? ` · ${kind(schema)}` : ""}`];
  })));
  const input = make("textarea");
  const schema = api.components.schemas[named(requestBody?.content["application/json"].schema ?? {})];
  if (schema) {
    input.value = JSON.stringify(schema.examples[0]);
    input.setAttribute("aria-label", `Body of ${path}`);
    panel.append(input);
  }
  const reply = make("pre");
  reply.setAttribute("role", "status");
  reply.hidden = true;
  const button = make("button", "Try it");
  button.type = "button";
  button.addEventListener("click", async () => {
    const options = { method, ...(schema && { body: input.value, headers: { "Content-Type": "application/json" } }) };
    reply.textContent = await fetch(`.${path}`, options) // a proxy may serve all below a folder
      .then(async (answer) => `${answer.status} ${await answer.text()}`)
      .catch(() => "The server does not answer. Is it still running?");
    reply.hidden = false;
  });
  if (!path.includes("{")) panel.append(button, reply); // there is no form for the room's name
  return panel;
}

for (const [path, methods] of Object.entries(api.paths)) {
  for (const [method, details] of Object.entries(methods)) {
    document.getElementById("operations").append(operation(path, method.toUpperCase(), details));
  }
}
for (const [name, { description = "", properties = {} }] of Object.entries(api.components.schemas)) {
  const rows = Object.entries(properties).map(([field, schema]) => [field, kind(schema), schema.description ?? ""]);
  const panel = make("section", "", make("h3", name), make("p", description), table(rows));
  panel.className = "panel";
  document.getElementById("schemas").append(panel);
}
document.documentElement.dataset.ready = "";
