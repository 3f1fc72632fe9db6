// One job live: events draw the line of the best latency and refresh the summary.
"use strict";

const chart = document.getElementById("chart");
const summary = document.getElementById("summary");
const TERMINAL = ["done", "failed", "cancelled"];
const line = { trials: [], best: [], baseline: [] };
let plot = null;
let pending = null;

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const micros = (value) =>
  value == null ? "–" : value < 1000 ? value.toPrecision(3) + " µs" : (value / 1000).toPrecision(3) + " ms";

function draw() {
  if (plot) plot.destroy();
  chart.replaceChildren();
  const axis = { stroke: colour("--soft"), grid: { stroke: colour("--line") }, ticks: { stroke: colour("--line") } };
  const size = () => ({ width: Math.max(240, chart.parentElement.clientWidth - 36), height: 260 });
  const stepped = uPlot.paths.stepped({ align: 1 });
  plot = new uPlot({
    ...size(),
    scales: { x: { time: false } },
    axes: [{ ...axis, label: "trials" }, { ...axis, size: 70, values: (_, ticks) => ticks.map(micros) }],
    series: [
      { label: "trials" },
      { label: "best", stroke: colour("--best"), width: 2, paths: stepped, value: (_, v) => micros(v) },
      { label: "framework", stroke: colour("--base"), dash: [6, 4], value: (_, v) => micros(v) },
    ],
  }, [line.trials, line.best, line.baseline], chart);
  document.getElementById("chart-empty").hidden = true;
}

function add(progress) {
  if (typeof progress.best_us !== "number") return;
  const done = Number(progress.done ?? line.trials.at(-1) ?? 0);
  const baseline = progress.baseline_us ?? line.baseline.at(-1) ?? null;
  if (line.trials.at(-1) === done) for (const row of Object.values(line)) row.pop();
  line.trials.push(done);
  line.best.push(progress.best_us);
  // The framework's time is one figure: its line runs over all trials.
  line.baseline = line.best.map(() => baseline);
  chart.setAttribute("aria-label", `Best latency after ${done} trials: ${micros(line.best.at(-1))}`);
  if (plot) plot.setData([line.trials, line.best, line.baseline]);
  else draw();
}

async function refreshSummary() {
  pending = null;
  const plan = summary.firstElementChild.dataset.plan;
  const answer = await fetch(summary.dataset.fragment, { headers: { accept: "text/html" } });
  if (!answer.ok || answer.redirected) return;
  summary.innerHTML = await answer.text();
  const found = summary.firstElementChild.dataset.plan;
  if (found && found !== plan) {
    const picture = document.querySelector(".picture img");
    picture.src = `/v1/plans/${found}/svg`;
    picture.alt = "The program with its kernels as coloured groups";
  }
}

function later() {
  pending ??= setTimeout(() => refreshSummary().catch(() => {}), 400);
}

const source = new EventSource(chart.dataset.events);
for (const kind of ["state", "progress", "trial", "group", "cover", "plan", "log"]) {
  source.addEventListener(kind, (event) => {
    const { data } = JSON.parse(event.data);
    if (kind === "progress" || kind === "cover") add(data);
    later();
    if (kind === "state" && TERMINAL.includes(data.state)) source.close();
  });
}

addEventListener("resize", () => plot && draw());
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => plot && draw());
