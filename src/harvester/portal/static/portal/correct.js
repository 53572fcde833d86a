// Shows only the fields of the correction form that the chosen scope and action need.
(() => {
  const NEEDED = { RETAILER: ["retailer"], SOURCE: ["source"], PRODUCT: ["source", "product"], RUN: ["source", "run"] };
  const OPTIONAL = ["retailer", "source", "product", "run"];

  function show(name, wanted) {
    document.getElementById(`id_${name}`).closest(".hv-field").hidden = !wanted;
  }

  function arrange() {
    const needed = NEEDED[document.getElementById("id_scope").value] || OPTIONAL;
    for (const name of OPTIONAL) show(name, needed.includes(name));
    const action = document.getElementById("id_action").value;
    show("multiplier", action === "MULTIPLIER");
    show("set_amount", action === "SET");
    show("set_currency", action === "SET");
    const isWindow = document.getElementById("id_extent").value === "WINDOW";
    show("observed_from", isWindow);
    show("observed_to", isWindow);
  }

  document.addEventListener("change", (event) => {
    if (event.target.matches("#id_scope, #id_action, #id_extent")) arrange();
  });
  // A changed form needs a new preview.
  document.addEventListener("input", (event) => {
    if (event.target.closest("#correction-form")) document.getElementById("preview")?.remove();
  });
  document.addEventListener("DOMContentLoaded", arrange);
})();
