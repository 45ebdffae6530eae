// Access to the page's elements. Content from a desk is always set as text, never as markup.

export function element<T extends HTMLElement = HTMLElement>(id: string): T {
  return document.getElementById(id) as T;
}

export function say(id: string, text: string): void {
  element(id).textContent = text;
}

const SECTIONS = ["start", "refused", "unlisted", "question", "waiting", "done"] as const;
export type Section = (typeof SECTIONS)[number];

/** Shows a progress message and hides all sections. */
export function showProgress(text: string): void {
  for (const name of SECTIONS) element(name).hidden = true;
  say("status", text);
}

/** Shows one section and hides the others; focuses its heading for screen readers. */
export function show(section: Section): void {
  say("status", "");
  for (const name of SECTIONS) element(name).hidden = name !== section;
  const heading = element(section).querySelector("h1");
  if (heading) {
    heading.tabIndex = -1;
    heading.focus({ preventScroll: true });
  }
}

export function make(tag: string, text: string, className = ""): HTMLElement {
  const made = document.createElement(tag);
  made.textContent = text;
  if (className !== "") made.className = className;
  return made;
}

export function list(id: string, items: readonly string[]): void {
  element(id).replaceChildren(...items.map((item) => make("li", item)));
}
