// The drawing of a program: zoom, search, and what is known of the group or op that was chosen.
// The server draws the SVG; this file puts it into the page and moves the part that is seen.
"use strict";

class View {
  // The part of the drawing that is seen, in the drawing's units.
  constructor(svg) {
    this.svg = svg;
    const [x, y, width, height] = svg.getAttribute("viewBox").split(/\s+/).map(Number);
    this.whole = { x, y, width, height };
    svg.removeAttribute("width");
    svg.removeAttribute("height");
    svg.setAttribute("preserveAspectRatio", "xMidYMid meet");
  }

  get aspect() {
    return this.svg.clientHeight / this.svg.clientWidth || 1;
  }

  show({ x, y, width, height }) {
    this.box = { x, y, width, height };
    this.svg.setAttribute("viewBox", `${x} ${y} ${width} ${height}`);
  }

  fit() {
    this.show(this.whole);
  }

  fitWidth() {
    // Text keeps a readable size: neither blown up in a small drawing nor tiny in a wide one.
    const { x, y, width } = this.whole;
    const seen = Math.min(Math.max(width, this.svg.clientWidth / 1.3), this.svg.clientWidth * 1.2);
    // A large program begins at the left, in the first of its columns.
    const left = this.svg.classList.contains("columns") && seen < width ? 0 : (width - seen) / 2;
    this.show({ x: x + left, y: y - 8, width: seen, height: seen * this.aspect });
  }

  square() {
    // `meet` leaves room on one side: the box as it is really seen.
    const { x, y, width, height } = this.box;
    const tall = width * this.aspect;
    if (tall >= height) return { x, y: y - (tall - height) / 2, width, height: tall };
    const wide = height / this.aspect;
    return { x: x - (wide - width) / 2, y, width: wide, height };
  }

  zoom(factor, at) {
    const box = this.square();
    const width = Math.min(Math.max(box.width * factor, 60), 4 * Math.max(this.whole.width, this.whole.height));
    const scale = width / box.width;
    const centre = at ?? { x: box.x + box.width / 2, y: box.y + box.height / 2 };
    this.show({
      x: centre.x - (centre.x - box.x) * scale,
      y: centre.y - (centre.y - box.y) * scale,
      width,
      height: box.height * scale,
    });
  }

  move(right, down) {
    const box = this.square();
    this.show({ ...box, x: box.x + right * box.width, y: box.y + down * box.height });
  }

  centre(element) {
    // The element's box in drawing units, kept at the present zoom.
    const seen = element.getBoundingClientRect();
    const frame = this.svg.getBoundingClientRect();
    const box = this.square();
    const scale = box.width / frame.width;
    this.show({
      ...box,
      x: box.x + (seen.x + seen.width / 2 - frame.x) * scale - box.width / 2,
      y: box.y + (seen.y + Math.min(seen.height, frame.height * 0.8) / 2 - frame.y) * scale - box.height / 2,
    });
  }

  point(event) {
    const frame = this.svg.getBoundingClientRect();
    const box = this.square();
    return {
      x: box.x + ((event.clientX - frame.x) / frame.width) * box.width,
      y: box.y + ((event.clientY - frame.y) / frame.height) * box.height,
    };
  }
}

class Drawing {
  constructor(root) {
    this.root = root;
    this.canvas = root.querySelector(".canvas");
    this.detail = root.querySelector(".detail");
    this.form = root.querySelector("form");
    this.found = root.querySelector(".found");
    this.hits = [];
    this.hit = -1;
    this.form.addEventListener("submit", (event) => (event.preventDefault(), this.next()));
    this.form.elements.text.addEventListener("input", () => this.search());
    this.form.addEventListener("click", (event) => this.tool(event.target.dataset.zoom));
    this.canvas.addEventListener("keydown", (event) => this.key(event));
    this.canvas.addEventListener("focusin", (event) => event.target.closest(".choice") && this.reveal(event.target));
    this.detail.addEventListener("click", (event) => this.link(event));
  }

  load() {
    // Kept, as a group may be chosen from a table before its drawing is there.
    this.loaded = this.draw();
    return this.loaded;
  }

