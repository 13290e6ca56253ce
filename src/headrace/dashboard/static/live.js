// Keeps a page as the store is. The stream says what was touched; the page asks for itself again, at most once
// a second and never twice at a time, and not at all while nobody sees it.

import { morph } from './morph.js';
import { parsed, scriptAddress } from './trusted.js';

const PAUSE_MS = 1000;
const HERE_MS = 20_000;
const AWAY_MS = 2000;

let prepare = () => {};
let etag = null;
let isStale = false;
let isLooking = false;
let lookedAt = 0;
let timer = null;
let isHeld = false;  // the viewer looks at another moment
let isAway = false;
let toldOf = null;  // the last event that this page looks for
const main = () => document.getElementById('main');

export const hold = (held) => { isHeld = held; };

export function start(enhance) {
  prepare = enhance;
  const { live, worker } = document.body.dataset;
  lookedAt = Date.now();
  if (live) follow(live, worker);
  setInterval(tick, 250);
  document.addEventListener('visibilitychange', () => { if (!document.hidden) stale(); });
  // Back from the browser's memory of pages: everything may have changed.
  addEventListener('pageshow', (event) => { if (event.persisted) stale(); });
}

function follow(address, worker) {
  if (globalThis.SharedWorker && worker) {
    const { port } = new SharedWorker(scriptAddress(worker), { name: 'headrace' });
    port.onmessage = ({ data }) => heard(data);
    port.postMessage({ kind: 'follow', address });
    setInterval(() => port.postMessage({ kind: 'here' }), HERE_MS);
    addEventListener('pagehide', () => port.postMessage({ kind: 'bye' }));
    addEventListener('pageshow', (event) => { if (event.persisted) port.postMessage({ kind: 'follow', address }); });
    return;
  }
  let source = null;  // without shared workers: only while the page is seen
  const toggle = () => {
    if (document.hidden) { source?.close(); source = null; return; }
    if (source) return;
    source = new EventSource(address);
    source.onopen = () => heard({ kind: 'on' });
    source.onerror = () => {
      heard({ kind: 'off' });
      if (source.readyState === EventSource.CLOSED) { source = null; setTimeout(toggle, AWAY_MS); }
    };
    source.addEventListener('missed', () => heard({ kind: 'missed' }));
    source.addEventListener('changed', (event) => heard({ kind: 'changed', topics: JSON.parse(event.data), cursor: event.lastEventId }));
  };
  toggle();
  document.addEventListener('visibilitychange', toggle);
}

let wasOff = false;
function heard(message) {
  switch (message.kind) {
    case 'on': show('on'); if (wasOff) stale(); wasOff = false; break;
    case 'off': wasOff = true; show('off'); break;
    case 'missed': stale(); break;
    case 'changed': if (concerns(message.topics)) { toldOf = message.cursor; stale(); } break;
  }
}

function concerns(topics) {
  return JSON.parse(main().dataset.topics ?? '["*"]').some((topic) => {
    const [kind, ...rest] = topic.split(':');
    const name = rest.join(':');
    if (kind === 'job') return topics.jobs === null || topics.jobs.includes(name);
    if (kind === 'queue') return topics.queues.includes(name);
    if (kind === 'type') return topics.types.includes(name);
    return true;
  });
}

function stale() {
  isStale = true;
  tick();
}

function tick() {
  const every = Number(main().dataset.every) * 1000;
  if (every && Date.now() - lookedAt >= every) isStale = true;
  if (!isStale || isLooking || isHeld || document.hidden || timer) return;
  const pause = (isAway ? AWAY_MS : PAUSE_MS) - (Date.now() - lookedAt);
  if (pause > 0) { timer = setTimeout(() => { timer = null; tick(); }, pause); return; }
  look();
}

async function look() {
  isLooking = true;
  isStale = false;
  lookedAt = Date.now();
  try {
    await showPage(location.href);
  } finally {
    isLooking = false;
    tick();
  }
}

/** Ask for a page's changing part, and put it in place of what is here. False: it could not be had. */
export async function showPage(address, signal) {
  let answer;
  try {
    const headers = { 'Headrace-Fragment': 'main' };
    if (etag) headers['If-None-Match'] = etag;
    if (toldOf) headers['Headrace-Seen'] = toldOf;
    toldOf = null;
    answer = await fetch(address, { headers, signal, cache: 'no-store' });
  } catch (error) {
    if (error.name !== 'AbortError') away(true);
    return false;
  }
  if (answer.status === 304) { away(false); return true; }
  if (answer.redirected && new URL(answer.url).pathname !== new URL(address, location.href).pathname) {
    location.reload();  // signed out meanwhile
    return false;
  }
  if (answer.status === 503) { away(true); return false; }
  const html = await answer.text();
  etag = answer.headers.get('etag');
  const fresh = parsed(html).getElementById('main');
  if (!fresh) return false;
  prepare(fresh);
  document.title = fresh.dataset.title ?? document.title;
  morph(main(), fresh);
  away(false);
  document.dispatchEvent(new Event('headrace:shown'));
  return true;
}

function away(gone) {
  isAway = gone;
  show(gone ? 'off' : 'on');
}

function show(state) {
  const place = document.getElementById('live');
  if (!place) return;
  place.classList.toggle('on', state === 'on');
  place.classList.toggle('off', state === 'off');
  const word = place.querySelector('.word');
  const text = state === 'on' ? 'live' : 'not reached: looking again';
  if (word.textContent !== text) word.textContent = text;
}
