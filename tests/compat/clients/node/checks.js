// What the programs in Node share; as ../checks.py, which says how they are run.
"use strict";
const list = [];

/** A check: its name, and a function of the program's session that gives a value. */
function check(name, run) {
  list.push([name, run]);
}

/** A value as JSON can have it, with the types that clients see. */
function plain(value) {
  if (value === undefined) return "undefined";
  if (value === null || ["boolean", "number", "string"].includes(typeof value)) return value;
  if (Buffer.isBuffer(value)) return "bytes " + value.toString("hex");
  if (value instanceof Date) return "Date " + value.toISOString();
  if (Array.isArray(value)) return value.map(plain);
  const named = Object.entries(value).filter(([, v]) => typeof v !== "function");
  return Object.fromEntries(named.map(([k, v]) => [k, plain(v)]));
}

/** Runs all of them, each by what `within` does around it. */
async function runAll(within) {
  for (const [name, run] of list) {
    let outcome;
    try {
      outcome = { value: plain(await within(run)) };
    } catch (error) {
      const code = error.code ?? error.driverError?.code ?? null;
      outcome = { error: error.constructor.name, sqlstate: code, message: String(error.message) };
    }
    console.log(JSON.stringify({ name, ...outcome }));
  }
}

async function main(create, session) {
  const [url, phase] = process.argv.slice(2);
  await (phase === "create" ? create(url) : session(url));
}

module.exports = { check, plain, runAll, main };
