// The keyboard: everything that can be clicked can be reached, and what is done often has a key of its own.

const SEQUENCE_MS = 1200;
export const KEYS = [
  ['/', 'find a job, queue, type'], ['Ctrl K', 'go to anything'], ['g, then a letter', 'go to a section: its letter is in the menu'],
  ['j  k', 'next and previous row'], ['Enter', 'open the row'], ['x', 'select the row'], ['.', 'to the acts'],
  ['[  ]', 'earlier and later moment of a job'], ['?', 'these keys'], ['Esc', 'close, or leave a field'],
];

const isTyping = (target) => target.closest?.('input:not([type="checkbox"]):not([type="range"]), textarea, select, [contenteditable]');
const rows = () => [...document.querySelectorAll('main [data-row]')].filter((row) => row.offsetParent);
const current = () => document.querySelector('main [data-current]');

function move(step) {
  const all = rows();
  if (!all.length) return;
  const at = all.indexOf(current());
  const next = all[Math.min(all.length - 1, Math.max(0, at + step))] ?? all[0];
  current()?.removeAttribute('data-current');
  next.setAttribute('data-current', '');
  next.querySelector('a')?.focus({ preventScroll: true });
  next.scrollIntoView({ block: 'nearest' });
}

export function listen({ palette, help }) {
  let after = 0;
  document.addEventListener('keydown', (event) => {
    if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === 'k') { event.preventDefault(); palette(); return; }
    if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector('dialog[open]')) return;
    if (isTyping(event.target)) {
      if (event.key === 'Escape') event.target.blur();
      return;
    }
    if (after && Date.now() - after < SEQUENCE_MS) {
      after = 0;
      const link = document.querySelector(`[data-go="${CSS.escape(event.key)}"]`);
      if (link) { event.preventDefault(); link.click(); }
      return;
    }
    const act = ACTS[event.key];
    if (event.key === 'g') after = Date.now();
    else if (event.key === '?') { event.preventDefault(); help(); }
    else if (act) act(event);
  });
}

const ACTS = {
  '/': (event) => { event.preventDefault(); document.getElementById('search')?.focus(); },
  j: () => move(1),
  k: () => move(-1),
  x: () => { current()?.querySelector('.pick input')?.click(); },
  Enter: (event) => {
    const row = current();
    if (row && (event.target === document.body || event.target.closest('[data-row]') === row) && event.target.nodeName !== 'BUTTON' && event.target.nodeName !== 'A') location.href = row.dataset.row;
  },
  '.': (event) => { event.preventDefault(); document.querySelector('main .selection button, main .head .acts :is(button, a, summary), main .acts button')?.focus(); },
  '[': () => document.querySelector('#slider [rel="prev"]')?.click(),
  ']': () => document.querySelector('#slider [rel="next"]')?.click(),
};
