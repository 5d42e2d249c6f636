// Reads a story from standard input, lets the public client tell it, and prints what came of it.
//
// A story is {baseUrl, basePath, credentials, methods, steps}; a step is {call, url, operation,
// records | record, args}. What comes back of a step is {answer} or {error}, beside the status and
// the headers that were seen.

import { JsonServiceClient } from "@servicestack/client";
import { text } from "node:stream/consumers";

const story = JSON.parse(await text(process.stdin));
const client = new JsonServiceClient(story.baseUrl);
client.basePath = story.basePath;
Object.assign(client, story.credentials);

// What the generator of the client's classes writes for an operation.
const classes = Object.fromEntries(
  Object.entries(story.methods).map(([name, method]) => [
    name,
    class {
      constructor(record) { Object.assign(this, record); }
      getTypeName() { return name; }
      getMethod() { return method; }
      createResponse() { return method === "GET" ? [] : {}; }
    },
  ]),
);

let seen;
client.responseFilter = (response) => { seen = response; };

const told = [];
for (const { call, url, operation, record, records, args } of story.steps) {
  const made = (each) => new classes[operation](each);
  const request = records ? records.map(made) : operation ? made(record) : undefined;
  const given = [url, request, args].filter((part) => part !== undefined);
  seen = undefined;
  let outcome;
  try {
    outcome = { answer: (await client[call](...given)) ?? null };
  } catch (error) {
    outcome = { error: error.responseStatus ?? error.ResponseStatus ?? String(error) };
  }
  const headers = seen ? Object.fromEntries(seen.headers) : {};
  told.push({ ...outcome, status: seen?.status, reason: seen?.statusText, headers });
}
process.stdout.write(JSON.stringify(told), () => process.exit(0));
