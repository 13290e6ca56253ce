// Makes what is on the page like what the server says now, and touches nothing that is the same already: so
// focus, selected text, the scroll position, opened details and what somebody is typing stay as they are.

const OURS = new Set(['open', 'data-current', 'hidden']);  // attributes that belong to the viewer

/** Elements are the same thing if they have the same id or, among siblings, the same data-key.
    (A form's own `id` may be its field of that name.) */
const keyOf = (node) => (node.nodeType === 1 ? node.getAttribute('id') || node.getAttribute('data-key') || null : null);

export function morph(old, fresh) {
  if (old.isEqualNode(fresh)) return;
  attributes(old, fresh);
  if (old.nodeName === 'TEXTAREA') {
    if (old.value === old.defaultValue && old !== document.activeElement) old.value = fresh.defaultValue;
    return;
  }
  children(old, fresh);
}

function attributes(old, fresh) {
  const isField = old.nodeName === 'INPUT' || old.nodeName === 'SELECT' || old.nodeName === 'OPTION';
  if (isField && (old === document.activeElement || isChanged(old))) return;
  for (const { name, value } of fresh.attributes) {
    if (!OURS.has(name) && old.getAttribute(name) !== value) old.setAttribute(name, value);
  }
  for (const { name } of [...old.attributes]) {
    if (!OURS.has(name) && !fresh.hasAttribute(name)) old.removeAttribute(name);
  }
  if (old.nodeName === 'INPUT' && old.type === 'range') old.value = fresh.getAttribute('value');
}

/** Somebody has typed or ticked something. */
function isChanged(field) {
  if (field.type === 'checkbox' || field.type === 'radio') return field.checked !== field.defaultChecked;
  if (field.type === 'range') return false;
  return 'defaultValue' in field && field.value !== field.defaultValue;
}

function children(old, fresh) {
  const keyed = new Map();
  for (const node of old.childNodes) {
    const key = keyOf(node);
    if (key !== null) keyed.set(key, node);
  }
  const wanted = new Set([...fresh.childNodes].map(keyOf).filter((key) => key !== null));
  let at = old.firstChild;
  for (const node of [...fresh.childNodes]) {
    const key = keyOf(node);
    let mine = key === null ? null : keyed.get(key);
    if (mine?.nodeName !== node.nodeName) mine = null;
    if (key === null) {
      // Pass over what is somebody else's place, and over what is gone.
      while (at && keyOf(at) !== null && !wanted.has(keyOf(at))) at = removed(at);
      if (at && keyOf(at) === null && at.nodeType === node.nodeType && at.nodeName === node.nodeName) mine = at;
    }
    if (!mine) {
      const added = document.importNode(node, true);
      if (key !== null && added.nodeType === 1 && keyed.size) added.classList.add('fresh');
      old.insertBefore(added, at);
      continue;
    }
    // Rather let go of what stands in between than move it: an element that is moved loses its focus.
    while (at && at !== mine && !(keyOf(at) !== null && wanted.has(keyOf(at)))) at = removed(at);
    if (mine === at) at = at.nextSibling;
    else move(old, mine, at);
    if (mine.nodeType === 1) morph(mine, node);
    else if (mine.nodeValue !== node.nodeValue) mine.nodeValue = node.nodeValue;
  }
  while (at) at = removed(at);
}

function move(parent, node, before) {
  if (parent.moveBefore) parent.moveBefore(node, before);
  else parent.insertBefore(node, before);
}

function removed(node) {
  const next = node.nextSibling;
  node.remove();
  return next;
}
