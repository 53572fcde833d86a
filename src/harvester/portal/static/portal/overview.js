// The four small charts of the dashboard.

(() => {
  const charts = new Map();

  const tone = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

  function bars(label, data, colorName) {
    return { label, data, backgroundColor: tone(colorName), borderRadius: 1, maxBarThickness: 9, stack: "day" };
  }

  function line(label, data) {
    const color = tone("--hv-running");
    return { type: "line", label, data, borderColor: color, borderWidth: 2, pointRadius: 0, pointHitRadius: 8, tension: 0.25, fill: false };
  }

  const series = {
    visible: (days) => [line("Visible offers", days.visible)],
    prices: (days) => [bars("Prices written", days.prices, "--hv-running")],
    rejects: (days) => [bars("Rows rejected", days.rejects, "--hv-retryable")],
    runs: (days) => [
      bars("Promoted", days.promoted, "--hv-succeeded"),
      bars("Unchanged", days.skipped, "--hv-cancelled"),
      bars("Held", days.held, "--hv-retryable"),
      bars("Failed", days.failed, "--hv-failed"),
    ],
  };

  function options(name) {
    const quiet = tone("--hv-text-quiet");
    return {
      animation: false,
      maintainAspectRatio: false,
      interaction: { mode: "index", intersect: false },
      scales: {
        x: { stacked: true, grid: { display: false }, border: { color: tone("--hv-line") }, ticks: { color: quiet, maxRotation: 0, autoSkipPadding: 40, font: { size: 11 } } },
        y: { stacked: name !== "visible", beginAtZero: true, display: false, grace: "5%" },
      },
      plugins: { legend: { display: false } },
    };
  }

  function draw() {
    const source = document.getElementById("days-data");
    if (!source || typeof Chart === "undefined") return;
    const days = JSON.parse(source.textContent);
    for (const canvas of document.querySelectorAll("canvas[data-days]")) {
      const name = canvas.dataset.days;
      const datasets = series[name](days);
      const known = charts.get(canvas);
      if (known) {
        known.data.labels = days.labels;
        known.data.datasets.forEach((dataset, place) => { dataset.data = datasets[place].data; });
        known.update("none");
      } else {
        charts.set(canvas, new Chart(canvas, { type: "bar", data: { labels: days.labels, datasets }, options: options(name) }));
      }
    }
  }

  document.addEventListener("DOMContentLoaded", draw);
  document.addEventListener("htmx:afterSettle", draw);
  // A canvas does not change its colors with the page.
  new MutationObserver(() => {
    for (const chart of charts.values()) chart.destroy();
    charts.clear();
    draw();
  }).observe(document.documentElement, { attributes: true, attributeFilter: ["class"] });
})();
