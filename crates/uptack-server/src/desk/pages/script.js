// Keeps plans up to date while one types, questions while reports come in, and clocks. Everything else works without it.
"use strict";

// A plan is requested after a short pause in typing; an earlier request is given up.
const PAUSE = 250;
const AGAIN = 700;

// Marks the field that the plan is at fault with, and no other.
function markFault(form, plan) {
  for (const words of form.querySelectorAll(".field-fault")) words.remove();
  for (const field of form.querySelectorAll("[aria-invalid]")) {
    field.removeAttribute("aria-invalid");
    describe(field, []);
  }
  const fault = plan.querySelector(".fault[data-field]");
  const field = fault && form.elements.namedItem(fault.dataset.field);
  if (!field) return;
  field.setAttribute("aria-invalid", "true");
  describe(field, [fault.id]);
}

// Names the elements that describe a field: these, and its help.
function describe(field, ids) {
  const help = (field.getAttribute("aria-describedby") ?? "").split(" ").filter((id) => id.endsWith("-help"));
  const all = [...ids, ...help];
  if (all.length > 0) field.setAttribute("aria-describedby", all.join(" "));
  else field.removeAttribute("aria-describedby");
}

function followForm(form) {
  const plan = document.getElementById("plan");
  let timer = 0;
  let asked = null;

  async function ask() {
    asked?.abort();
    asked = new AbortController();
    const fields = new URLSearchParams(new FormData(form));
    try {
      const answer = await fetch(`${form.dataset.plan}?${fields}`, { signal: asked.signal });
      if (answer.status === 401) return location.reload();
      if (!answer.ok) throw new Error(answer.status);
      plan.innerHTML = await answer.text();
      markFault(form, plan);
      if (answer.status === 202) timer = setTimeout(ask, AGAIN);
    } catch (error) {
      if (error.name !== "AbortError") timer = setTimeout(ask, 4 * AGAIN);
    }
  }

  form.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(ask, PAUSE);
  });
  if (plan.querySelector(".waiting")) timer = setTimeout(ask, AGAIN);
}

function followQuestions(element) {
  const events = new EventSource(element.dataset.live);
  events.onmessage = (event) => {
    const { parts, reload } = JSON.parse(event.data);
    if (reload) {
      events.close();
      return location.reload();
    }
    for (const [id, html] of Object.entries(parts)) {
      const part = document.getElementById(id);
      if (part) part.innerHTML = html;
    }
    startClocks();
  };
  addEventListener("pagehide", () => events.close());
}

// A clock counts down from the seconds that were left when it came.
function startClocks() {
  for (const clock of document.querySelectorAll("time[data-seconds]")) {
    clock.ends = performance.now() + 1000 * Number(clock.dataset.seconds);
    clock.removeAttribute("data-seconds");
    clock.setAttribute("data-counting", "");
  }
}

function span(seconds) {
  const two = (number) => String(number).padStart(2, "0");
  if (seconds < 100) return `${seconds} s`;
  if (seconds < 6000) return `${Math.floor(seconds / 60)} min ${two(seconds % 60)} s`;
  if (seconds < 172800) return `${Math.floor(seconds / 3600)} h ${two(Math.floor((seconds % 3600) / 60))} min`;
  return `${Math.floor(seconds / 86400)} days`;
}

function tick() {
  for (const clock of document.querySelectorAll("time[data-counting]")) {
    clock.textContent = span(Math.max(0, Math.round((clock.ends - performance.now()) / 1000)));
  }
}

document.querySelectorAll("form[data-plan]").forEach(followForm);
document.querySelectorAll("[data-live]").forEach(followQuestions);
startClocks();
setInterval(tick, 1000);
