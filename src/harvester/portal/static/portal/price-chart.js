// The price history of an offer: a step for each observed price, a line for each currency.
(() => {
  const COLORS = ["--hv-running", "--hv-retryable", "--hv-succeeded", "--hv-failed"];
  const MANY = 60;
  const MINUTE = 60_000, HOUR = 60 * MINUTE, DAY = 24 * HOUR;
  // Distance of two marks of the axis, so that there are few and each has a label of its own.
  const STEPS = [MINUTE, 5 * MINUTE, 15 * MINUTE, HOUR, 3 * HOUR, 6 * HOUR, 12 * HOUR, DAY, 2 * DAY, 7 * DAY, 14 * DAY,
    30 * DAY, 90 * DAY, 180 * DAY, 365 * DAY];
  const MOST_STEPS = 7;
  let drawn = null;

  const day = (moment) => new Date(moment).toISOString().slice(0, 10);
  const minute = (moment) => `${new Date(moment).toISOString().slice(0, 16).replace("T", " ")} UTC`;

  const stepOf = ({ min, max }) => STEPS.find((size) => (max - min) / size <= MOST_STEPS) ?? STEPS.at(-1);

  function marks({ min, max }) {
    const step = stepOf({ min, max });
    const found = [];
    for (let value = Math.ceil(min / step) * step; value <= max; value += step) found.push({ value });
    return found.length ? found : [{ value: min }];
  }

  const name = (moment, step) => (step < DAY ? new Date(moment).toISOString().slice(5, 16).replace("T", " ") : day(moment));

  // The last price is drawn until now; this point is not an observation and not marked.
  function upToNow(points, until) {
    const last = points[points.length - 1];
    return until && last.x < until ? [...points, { x: until, y: last.y, made: true }] : points;
  }

  function dataset(line, place, until) {
    const tone = color(COLORS[place % COLORS.length]);
    const points = place === 0 ? upToNow(line.points, until) : line.points;
    return {
      label: line.label,
      data: points,
      borderColor: tone,
      borderWidth: 2,
      stepped: "before",
      pointRadius: points.map((point) => (point.made || points.length > MANY ? 0 : 3)),
      pointBackgroundColor: points.map((point) => (point.out ? color("--hv-card") : tone)),
      pointBorderColor: tone,
    };
  }

  function options(data) {
    const base = chartOptions();
    base.interaction = { mode: "nearest", axis: "x", intersect: false };
    const moments = data.lines.flatMap((line) => line.points.map((point) => point.x));
    const ends = { min: Math.min(...moments), max: Math.max(...moments, data.until || 0) };
    base.scales.x = { ...base.scales.x, ...ends, type: "linear", stacked: false };
    base.scales.x.afterBuildTicks = (axis) => { axis.ticks = marks(ends); };
    base.scales.x.ticks = { ...base.scales.x.ticks, callback: (moment) => name(moment, stepOf(ends)) };
    base.scales.y = { ...base.scales.y, stacked: false, beginAtZero: false, grace: "10%" };
    delete base.scales.y.ticks.precision;
    base.plugins.legend.display = data.lines.length > 1;
    base.plugins.tooltip = {
      callbacks: {
        title: (points) => minute(points[0].parsed.x),
        label: (point) => `${point.formattedValue} ${point.dataset.label}${point.raw.out ? ", out of stock" : ""}`,
      },
    };
    return base;
  }

  function draw() {
    const canvas = document.getElementById("price-chart");
    const source = document.getElementById("price-data");
    if (!canvas || !source || typeof Chart === "undefined") return;
    const data = JSON.parse(source.textContent);
    const until = data.lines.length === 1 ? data.until : null;
    const datasets = data.lines.map((line, place) => dataset(line, place, until));
    Chart.defaults.font.family = "Inter, sans-serif";
    drawn?.destroy();
    drawn = new Chart(canvas, { type: "line", data: { datasets }, options: options(data) });
  }

  // A canvas does not change its colors with the page.
  new MutationObserver(draw).observe(document.documentElement, { attributes: true, attributeFilter: ["class"] });
  document.addEventListener("DOMContentLoaded", draw);
})();
