// One job live: events draw the line of the best latency and refresh the summary.
"use strict";

const chart = document.getElementById("chart");
const summary = document.getElementById("summary");
const said = document.getElementById("said"); // for readers who listen: states only, not each trial
const TERMINAL = ["done", "failed", "cancelled"];
// Whole programs that ran, and what the search expects of the kernels that it has.
const line = { trials: [], best: [], expected: [], baseline: [] };
const simulated = chart.dataset.simulated === "true";
let plot = null;
let wide = false; // whether the axis of times is logarithmic
let pending = false; // whether the summary is about to be asked for, or on its way
let missed = false; // whether something happened that its answer may not hold

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const micros = (value) =>
  value == null ? "–" : value < 999.5 ? value.toPrecision(3) + " µs" : value < 999.5e3 ? (value / 1e3).toPrecision(3) + " ms" : (value / 1e6).toPrecision(3) + " s";

// With the framework far above the program a linear axis would press the program's line flat.
function isWide() {
  const times = [...line.best, ...line.expected, ...line.baseline].filter((time) => time > 0);
  return Math.max(...times) > 8 * Math.min(...times);
}

// Without a pointer over it the legend gives the newest values.
function showNewest(drawn) {
  if (drawn.cursor.idx == null && line.trials.length) drawn.setLegend({ idx: line.trials.length - 1 });
}

function draw() {
  if (plot) plot.destroy();
  chart.replaceChildren();
  const hair = { stroke: colour("--line"), width: 1 };
  const axis = { stroke: colour("--soft"), grid: hair, ticks: hair };
  wide = isWide();
  // On a logarithmic axis the lines between powers of ten are left out.
  const kept = (_, ticks) => ticks.map((tick) => (wide && Math.log10(tick) % 1 ? null : tick));
  const size = () => ({ width: Math.max(240, chart.parentElement.clientWidth - 36), height: 260 });
  const room = (_, texts) => 16 + Math.max(44, ...(texts ?? []).map((text) => 7.5 * text.length)); // px of ticks
  const stepped = uPlot.paths.stepped({ align: 1 });
  plot = new uPlot({
    ...size(),
    scales: { x: { time: false }, y: { distr: wide ? 3 : 1 } },
    axes: [{ ...axis, label: "trials", incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000] }, { ...axis, label: simulated ? "simulated time of a call" : "time of a call", size: room, grid: { ...hair, filter: kept }, filter: kept, values: (_, ticks) => ticks.map((tick) => (tick == null ? "" : micros(tick))) }],
    hooks: { ready: [showNewest], setData: [showNewest], setCursor: [showNewest] },
    series: [
      { label: "trials" },
      { label: "best program", stroke: colour("--best"), width: 2, paths: stepped, value: (_, v) => micros(v) },
      { label: "expected", stroke: colour("--soft"), width: 1.5, paths: stepped, value: (_, v) => micros(v) },
      { label: simulated ? "one kernel per op" : "framework", stroke: colour("--base"), dash: [6, 4], points: { show: false }, value: (_, v) => micros(v) },
    ],
  }, Object.values(line), chart);
  document.getElementById("chart-empty").hidden = true;
}

function add(kind, progress) {
  if (typeof progress.best_us !== "number") return;
  const done = Number(progress.done ?? line.trials.at(-1) ?? 0);
  const baseline = progress.baseline_us ?? line.baseline.at(-1) ?? null;
  const before = line.best.at(-1) ?? null;
  // Each contest runs the best program again beside the framework: its newest time is the one
  // that compares with the framework's.
  const best = kind === "cover" ? progress.best_us : before;
  const expected = kind === "progress" ? progress.best_us : line.expected.at(-1) ?? null;
  if (line.trials.at(-1) === done) for (const row of Object.values(line)) row.pop();
  line.trials.push(done);
  line.best.push(best);
  line.expected.push(expected);
  // The framework's time is one figure: its line runs over all trials.
  line.baseline = line.best.map(() => baseline);
  const words = best === null ? `Expected latency after ${done} trials: ${micros(expected)}` : `Best latency after ${done} trials: ${micros(best)}`;
  chart.setAttribute("aria-label", simulated ? words.replace("latency", "simulated latency") : words);
  if (plot && wide === isWide()) plot.setData(Object.values(line));
  else draw();
}

async function refreshSummary() {
  const plan = summary.firstElementChild.dataset.plan;
  const answer = await fetch(summary.dataset.fragment, { headers: { accept: "text/html" } });
  if (!answer.ok || answer.redirected) return;
  const html = await answer.text();
  if (isPressed(summary)) return later();
  swap(summary, html);
  const found = summary.firstElementChild.dataset.plan;
  if (found && found !== plan) showPlan(found);
}

function showPlan(plan) {
  const root = document.querySelector(".graph");
  root.dataset.src = `/v1/plans/${plan}/svg`;
  root.dataset.detail = `/plans/${plan}/groups/`;
  root.querySelector(".picture").href = root.dataset.src;
  root.dispatchEvent(new Event("graph-changed"));
}

// One answer after the other: an older one that comes late would undo what a newer one has shown.
function later() {
  missed = true;
  if (pending) return;
  pending = true;
  setTimeout(async () => {
    missed = false;
    await refreshSummary().catch(() => {});
    pending = false;
    if (missed) later();
  }, 400);
}

const source = new EventSource(chart.dataset.events);
for (const kind of ["state", "progress", "trial", "group", "cover", "plan", "log"]) {
  source.addEventListener(kind, (event) => {
    const { data } = JSON.parse(event.data);
    if (kind === "progress" || kind === "cover") add(kind, data);
    if (kind === "state") said.textContent = `The job is ${data.state}`;
    later();
    if (kind === "state" && TERMINAL.includes(data.state)) source.close();
  });
}

addEventListener("resize", () => plot && draw());
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => plot && draw());
