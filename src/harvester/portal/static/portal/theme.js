// Runs before the first paint, so that a dark page does not flash white. Then Alpine takes over.
(function () {
  let chosen = "auto";
  try {
    chosen = JSON.parse(localStorage.getItem("adminTheme")) || "auto";
  } catch {
    // Storage may be blocked or contain something else. Then the system's setting applies.
  }
  const dark = chosen === "dark" || (chosen === "auto" && matchMedia("(prefers-color-scheme: dark)").matches);
  document.documentElement.classList.toggle("dark", dark);
})();
