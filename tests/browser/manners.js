// What is wrong with a page, as a list of sentences: contrast, names, labels, headings, width.
() => {
  const wrong = [];

  const told = (one) => one.outerHTML.slice(0, 120);
  const parse = (color) => { const m = color.match(/[\d.]+/g).map(Number); return color.startsWith('color(srgb')
    ? [m[0] * 255, m[1] * 255, m[2] * 255, m[3] ?? 1] : [m[0], m[1], m[2], m[3] ?? 1]; };
  const light = ([r, g, b]) => { const f = [r, g, b].map((v) => { v /= 255; return v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; });
    return 0.2126 * f[0] + 0.7152 * f[1] + 0.0722 * f[2]; };
  const behind = (one) => { for (let at = one; at; at = at.parentElement) { const c = parse(getComputedStyle(at).backgroundColor); if (c[3] === 1) return c; } return [255, 255, 255, 1]; };
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const one = walker.currentNode.parentElement;
    if (!walker.currentNode.nodeValue.trim() || one.closest('script, svg, kbd, [hidden], option, button:disabled') || !one.checkVisibility()) continue;
    if (one.closest('.unseen, .skip')) continue;
    const [a, b] = [light(parse(getComputedStyle(one).color)), light(behind(one))].sort((x, y) => y - x);
    const contrast = (a + 0.05) / (b + 0.05);
    if (contrast < 4.5) wrong.push(`contrast ${contrast.toFixed(2)}: ${told(one)}`);
  }
  for (const one of document.querySelectorAll('a[href], button, input:not([type=hidden]), select, textarea, summary')) {
    if (!one.checkVisibility()) continue;
    const name = one.getAttribute('aria-label') || one.textContent.trim() || one.labels?.[0]?.textContent.trim() || one.title;
    if (!name) wrong.push(`no name: ${told(one)}`);
  }
  const ids = [...document.querySelectorAll('[id]')].map((one) => one.id);
  for (const id of new Set(ids)) if (ids.filter((one) => one === id).length > 1) wrong.push(`id twice: ${id}`);
  if (document.querySelectorAll('h1').length !== 1) wrong.push('not one h1');
  if (!document.documentElement.lang) wrong.push('no language');
  for (const one of document.querySelectorAll('table')) if (!one.caption) wrong.push(`no caption: ${told(one)}`);
  for (const one of document.querySelectorAll('[role=img]')) if (!one.getAttribute('aria-label')) wrong.push(`no label: ${told(one)}`);
  if (document.documentElement.scrollWidth > innerWidth) wrong.push(`${document.documentElement.scrollWidth - innerWidth} px too wide`);
  return [...new Set(wrong)].slice(0, 10);
}
