// A worker of jobs of type "shout" in Node, without any package: claims, keeps its lease, says how it ended.
//
//   HEADRACE=http://localhost:8300 HEADRACE_TOKEN=hdr_… node worker.mjs
//
// With JOBS=n it ends after so many jobs.
const api = `${process.env.HEADRACE ?? "http://localhost:8300"}/api/v1`;
const token = process.env.HEADRACE_TOKEN ?? "";

async function ask(method, path, body, lease) {
  const headers = { Authorization: `Bearer ${token}`, "Content-Type": "application/json" };
  if (lease) headers["Headrace-Lease"] = lease;
  const answer = await fetch(api + path, { method, headers, body: JSON.stringify(body) });
  const told = answer.status === 204 ? null : await answer.json();
  if (!answer.ok) throw Object.assign(new Error(told.detail), { code: told.code });
  return told;
}

function work(payload) {
  if (typeof payload?.text !== "string") throw new Error("there is no text to shout");
  return payload.text.toUpperCase();
}

async function run(job) {
  const { token: lease, seconds } = job.lease;
  const path = `/jobs/${encodeURIComponent(job.id)}`;
  const beat = () => ask("POST", "/leases/heartbeat", { leases: [{ job_id: job.id, lease }] });
  const keeper = setInterval(() => beat().catch(() => {}), ((seconds ?? 30) * 1000) / 3);
  try {
    const result = await Promise.resolve(job.payload).then(work);
    await ask("POST", `${path}/complete`, { result }, lease);
  } catch (error) {
    if (error.code) return console.error(error.message); // refused: somebody else has the job
    await ask("POST", `${path}/fail`, { message: error.message }, lease);
  } finally {
    clearInterval(keeper);
  }
}

for (let left = Number(process.env.JOBS ?? Infinity); left > 0; ) {
  try {
    const { jobs } = await ask("POST", "/claim", { worker: "node", types: ["shout"], wait_seconds: 20 });
    for (const job of jobs) await run(job).finally(() => left--);
  } catch (error) {
    console.error(error.message);
    await new Promise((resolve) => setTimeout(resolve, 1000)); // the server is away, or full
  }
}