  async draw() {
    const { src, detail } = this.root.dataset;
    this.choices = detail.includes("/groups/") ? "cluster" : "node";
    const answer = await fetch(src);
    if (!answer.ok) {
      const problem = await answer.json().catch(() => ({}));
      throw new Error(problem.detail ?? `the server answered ${answer.status}`);
    }
    // As HTML: browsers read it several times faster than XML, which counts with thousands of ops.
    const parsed = new DOMParser().parseFromString(await answer.text(), "text/html");
    if (src !== this.root.dataset.src) return this.loaded; // another one was asked for meanwhile
    const svg = document.importNode(parsed.querySelector("svg"), true);
    this.canvas.replaceChildren(svg);
    this.svg = svg;
    this.nodes = [...svg.querySelectorAll(".node")];
    this.words = null;
    this.view = new View(svg);
    this.view.fitWidth();
    this.prepare();
    this.drag();
    this.search(); // what was typed before the drawing was there
  }

  name(element) {
    // "group12" -> 12; the title of a node of a bare graph is "n12", of one in a group "n12g3".
    const text = element.classList.contains("cluster") ? element.id : this.titles.get(element) ?? "";
    return /^(?:group|n)(\d+)$/.exec(text)?.[1] ?? null;
  }

  prepare() {
    this.titles = new Map();
    for (const element of this.svg.querySelectorAll("g")) {
      const title = element.querySelector(":scope > title");
      if (title) this.titles.set(element, title.textContent);
      title?.remove(); // a browser would show Graphviz's own names as hints
    }
    for (const element of this.svg.querySelectorAll("." + this.choices)) {
      if (this.name(element) === null) continue;
      const label = [...element.querySelectorAll("text")].map((text) => text.textContent).join(" ");
      element.classList.add("choice");
      element.setAttribute("tabindex", "0");
      element.setAttribute("role", "button");
      element.setAttribute("aria-label", label);
    }
    if (this.choices === "cluster") {
      for (const node of this.nodes) if (/g\d+$/.test(this.titles.get(node) ?? "")) node.classList.add("choice");
    }
    this.svg.addEventListener("click", (event) => this.pick(event.target));
  }

  reveal(element) {
    const seen = element.getBoundingClientRect();
    const frame = this.canvas.getBoundingClientRect();
    if (this.pressed) return;
    if (seen.bottom < frame.top || seen.top > frame.bottom || seen.right < frame.left || seen.left > frame.right) {
      this.view.centre(element);
    }
  }

  pick(target) {
    if (this.moved) return;
    const node = target.closest?.(".node");
    const group = /g(\d+)$/.exec(this.titles.get(node) ?? "")?.[1];
    const element = this.choices === "cluster" && group ? this.svg.getElementById("group" + group) : target.closest?.(".choice");
    const number = element && this.name(element);
    if (number) this.choose(number);
  }

  element(number) {
    if (this.choices === "cluster") return this.svg.getElementById("group" + number);
    return this.nodes.find((node) => this.titles.get(node) === "n" + number) ?? null;
  }

  async choose(number, centre = false) {
    this.wanted = number;
    await this.loaded.catch(() => null); // what is known is shown without a drawing as well
    if (this.wanted !== number) return; // another one was chosen meanwhile
    const element = this.view ? this.element(number) : null;
    for (const old of this.root.querySelectorAll(".canvas .chosen")) old.classList.remove("chosen");
    element?.classList.add("chosen");
    if (element && centre) this.view.centre(element);
    const asked = fetch(`${this.root.dataset.detail}${number}/fragment`, { headers: { accept: "text/html" } });
    const answer = await asked.catch(() => null);
    if (this.wanted !== number) return;
    if (!answer) return this.detail.replaceChildren(trouble("The service does not answer."));
    if (answer.redirected) return location.reload(); // the session has ended: log in again
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const shown = answer.ok ? page.body.childNodes : page.querySelectorAll("main p");
    this.detail.replaceChildren(...shown);
    this.detail.scrollTop = 0;
    if (this.choices === "cluster") history.replaceState(null, "", "#group" + number);
  }

  link(event) {
    const link = event.target.closest("a[data-group]");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    this.choose(link.dataset.group, true);
    this.detail.focus({ preventScroll: true });
  }

  search() {
    const wanted = this.form.elements.text.value.trim().toLowerCase();
    const words = (node) => [...node.querySelectorAll("text")].map((text) => text.textContent).join(" ").toLowerCase();
    this.words ??= new Map(this.nodes?.map((node) => [node, words(node)]));
    this.hits = wanted ? this.nodes?.filter((node) => this.words.get(node).includes(wanted)) ?? [] : [];
    const hits = new Set(this.hits);
    this.hit = -1;
    this.svg?.classList.toggle("searched", wanted !== "");
    for (const node of this.nodes ?? []) {
      node.classList.toggle("hit", hits.has(node));
      node.classList.remove("now");
    }
    this.found.textContent = wanted && this.nodes ? `${this.hits.length} found` : "";
  }

