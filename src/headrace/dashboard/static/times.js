// Moments in the viewer's own zone. The server's text is UTC, and stays where somebody hovers.

const two = (number) => String(number).padStart(2, '0');
const day = (at) => `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`;
const clock = (at) => `${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`;

/** As the server's `duration.brief`: the largest unit, and the next where that matters. */
export function brief(seconds) {
  if (seconds < 10 && seconds !== Math.floor(seconds)) return `${seconds.toFixed(1)}s`;
  if (seconds < 60) return `${Math.floor(seconds)}s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)}m`;
  if (seconds < 86400) {
    const minutes = Math.floor((seconds % 3600) / 60);
    return `${Math.floor(seconds / 3600)}h${minutes ? `${minutes}m` : ''}`;
  }
  return `${Math.floor(seconds / 86400)}d`;
}

function told(at, style, now) {
  const seconds = (now - at) / 1000;
  switch (style) {
    case 'age': return brief(Math.max(0, Math.floor(seconds)));
    case 'ago':
      if (seconds < 0) return `in ${brief(Math.ceil(-seconds))}`;
      return seconds < 1 ? 'just now' : `${brief(Math.floor(seconds))} ago`;
    case 'clock': return clock(at);
    case 'minute': return `${two(at.getHours())}:${two(at.getMinutes())}`;
    case 'day': return at.toLocaleDateString(undefined, { day: 'numeric', month: 'short' });
    case 'exact': return `${day(at)} ${clock(at)}.${String(at.getMilliseconds()).padStart(3, '0')}`;
    default: return `${day(at)} ${clock(at)}`;
  }
}

/** In a page, or in what is about to become a part of it. */
export function localise(root, now = Date.now()) {
  for (const element of root.querySelectorAll('time[datetime]')) {
    const text = told(new Date(element.dateTime), element.dataset.style, now);
    if (element.textContent !== text) element.textContent = text;
  }
  for (const label of root.querySelectorAll('text[data-at]')) {
    const text = told(new Date(label.dataset.at), label.dataset.style, now);
    if (label.textContent !== text) label.textContent = text;
  }
}

/** Ages go on counting while somebody looks. */
export function keepCounting() {
  setInterval(() => {
    if (document.hidden) return;
    const now = Date.now();
    for (const element of document.querySelectorAll('time[data-style="age"], time[data-style="ago"]')) {
      const text = told(new Date(element.dateTime), element.dataset.style, now);
      if (element.textContent !== text) element.textContent = text;
    }
  }, 1000);
}
