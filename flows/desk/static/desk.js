// The whole of our own script: what htmx does not do by itself.
"use strict";

// A double click sends a form once.
const DOUBLE_CLICK = 1000;
let sent = -DOUBLE_CLICK;
document.addEventListener("submit", (event) => {
  if (event.defaultPrevented) return; // htmx sends that one.
  if (event.timeStamp - sent < DOUBLE_CLICK) event.preventDefault();
  else sent = event.timeStamp;
});

// What a filter is refused for is told by a page: the list would stay as it was, and say nothing.
for (const failed of ["htmx:responseError", "htmx:sendError"]) {
  document.addEventListener(failed, ({ detail }) => {
    if (detail.elt.matches("form")) location.assign(detail.pathInfo.finalRequestPath);
  });
}
