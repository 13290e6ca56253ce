// A shared worker: one stream of changes for all tabs of this browser. HTTP/1.1 allows six connections to a
// server; a stream for each tab would leave none for the seventh.

const SILENT_MS = 180_000;  // hidden tabs say only once a minute that they are there
const AGAIN_MS = 2000;
const streams = new Map();  // by address

class Stream {
  constructor(address) {
    this.address = address;
    this.ports = new Map();  // when each was last heard of
    this.isOn = false;
    this.open();
  }

  open() {
    this.source = new EventSource(this.address);
    this.source.onopen = () => { this.isOn = true; this.say({ kind: 'on' }); };
    this.source.onerror = () => {
      this.isOn = false;
      this.say({ kind: 'off' });
      // An answer that is no stream (a proxy's, while the server starts) ends it for good: begin anew.
      if (this.source.readyState === EventSource.CLOSED) setTimeout(() => { if (this.ports.size) this.open(); }, AGAIN_MS);
    };
    this.source.addEventListener('changed', (event) =>
      this.say({ kind: 'changed', topics: JSON.parse(event.data), cursor: event.lastEventId }));
    this.source.addEventListener('missed', () => this.say({ kind: 'missed' }));
  }

  add(port) {
    this.ports.set(port, Date.now());
    if (this.isOn) port.postMessage({ kind: 'on' });
  }

  remove(port) {
    this.ports.delete(port);
    if (this.ports.size === 0) {
      this.source.close();
      streams.delete(this.address);
    }
  }

  say(message) {
    const now = Date.now();
    for (const [port, seen] of this.ports) {
      if (now - seen > SILENT_MS) this.remove(port);
      else port.postMessage(message);
    }
  }
}

self.onconnect = ({ ports: [port] }) => {
  let mine = null;
  port.onmessage = ({ data }) => {
    if (data.kind === 'follow') {
      mine = streams.get(data.address) ?? new Stream(data.address);
      streams.set(data.address, mine);
      mine.add(port);
    } else if (data.kind === 'here' && mine) {
      if (mine.ports.has(port)) mine.ports.set(port, Date.now());
      else {  // it was taken for gone, and perhaps the stream with it
        mine = streams.get(mine.address) ?? new Stream(mine.address);
        streams.set(mine.address, mine);
        mine.add(port);
      }
      port.postMessage({ kind: 'streams', count: streams.size, tabs: mine.ports.size });
    } else if (data.kind === 'bye') mine?.remove(port);
  };
};
