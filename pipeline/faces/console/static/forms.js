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

// A comment that was opened is written at once.
addEventListener(
  "toggle",
  (event) => {
    if (event.target.matches("details.comment[open]")) event.target.querySelector("textarea").focus();
  },
  true,
);
