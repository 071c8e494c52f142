// Every visible text of the page that its background does not set off by WCAG's 4.5 to 1: an empty list is a pass.
(() => {
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const rgb = (color) => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = color;
    canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data];
  };
  const luminance = ([r, g, b]) => {
    const [x, y, z] = [r, g, b].map((c) => (c / 255 <= 0.03928 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * x + 0.7152 * y + 0.0722 * z;
  };
  const ratio = (a, b) => {
    const [low, high] = [luminance(a), luminance(b)].sort((x, y) => x - y);
    return (high + 0.05) / (low + 0.05);
  };
  const ground = (element) => {
    for (let one = element; one; one = one.parentElement) {
      const color = rgb(getComputedStyle(one).backgroundColor);
      if (color[3] > 0) return color;
    }
    return rgb("white");
  };
  const found = [];
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const element = texts.currentNode.parentElement;
    const said = texts.currentNode.textContent.trim();
    if (!said || element.closest("script, style, title, .unseen, noscript") || !element.getClientRects().length) continue;
    const style = getComputedStyle(element);
    const inside = element.tagName === "text" && element.previousElementSibling?.tagName === "rect";
    const behind = inside ? getComputedStyle(element.previousElementSibling).fill : null;
    if (behind && behind.startsWith("url")) continue; // a hatch has no one colour
    const value = ratio(rgb(element.tagName === "text" ? style.fill : style.color), behind ? rgb(behind) : ground(element));
    if (value < 4.5) found.push(`${value.toFixed(2)} ${element.tagName} ${element.className.baseVal ?? element.className}: ${said.slice(0, 60)}`);
  }
  return found;
})();
