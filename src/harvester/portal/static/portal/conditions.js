// Shows fields only while other fields have certain values: data-when="transport=FTP", several separated by spaces.
// Without this script they are always shown; the server checks them either way.

function holds(form, condition) {
  const [name, wanted] = condition.split("=");
  const field = form.elements[name];
  return !field || field.value === wanted;
}

function showFields(form) {
  for (const part of form.querySelectorAll("[data-when]")) {
    const isWanted = part.dataset.when.split(" ").every((condition) => holds(form, condition));
    part.hidden = !isWanted;
  }
}

document.addEventListener("DOMContentLoaded", () => {
  for (const form of document.querySelectorAll("form:has([data-when])")) {
    showFields(form);
    form.addEventListener("change", () => showFields(form));
  }
  const wrong = document.querySelector(".hv-wrong .hv-input, .hv-wrong input");
  wrong?.closest("details")?.setAttribute("open", "");
  wrong?.focus();
});
