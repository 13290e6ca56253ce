// One field to go anywhere: sections, queues, types, workers, schedules, and any job by its id.

const WAIT_MS = 120;
let dialog = null;
let found = [];
let chosen = 0;
let asked = 0;
let shown = null;  // what was asked for when this was found

const made = (name, attributes = {}, ...children) => {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
};

export function open() {
  dialog ??= build();
  dialog.showModal();
  const field = dialog.querySelector('input');
  field.value = '';
  field.focus();
  look('');
}

function build() {
  const field = made('input', { class: 'ask', type: 'text', role: 'combobox', 'aria-expanded': 'true', 'aria-controls': 'found',
    'aria-label': 'Go to a section, queue, type, worker or job', placeholder: 'Go to …', autocomplete: 'off', spellcheck: 'false' });
  const list = made('ul', { class: 'found', id: 'found', role: 'listbox', 'aria-label': 'What was found' });
  const box = made('dialog', { 'aria-label': 'Go to', id: 'palette' }, field, list);
  let timer = null;
  field.addEventListener('input', () => { clearTimeout(timer); timer = setTimeout(() => look(field.value), WAIT_MS); });
  field.addEventListener('keydown', (event) => {
    if (event.key === 'ArrowDown' || event.key === 'ArrowUp') { event.preventDefault(); choose(chosen + (event.key === 'ArrowDown' ? 1 : -1)); }
    if (event.key === 'Enter') { event.preventDefault(); clearTimeout(timer); go(field.value); }
  });
  list.addEventListener('click', (event) => {
    const item = event.target.closest('li');
    if (item) location.href = found[[...list.children].indexOf(item)].href;
  });
  box.addEventListener('click', (event) => { if (event.target === box) box.close(); });
  document.body.append(box);
  return box;
}

/** To what is chosen: not before there is what was asked for. */
async function go(text) {
  if (shown !== text) await look(text);
  if (found[chosen]) location.href = found[chosen].href;
}

async function look(text) {
  const mine = ++asked;
  const address = new URL(document.body.dataset.find, location.href);
  address.searchParams.set('q', text);
  let hits = [];
  try {
    const answer = await fetch(address, { cache: 'no-store' });
    if (answer.ok) hits = await answer.json();
  } catch { /* the field stays; the next letter asks again */ }
  if (mine !== asked) return;
  found = hits;
  shown = text;
  const list = dialog.querySelector('.found');
  list.replaceChildren(...hits.map((hit, index) =>
    made('li', { role: 'option', id: `found-${index}` }, made('bdi', {}, hit.name), made('span', { class: 'kind' }, hit.kind))));
  choose(0);
}

function choose(index) {
  const items = [...dialog.querySelectorAll('li')];
  chosen = Math.min(items.length - 1, Math.max(0, index));
  items.forEach((item, at) => item.setAttribute('aria-selected', String(at === chosen)));
  items[chosen]?.scrollIntoView({ block: 'nearest' });
  dialog.querySelector('input').setAttribute('aria-activedescendant', `found-${chosen}`);
}

/** The keys, in a dialog of their own. */
export function help(keys) {
  const list = made('div', { class: 'keys' }, ...keys.flatMap(([key, does]) => [made('kbd', {}, key), made('span', {}, does)]));
  const box = made('dialog', { 'aria-label': 'Keys', id: 'help' }, made('h2', {}, 'Keys'), list);
  box.addEventListener('close', () => box.remove());
  box.addEventListener('click', () => box.close());
  document.body.append(box);
  box.showModal();
}
