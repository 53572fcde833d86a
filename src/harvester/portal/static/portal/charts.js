// Charts of one series each: <canvas data-chart="name"> draws charts[name] of the page's #charts-data.

const drawn = [];

function paint(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

function options(whole, top) {
  const text = paint("--hv-text-quiet");
  const line = paint("--hv-line");
  return {
    animation: false,
    maintainAspectRatio: false,
    interaction: { mode: "index", intersect: false },
    scales: {
      // The number of the run; its time is on hover.
      x: { grid: { display: false }, border: { color: line }, ticks: { color: text, maxRotation: 0, autoSkipPadding: 12, callback(at) { return this.getLabelForValue(at).split(",")[0]; } } },
      y: { beginAtZero: true, max: top, border: { display: false }, grid: { color: line }, ticks: { color: text, maxTicksLimit: 4, precision: whole ? 0 : undefined } },
    },
    plugins: { legend: { display: false } },
  };
}

function drawAll() {
  drawn.splice(0).forEach((chart) => chart.destroy());
  const source = document.getElementById("charts-data");
  if (!source || typeof Chart === "undefined") return;
  Chart.defaults.font.family = "Inter, sans-serif";
  const { labels, charts } = JSON.parse(source.textContent);
  for (const canvas of document.querySelectorAll("canvas[data-chart]")) {
    const { label, tone, whole, top, values } = charts[canvas.dataset.chart];
    const dataset = { label, data: values, backgroundColor: paint(`--hv-${tone}`), borderRadius: 2, maxBarThickness: 22 };
    drawn.push(new Chart(canvas, { type: "bar", data: { labels, datasets: [dataset] }, options: options(whole, top) }));
  }
}

document.addEventListener("DOMContentLoaded", drawAll);
// A canvas does not change its colors with the page.
new MutationObserver(drawAll).observe(document.documentElement, { attributes: true, attributeFilter: ["class"] });
