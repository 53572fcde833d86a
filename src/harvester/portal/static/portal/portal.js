// The portal's own behavior on top of Unfold, Alpine and htmx.

// Alpine's build for a strict content security policy needs functions to be registered.
document.addEventListener("alpine:init", () => {
  // Set by theme.js before the first paint. Alpine removes only classes that it added itself, so it has to add it again.
  document.documentElement.classList.remove("dark");
  Alpine.data("theme", theme);
  Alpine.data("shell", () => ({
    sidebarMobileOpen: false,
    toggleMenu() {
      this.sidebarMobileOpen = !this.sidebarMobileOpen;
    },
    closeMenu() {
      this.sidebarMobileOpen = false;
    },
  }));
});

// Milliseconds between the clocks of browser and server, from the page and later from each fragment's Date header.
let clockOffset = 0;

function relativeTime(seconds) {
  const away = Math.abs(seconds);
  if (away < 1) return "just now";
  const [unit, name] = [[86400, "d"], [3600, "h"], [60, "min"]].find(([size]) => away >= 2 * size) ?? [1, "s"];
  const size = `${Math.floor(away / unit)} ${name}`;
  return seconds > 0 ? `in ${size}` : `${size} ago`;
}

function refreshTimes() {
  const now = Date.now() + clockOffset;
  for (const time of document.querySelectorAll("time[data-relative]")) {
    const text = relativeTime((Date.parse(time.dateTime) - now) / 1000);
    if (time.textContent !== text) time.textContent = text;
  }
}

// Popovers are <details>, which work without this script. It closes them at a click elsewhere.
function closePopovers(except) {
  for (const open of document.querySelectorAll("details[data-popover][open]")) {
    if (open !== except) open.open = false;
  }
}

document.addEventListener("click", (event) => {
  closePopovers(event.target.closest("details[data-popover]"));
  const opener = event.target.closest("[data-dialog]");
  if (opener) document.getElementById(opener.dataset.dialog).showModal();
  const closer = event.target.closest("[data-close]");
  if (closer) closer.closest("dialog").close();
});

document.addEventListener("toggle", (event) => {
  if (event.target.matches("details[data-popover][open]")) {
    event.target.querySelector("input:not([type=hidden])")?.focus();
  }
}, true);

document.addEventListener("keydown", (event) => {
  const open = document.querySelector("details[data-popover][open]");
  if (event.key === "Escape" && open) {
    open.open = false;
    open.querySelector("summary").focus();
  }
  const typing = event.target.closest("input, textarea, select, [contenteditable]");
  const search = document.querySelector("[data-search]");
  if (event.key === "/" && search && !typing) {
    event.preventDefault();
    search.focus();
  }
});

// A box that ticks all boxes of a form, wherever these are on the page.
document.addEventListener("change", (event) => {
  const all = event.target.closest("[data-tick-all]");
  if (!all) return;
  for (const box of document.querySelectorAll(`input[type="checkbox"][name][form="${all.dataset.tickAll}"]`)) {
    box.checked = all.checked;
  }
});

// A second click does not send a form again.
document.addEventListener("submit", (event) => {
  if (event.target.method !== "post") return;
  if (event.target.dataset.sent) event.preventDefault();
  event.target.dataset.sent = "yes";
});
window.addEventListener("pageshow", () => {
  for (const form of document.querySelectorAll("form[data-sent]")) delete form.dataset.sent;
});

// Parts of a page that refresh themselves.
function isBusy(target) {
  // What is open must not change or disappear.
  if (target.querySelector("dialog[open], details[data-popover][open]")) return true;
  const selection = getSelection();
  return Boolean(selection && !selection.isCollapsed && target.contains(selection.anchorNode));
}

document.addEventListener("htmx:beforeRequest", (event) => {
  if (document.hidden) event.preventDefault();
});

document.addEventListener("htmx:beforeSwap", (event) => {
  const { target, xhr } = event.detail;
  if (xhr.status === 200 && isBusy(target)) event.detail.shouldSwap = false;
});

document.addEventListener("htmx:afterRequest", (event) => {
  const answered = event.detail.successful;
  document.querySelector("[data-stale]")?.toggleAttribute("hidden", answered);
  const date = event.detail.xhr?.getResponseHeader("Date");
  if (answered && date && Math.abs(Date.parse(date) - Date.now() - clockOffset) > 2000) {
    clockOffset = Date.parse(date) - Date.now();
  }
});

// A message about something in progress disappears when that has ended.
let moving = false;

function dropEndedMessages() {
  const now = Boolean(document.querySelector("[data-moving]"));
  if (moving && !now) {
    for (const message of document.querySelectorAll(".hv-messages .hv-success")) message.remove();
  }
  moving = now;
}

document.addEventListener("htmx:afterSettle", () => {
  dropEndedMessages();
  refreshTimes();
  drawChart();
});

// The chart of the last day.
let chart = null;

function color(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

function chartColors() {
  return { succeeded: color("--hv-succeeded"), failed: color("--hv-failed"), cancelled: color("--hv-cancelled") };
}

function chartOptions() {
  const text = color("--hv-text-quiet");
  const line = color("--hv-line");
  return {
    animation: false,
    maintainAspectRatio: false,
    interaction: { mode: "index", intersect: false },
    scales: {
      x: { stacked: true, grid: { display: false }, border: { color: line }, ticks: { color: text, maxRotation: 0, autoSkipPadding: 24 } },
      y: { stacked: true, beginAtZero: true, border: { display: false }, grid: { color: line }, ticks: { color: text, precision: 0, maxTicksLimit: 5 } },
    },
    plugins: { legend: { position: "top", align: "end", labels: { color: text, boxWidth: 8, boxHeight: 8, usePointStyle: true, pointStyle: "circle" } } },
  };
}

function drawChart() {
  const canvas = document.getElementById("chart");
  const source = document.getElementById("chart-data");
  if (!canvas || !source || typeof Chart === "undefined") return;
  const data = JSON.parse(source.textContent);
  const colors = chartColors();
  const datasets = ["succeeded", "failed", "cancelled"].map((name) => ({
    label: name[0].toUpperCase() + name.slice(1),
    data: data[name],
    backgroundColor: colors[name],
    borderRadius: 2,
    maxBarThickness: 22,
  }));
  if (!chart) {
    Chart.defaults.font.family = "Inter, sans-serif";
    chart = new Chart(canvas, { type: "bar", data: { labels: data.labels, datasets }, options: chartOptions() });
    return;
  }
  chart.data.labels = data.labels;
  chart.data.datasets.forEach((dataset, place) => {
    dataset.data = datasets[place].data;
  });
  chart.update("none");
}

// A canvas does not change its colors with the page.
new MutationObserver(() => {
  chart?.destroy();
  chart = null;
  drawChart();
}).observe(document.documentElement, { attributes: true, attributeFilter: ["class"] });

document.addEventListener("DOMContentLoaded", () => {
  moving = Boolean(document.querySelector("[data-moving]"));
  clockOffset = Date.parse(document.body.dataset.now) - Date.now();
  if (Math.abs(clockOffset) < 2000) clockOffset = 0;
  for (const part of document.querySelectorAll("[data-needs-script]")) part.hidden = false;
  refreshTimes();
  drawChart();
  setInterval(refreshTimes, 1000);
});
