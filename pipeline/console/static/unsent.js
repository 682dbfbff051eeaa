// Asks before a page is left with words in a form that were not sent.
let unsent = false;
addEventListener("input", (event) => {
  unsent ||= Boolean(event.target.form);
});
addEventListener("submit", () => {
  unsent = false;
});
addEventListener("beforeunload", (event) => {
  if (unsent) event.preventDefault();
});
