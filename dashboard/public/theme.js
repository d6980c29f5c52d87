try {
  var chosen = localStorage.getItem("hybrid.theme");
  var light = chosen ? chosen === "light" : matchMedia("(prefers-color-scheme: light)").matches;
  document.documentElement.dataset.theme = light ? "light" : "dark";
  // As in src/theme.ts.
  if (light) document.querySelector('meta[name="theme-color"]').setAttribute("content", "#eef1f7");
} catch (error) {
  document.documentElement.dataset.theme = "dark";
}
