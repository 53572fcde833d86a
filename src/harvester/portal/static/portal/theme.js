// Runs before anything is painted, so that a dark page never flashes white. Alpine takes over afterwards.
(function () {
  let chosen = "auto";
  try {
    chosen = JSON.parse(localStorage.getItem("adminTheme")) || "auto";
  } catch {
    // Storage may be forbidden or hold something else; the system's choice is as good.
  }
  const dark = chosen === "dark" || (chosen === "auto" && matchMedia("(prefers-color-scheme: dark)").matches);
  document.documentElement.classList.toggle("dark", dark);
})();
