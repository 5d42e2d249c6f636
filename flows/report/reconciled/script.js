(function () {
  "use strict";
  var list = document.getElementById("break-list");
  if (!list) { return; }
  var tools = document.getElementById("break-tools");
  var body = list.tBodies[0];
  var rows = Array.prototype.slice.call(body.rows);
  var texts = rows.map(function (row) { return row.textContent.toLowerCase(); });
  var search = document.getElementById("break-search");
  var order = document.getElementById("break-order");
  var chosen = Array.prototype.slice.call(tools.querySelectorAll("select[data-filter]"));
  var told = document.getElementById("break-told");

  function narrow() {
    var words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    var count = 0;
    rows.forEach(function (row, place) {
      var fits = words.every(function (word) { return texts[place].indexOf(word) >= 0; }) &&
        chosen.every(function (one) {
          return one.value === "*" || row.getAttribute("data-" + one.getAttribute("data-filter")) === one.value;
        });
      row.hidden = !fits;
      count += fits ? 1 : 0;
    });
    told.textContent = count === rows.length ? "" : count + " of the " + rows.length + " listed breaks are shown.";
  }

  function arrange() {
    var place = Number(order.value);
    rows.map(function (row) { return [Number(row.getAttribute("data-ranks").split(" ")[place]), row]; })
      .sort(function (one, other) { return one[0] - other[0]; })
      .forEach(function (pair) { body.appendChild(pair[1]); });
  }

  search.addEventListener("input", narrow);
  chosen.forEach(function (one) { one.addEventListener("change", narrow); });
  order.addEventListener("change", arrange);
  document.getElementById("break-all").addEventListener("click", function () {
    search.value = "";
    chosen.forEach(function (one) { one.value = "*"; });
    order.value = "0";
    narrow();
    arrange();
  });
  // A browser may keep what was chosen, and fills it in when the page is loaded again.
  window.addEventListener("pageshow", function () {
    narrow();
    arrange();
  });
  tools.hidden = false;
}());
