// Makes the pages live. Without it they can be read, and every act can be done.

import { KEYS, listen } from './keys.js';
import { hold, showPage, start } from './live.js';
import { help, open } from './palette.js';
import { keepCounting, localise } from './times.js';

/** What a script adds to a page, or to a part of it that has just come. */
function enhance(root) {
  localise(root);
  for (const element of root.querySelectorAll('[data-copy], [data-pick-all], [data-theme-switch], [data-help]')) element.hidden = false;
}

function copying() {
  document.addEventListener('click', async (event) => {
    const button = event.target.closest('[data-copy]');
    if (!button) return;
    const code = button.parentElement.querySelector('code');
    try {
      await navigator.clipboard.writeText(code.textContent);
    } catch {  // over plain http there is no clipboard: what is marked can be copied
      getSelection().selectAllChildren(code);
      try { document.execCommand('copy'); } catch { /* it stays marked */ }
    }
    button.textContent = 'Copied';
    setTimeout(() => { button.textContent = 'Copy'; }, 1500);
  });
}

/** Ticked rows: all of a page at once, and how many there are. */
function selecting() {
  const ticks = () => [...document.querySelectorAll('main .pick input[name="id"]')];
  let last = null;
  const tell = () => {
    const place = document.querySelector('[data-chosen]');
    const count = ticks().filter((tick) => tick.checked).length;
    if (place) place.textContent = count ? `${count} selected:` : 'Select jobs, and then:';
    for (const button of document.querySelectorAll('[data-selection] button')) button.disabled = count === 0;
  };
  document.addEventListener('click', (event) => {
    const tick = event.target.closest('.pick input');
    if (!tick) return;
    if (tick.hasAttribute('data-pick-all')) for (const one of ticks()) one.checked = tick.checked;
    else if (event.shiftKey && last) {
      const all = ticks();
      const [from, to] = [all.indexOf(last), all.indexOf(tick)].sort((a, b) => a - b);
      for (const one of all.slice(Math.max(0, from), to + 1)) one.checked = tick.checked;
    }
    last = tick;
    tell();
  });
  document.addEventListener('headrace:shown', tell);
  tell();
}

/** The slider through time: the page as it was after the event that it stands at. */
function sliding() {
  let running = null;
  document.addEventListener('input', async (event) => {
    const slider = event.target.closest('[data-slider] input[type="range"]');
    if (!slider) return;
    const seqs = slider.dataset.seqs.split(' ');
    const index = Number(slider.value) - 1;
    const address = new URL(location.href);
    if (index >= seqs.length - 1) address.searchParams.delete('at');
    else address.searchParams.set('at', seqs[index]);
    history.replaceState(null, '', address);
    hold(index < seqs.length - 1);
    running?.abort();
    running = new AbortController();
    await showPage(address.href, running.signal);
  });
}

/** Addresses without what was left empty. */
function tidying() {
  document.addEventListener('submit', ({ target }) => {
    if (target.method !== 'get') return;
    for (const field of target.elements) if (field.name && !field.value) field.disabled = true;
    setTimeout(() => { for (const field of target.elements) field.disabled = false; });
  });
}

function choosingTheme() {
  const button = document.querySelector('[data-theme-switch]');
  const root = document.documentElement;
  const tell = () => { if (button) button.textContent = `Theme: ${root.dataset.theme ?? 'system'}`; };
  button?.addEventListener('click', () => {
    const next = { undefined: 'dark', dark: 'light', light: undefined }[root.dataset.theme];
    if (next) root.dataset.theme = next; else delete root.dataset.theme;
    try {
      if (next) localStorage.setItem('headrace-theme', next); else localStorage.removeItem('headrace-theme');
    } catch { /* for this page, then */ }
    tell();
  });
  tell();
}

enhance(document);
// On a phone the menu is a strip: the section one is in is to be seen.
if (innerWidth <= 900) document.querySelector('#menu [aria-current]')?.scrollIntoView({ block: 'nearest', inline: 'center' });
start(enhance);
hold(new URL(location.href).searchParams.has('at'));
keepCounting();
copying();
selecting();
sliding();
tidying();
choosingTheme();
listen({ palette: open, help: () => help(KEYS) });
document.querySelector('[data-help]')?.addEventListener('click', () => help(KEYS));
// A click beside an opened little window closes it.
document.addEventListener('click', (event) => {
  for (const one of document.querySelectorAll('details.confirm[open]')) if (!one.contains(event.target)) one.open = false;
});
