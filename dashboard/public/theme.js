try {
  var chosen = localStorage.getItem("hybrid.theme");
  var light = chosen ? chosen === "light" : matchMedia("(prefers-color-scheme: light)").matches;
  document.documentElement.dataset.theme = light ? "light" : "dark";
} catch (error) {
  document.documentElement.dataset.theme = "dark";
}