  next() {
    if (!this.hits.length) return;
    this.hits[this.hit]?.classList.remove("now");
    this.hit = (this.hit + 1) % this.hits.length;
    const node = this.hits[this.hit];
    node.classList.add("now");
    if (this.view.box.width > 3 * this.svg.clientWidth) this.view.fitWidth();
    this.canvas.scrollIntoView({ block: "nearest" });
    this.view.centre(node);
    this.found.textContent = `${this.hit + 1} of ${this.hits.length}`;
    this.pick(node);
  }

  tool(name) {
    if (!this.view || !name) return;
    const tools = { in: () => this.view.zoom(0.7), out: () => this.view.zoom(1 / 0.7), fit: () => this.view.fit(), width: () => this.view.fitWidth() };
    tools[name]();
  }

  key(event) {
    if (!this.view || event.ctrlKey || event.metaKey || event.altKey) return;
    const moves = { ArrowLeft: [-0.15, 0], ArrowRight: [0.15, 0], ArrowUp: [0, -0.15], ArrowDown: [0, 0.15], PageUp: [0, -0.9], PageDown: [0, 0.9] };
    const zooms = { "+": "in", "=": "in", "-": "out", 0: "fit", 1: "width" };
    const choice = event.target.closest(".choice");
    if (event.key in moves) this.view.move(...moves[event.key]);
    else if (event.key in zooms) this.tool(zooms[event.key]);
    else if (choice && (event.key === "Enter" || event.key === " ")) this.choose(this.name(choice));
    else return;
    event.preventDefault();
  }

  drag() {
    const fingers = new Map();
    const distance = () => {
      const [a, b] = [...fingers.values()];
      return Math.hypot(a.clientX - b.clientX, a.clientY - b.clientY) || 1;
    };
    const release = (event) => {
      fingers.delete(event.pointerId);
      this.pressed = fingers.size > 0;
      this.svg.classList.remove("dragging");
    };
    this.svg.addEventListener("pointerdown", (event) => {
      fingers.set(event.pointerId, event);
      this.pressed = true;
      this.moved = false;
    });
    this.svg.addEventListener("pointermove", (event) => {
      const last = fingers.get(event.pointerId);
      if (!last) return;
      const [right, down] = [event.clientX - last.clientX, event.clientY - last.clientY];
      if (!this.moved && Math.hypot(right, down) < 4) return;
      if (!this.moved) this.svg.setPointerCapture(event.pointerId);
      this.moved = true;
      this.svg.classList.add("dragging");
      const before = fingers.size === 2 ? distance() : 0;
      fingers.set(event.pointerId, event);
      if (before) this.view.zoom(before / distance(), this.view.point(event));
      else this.view.move(-right / this.svg.clientWidth, -down / this.svg.clientHeight);
    });
    this.svg.addEventListener("pointerup", release);
    this.svg.addEventListener("pointercancel", release);
    this.svg.addEventListener("wheel", (event) => {
      if (!event.ctrlKey) return; // a plain wheel scrolls the page
      event.preventDefault();
      this.view.zoom(Math.exp(event.deltaY / 200), this.view.point(event));
    }, { passive: false });
  }
}

function trouble(sentence) {
  const text = document.createElement("p");
  text.className = "error";
  text.textContent = sentence;
  return text;
}

async function drawGraph(root) {
  root.drawing ??= new Drawing(root);
  const loading = root.drawing.load();
  try {
    await loading;
  } catch (error) {
    if (loading !== root.drawing.loaded) return; // another one was asked for meanwhile
    root.querySelector(".canvas").replaceChildren(trouble(`The graph cannot be drawn: ${error.message}.`));
    return;
  }
  const asked = /^#group(\d+)$/.exec(location.hash)?.[1];
  if (asked && root.drawing.choices === "cluster") root.drawing.choose(asked, true);
}

for (const root of document.querySelectorAll(".graph")) {
  drawGraph(root);
  root.addEventListener("graph-changed", () => drawGraph(root));
}

// Links of tables to a group of the drawing: one click chooses it there.
for (const table of document.querySelectorAll("main table")) {
  table.addEventListener("click", (event) => {
    const link = event.target.closest("a[data-group]");
    const root = document.querySelector(".graph");
    if (!link || !root?.drawing || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    root.drawing.choose(link.dataset.group, true);
    root.scrollIntoView({ block: "start" });
    root.drawing.detail.focus({ preventScroll: true });
  });
}
