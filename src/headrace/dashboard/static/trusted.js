// The one place where text becomes markup or the address of a script: pages are under Trusted Types.
const same = (text) => text;
const policy = globalThis.trustedTypes?.createPolicy('headrace', { createHTML: same, createScriptURL: own })
  ?? { createHTML: same, createScriptURL: own };

function own(address) {
  if (new URL(address, location.href).origin !== location.origin) throw new TypeError(`not ours: ${address}`);
  return address;
}

/** What the server has rendered, as a document of its own: nothing in it is run or loaded. */
export const parsed = (html) => new DOMParser().parseFromString(policy.createHTML(html), 'text/html');

export const scriptAddress = (address) => policy.createScriptURL(address);
