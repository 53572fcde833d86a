// Of the form for corrections only the fields that the chosen scope and action need are shown.
(() => {
  const NEEDED = { RETAILER: ["retailer"], SOURCE: ["source"], PRODUCT: ["source", "product"], RUN: ["source", "run"] };
  const OPTIONAL = ["retailer", "source", "product", "run"];

  function show(name, wanted) {
    document.getElementById(`id_${name}`).closest(".hv-field").hidden = !wanted;
  }

  function arrange() {
    const needed = NEEDED[document.getElementById("id_scope").value] || OPTIONAL;
    for (const name of OPTIONAL) show(name, needed.includes(name));
    show("multiplier", document.getElementById("id_action").value === "MULTIPLIER");
  }

  document.addEventListener("change", (event) => {
    if (event.target.matches("#id_scope, #id_action")) arrange();
  });
  // What was looked at is what is confirmed: a changed form has to be looked at again.
  document.addEventListener("input", (event) => {
    if (event.target.closest("#correction-form")) document.getElementById("preview")?.remove();
  });
  document.addEventListener("DOMContentLoaded", arrange);
})();
