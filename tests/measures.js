// What tests/test_report_browser.py measures in a page: its texts, marks and controls, with the colours that are there.

function rgba(text) {
  const numbers = (text.match(/[\d.]+/g) || []).map(Number);
  return /^rgb/.test(text) ? [...numbers.slice(0, 3), numbers.length > 3 ? numbers[3] : 1] : [0, 0, 0, 0];
}
function over(ink, paper) { return [0, 1, 2].map(i => ink[3] * ink[i] + (1 - ink[3]) * paper[i]); }
function luminance(colour) {
  const [r, g, b] = colour.map(c => c / 255).map(c => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}
function contrast(one, other) {
  const [low, high] = [luminance(one), luminance(other)].sort((a, b) => a - b);
  return (high + 0.05) / (low + 0.05);
}
function parents(element) { const found = []; for (let one = element; one; one = one.parentElement) found.push(one); return found; }
function faded(colour, opacity) { return [...colour.slice(0, 3), colour[3] * opacity]; }

// The colour behind an element: backgrounds of its parents, and the boxes of a drawing that are drawn before it.
function paperOf(element) {
  let colour = [255, 255, 255];
  for (const one of parents(element).reverse()) colour = over(rgba(getComputedStyle(one).backgroundColor), colour);
  const drawing = element.closest("svg");
  if (!drawing || element.closest(".plot")) return colour;
  const box = element.getBoundingClientRect(), x = (box.left + box.right) / 2, y = (box.top + box.bottom) / 2;
  for (const rect of drawing.querySelectorAll("rect")) {
    const place = rect.getBoundingClientRect(), style = getComputedStyle(rect);
    const before = rect.compareDocumentPosition(element) & Node.DOCUMENT_POSITION_FOLLOWING;
    if (before && place.left <= x && x <= place.right && place.top <= y && y <= place.bottom) {
      colour = over(faded(rgba(style.fill), Number(style.fillOpacity)), colour);
    }
  }
  return colour;
}
function opacityOf(element) { return parents(element).reduce((all, one) => all * Number(getComputedStyle(one).opacity), 1); }

function texts() {
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT), found = [];
  while (walker.nextNode()) {
    const words = walker.currentNode.textContent.trim(), element = walker.currentNode.parentElement;
    if (!words || /^(SCRIPT|STYLE|NOSCRIPT|TITLE|OPTION)$/i.test(element.tagName)) continue;
    const range = document.createRange();
    range.selectNodeContents(walker.currentNode);
    const box = range.getBoundingClientRect(), style = getComputedStyle(element);
    if (!box.width || style.visibility === "hidden" || !opacityOf(element)) continue;
    const inDrawing = element.closest("svg"), paper = paperOf(element);
    const scale = inDrawing ? inDrawing.getBoundingClientRect().width / (inDrawing.viewBox.baseVal?.width || inDrawing.clientWidth || 1) : 1;
    const ink = over(faded(rgba(inDrawing ? style.fill : style.color), opacityOf(element)), paper);
    found.push({ words, element, box, paper, ink, size: parseFloat(style.fontSize) * scale });
  }
  return found;
}

// Why a text cannot be read, or nothing.
function cut(text) {
  let { left, right } = text.box;
  for (const one of parents(text.element)) {
    const style = getComputedStyle(one), box = one.getBoundingClientRect();
    if (style.overflowX === "visible" || style.display === "inline" || one === document.documentElement) continue;
    if (left >= box.left - 1.5 && right <= box.right + 1.5) continue;
    if (/auto|scroll/.test(style.overflowX)) {
      if (one.tabIndex < 0) return text.words + ": scrolls, but not by keyboard";
      [left, right] = [box.left, box.right];
    } else return text.words + ": cut by " + one.tagName;
  }
  return left < -1 || right > document.documentElement.clientWidth + 1 ? text.words + ": off the screen" : "";
}

function marks() {
  const kinds = {
    line: [".plot path.js-line", "stroke"], "error bar": [".plot .errorbar path", "stroke"], point: [".plot path.point", "either"],
    arrow: ["svg .arrow, svg .unit", "stroke"], interval: [".track i, .track:not(.unclear) b", "backgroundColor"],
    host: [".host", "borderTopColor"], "frame of a control": ["button, select", "borderTopColor"],
    "line of the network": ["#network svg path", "stroke"]
  };
  const found = [];
  for (const [kind, [selector, property]] of Object.entries(kinds)) {
    for (const element of document.querySelectorAll(selector)) {
      const style = getComputedStyle(element), paper = paperOf(element.parentElement);
      if (style.display === "none") continue;
      const names = property === "either" ? ["fill", "stroke"] : [property];
      const ratios = names.map(name => {
        const own = name === "stroke" ? Number(style.strokeOpacity) : name === "fill" ? Number(style.fillOpacity) : 1;
        return contrast(over(faded(rgba(style[name]), own * opacityOf(element)), paper), paper);
      });
      found.push([kind, Math.max(...ratios)]);
    }
  }
  return found;
}

function controls() {
  return [...document.querySelectorAll("a[href], button, select, input, summary, [tabindex]")].filter(one => {
    const hidden = parents(one).some(parent => parent.tagName === "DETAILS" && !parent.open && !one.closest("summary"));
    return one.tabIndex >= 0 && !hidden && one.getClientRects().length > 0;
  });
}
function focused() {
  const one = document.activeElement, style = getComputedStyle(one);
  const name = one.getAttribute("aria-label") || (one.labels && one.labels[0] ? one.labels[0] : one).textContent;
  return { name: name.trim(), place: controls().indexOf(one), outline: style.outlineStyle === "none" ? 0 : parseFloat(style.outlineWidth) };
}
