// The page's elements. Whatever comes from a desk is set as text and never as markup.

export function element<T extends HTMLElement = HTMLElement>(id: string): T {
  return document.getElementById(id) as T;
}

export function say(id: string, text: string): void {
  element(id).textContent = text;
}

const SECTIONS = ["start", "refused", "unlisted", "question", "waiting", "done"] as const;
export type Section = (typeof SECTIONS)[number];

/** Shows what is being done, and nothing else. */
export function showProgress(text: string): void {
  for (const name of SECTIONS) element(name).hidden = true;
  say("status", text);
}

/** Shows one section and hides the others; its heading gets the focus, so that screen readers go there. */
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
