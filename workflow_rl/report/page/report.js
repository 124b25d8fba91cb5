"use strict";
(function () {
  var data = JSON.parse(document.getElementById("data").textContent);
  var root = document.documentElement;

  // ---- theme: the system's, until the reader chooses
  function ink(name) { return getComputedStyle(root).getPropertyValue(name).trim(); }
  function setTheme(theme) { root.dataset.theme = theme; drawAll(); }
  var media = window.matchMedia("(prefers-color-scheme: dark)");
  root.dataset.theme = media.matches ? "dark" : "light";
  media.addEventListener("change", function (event) { setTheme(event.matches ? "dark" : "light"); });
  document.getElementById("theme").addEventListener("click", function () {
    setTheme(root.dataset.theme === "dark" ? "light" : "dark");
  });

  // ---- words: their explanation beside them by pointer, keyboard or finger; without a script the link leads to it
  var tip = document.getElementById("tip"), leaving = null;
  function hide() { clearTimeout(leaving); tip.hidden = true; }
  function hideSoon() { clearTimeout(leaving); leaving = setTimeout(hide, 300); }
  function explain(link) {
    clearTimeout(leaving);
    tip.textContent = document.getElementById(link.hash.slice(1)).textContent;
    tip.hidden = false;
    var box = link.getBoundingClientRect(), width = root.clientWidth;
    tip.style.left = "8px";
    tip.style.left = Math.max(8, Math.min(box.left, width - tip.offsetWidth - 8)) + window.scrollX + "px";
    tip.style.top = box.bottom + 6 + window.scrollY + "px";
  }
  function onTerm(kind, does, otherwise) {
    document.addEventListener(kind, function (event) {
      var link = event.target.closest && event.target.closest("a.term");
      if (link) does(link, event); else if (otherwise) otherwise(event);
    });
  }
  onTerm("click", function (link, event) { event.preventDefault(); explain(link); }, hide);
  onTerm("mouseover", explain);
  onTerm("focusin", explain, hide);
  onTerm("mouseout", hideSoon);
  onTerm("focusout", hideSoon);
  tip.addEventListener("mouseenter", function () { clearTimeout(leaving); });
  tip.addEventListener("mouseleave", hideSoon);
  document.addEventListener("keydown", function (event) { if (event.key === "Escape") hide(); });

  // ---- what scrolls by itself can be reached with the keyboard
  function reachable() {
    document.querySelectorAll(".scroll").forEach(function (place) {
      if (place.scrollWidth > place.clientWidth) place.tabIndex = 0; else place.removeAttribute("tabindex");
    });
  }
  window.addEventListener("resize", reachable);
  document.addEventListener("toggle", reachable, true);
  reachable();

  // ---- figures, each drawn when it is scrolled into view, in the inks of the theme
  var drawn = {};
  function inked(value) {
    if (typeof value === "string") return value in data.inks ? ink(data.inks[value]) : value;
    if (!value || typeof value !== "object") return value;
    var copy = Array.isArray(value) ? [] : {};
    Object.keys(value).forEach(function (key) { copy[key] = inked(value[key]); });
    return copy;
  }
  function draw(name) {
    var place = document.getElementById("plot-" + name);
    if (!place || typeof Plotly === "undefined") return;
    drawn[name] = true;
    var figure = inked(data.figures[name]);
    var layout = Object.assign({
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", font: { color: ink("--ink"), size: 13 },
      margin: { l: 60, r: 20, t: 10, b: 50 }, autosize: true,
      dragmode: window.matchMedia("(pointer: coarse)").matches ? false : "zoom",  // a finger scrolls the page
      hoverlabel: { align: "left", bgcolor: ink("--panel"), font: { color: ink("--ink") } }
    }, figure.layout);
    layout.height = heightOf(name, place);
    Object.keys(layout).forEach(function (key) {
      if (/^[xy]axis/.test(key)) {
        layout[key] = Object.assign({ gridcolor: ink("--line"), zerolinecolor: ink("--line"), automargin: true }, layout[key]);
      }
    });
    Plotly.react(place, figure.data, layout, { responsive: true, displayModeBar: false });
  }
  function heightOf(name, place) { return Math.min(data.figures[name].layout.height, Math.max(320, place.clientWidth)); }
  var names = Object.keys(data.figures);
  function drawAll() { names.forEach(function (name) { if (drawn[name]) draw(name); }); }
  var observer = new IntersectionObserver(function (entries) {
    entries.forEach(function (entry) {
      if (entry.isIntersecting) { observer.unobserve(entry.target); draw(entry.target.id.slice("plot-".length)); }
    });
  }, { rootMargin: "300px" });
  names.forEach(function (name) {
    var place = document.getElementById("plot-" + name);
    if (place) { place.style.minHeight = heightOf(name, place) + "px"; observer.observe(place); }
  });
  var before = null;
  window.addEventListener("beforeprint", function () {
    var closed = Array.prototype.slice.call(document.querySelectorAll("details:not([open])"));
    before = { theme: root.dataset.theme, closed: closed };
    root.dataset.theme = "light";
    closed.forEach(function (one) { one.open = true; });
    names.forEach(draw);
  });
  window.addEventListener("afterprint", function () {
    if (!before) return;
    before.closed.forEach(function (one) { one.open = false; });
    setTheme(before.theme);
    before = null;
  });

  // ---- replay
  var stories = data.stories, chosen = 0, step = 0, timer = null;
  var region = document.getElementById("replay-region");
  if (!stories.length || !region) return;
  var by = function (id) { return document.getElementById(id); };
  var select = by("story"), slider = by("slider"), play = by("play");
  stories.forEach(function (story, i) {
    var option = document.createElement("option");
    option.value = i;
    option.textContent = story.red_agent + ": " + story.why + " (" + story.frames[story.frames.length - 1].total.toFixed(1) + ")";
    select.appendChild(option);
  });

  function show() {
    var story = stories[chosen], frame = story.frames[step];
    if (by("lesson").textContent !== story.lesson) by("lesson").textContent = story.lesson;
    slider.max = story.frames.length - 1;
    slider.value = step;
    var place = frame.step + " of " + story.frames[story.frames.length - 1].step;
    slider.setAttribute("aria-valuetext", "step " + place);
    by("told-step").textContent = place;
    by("told-blue").textContent = frame.blue;
    by("told-red").textContent = frame.red;
    by("told-reward").textContent = frame.reward.toFixed(1) + ", so far " + frame.total.toFixed(1);
    var fix = by("told-fix"), words = story.workflow ? "no fix" : "there is no workflow";
    if (frame.fix) {
      words = frame.fix.verdict + ": " + frame.fix.unit_type;
      if (frame.fix.verdict === "violation") words += " was repaired, " + frame.fix.due + " was due";
    }
    fix.textContent = words;
    fix.className = frame.fix ? frame.fix.verdict.replace(" ", "-") : "";
    by("told-service").textContent = frame.service_down ? "down" : "running";
    data.hosts.forEach(function (name, h) {
      var node = by("host-" + h), level = frame.level[h], belief = frame.belief[h], decoys = frame.decoys[h];
      node.setAttribute("class", "host level" + level + (belief ? " seen" : ""));
      by("true-" + h).textContent = level ? "red: " + data.levels[level] : "";
      by("belief-" + h).textContent = "believed " + data.beliefs[belief];
      by("seen-" + h).textContent = [frame.activity[h] ? data.activities[frame.activity[h]] + " seen" : "",
        decoys.join(", ")].filter(Boolean).join("; ");
    });
  }
  function go(to) {
    step = Math.max(0, Math.min(to, stories[chosen].frames.length - 1));
    show();
  }
  function stop() { clearInterval(timer); timer = null; by("told").setAttribute("aria-live", "polite"); play.textContent = "Play"; play.setAttribute("aria-pressed", "false"); }
  function toggle() {
    if (timer) { stop(); return; }
    if (step >= stories[chosen].frames.length - 1) go(0);
    play.textContent = "Pause";
    by("told").setAttribute("aria-live", "off");
    play.setAttribute("aria-pressed", "true");
    timer = setInterval(function () {
      if (step >= stories[chosen].frames.length - 1) stop(); else go(step + 1);
    }, 600);
  }
  select.addEventListener("change", function () { stop(); chosen = Number(select.value); go(0); });
  slider.addEventListener("input", function () { stop(); go(Number(slider.value)); });
  play.addEventListener("click", toggle);
  by("back").addEventListener("click", function () { stop(); go(step - 1); });
  by("forth").addEventListener("click", function () { stop(); go(step + 1); });
  region.addEventListener("keydown", function (event) {
    if (event.target === select || event.ctrlKey || event.metaKey || event.altKey) return;
    var to = { ArrowLeft: step - 1, ArrowRight: step + 1, Home: 0, End: stories[chosen].frames.length - 1 }[event.key];
    if (to !== undefined) { stop(); go(to); event.preventDefault(); }
    else if (event.key === " " && event.target.tagName !== "BUTTON") { toggle(); event.preventDefault(); }
  });
  region.classList.add("ready");
  show();
})();
