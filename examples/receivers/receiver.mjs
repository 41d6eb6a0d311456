// Receives webhooks: verifies each, acts once for each id, and confirms by 204. It needs nothing but
// Node.js:
//
//   WEBHOOK_SECRET=whsec_… node receiver.mjs 127.0.0.1:9000
import { createHmac, timingSafeEqual } from "node:crypto";
import { createServer } from "node:http";

const tolerance = 5 * 60; // seconds that the sender's clock may be off
const mostBody = 1 << 20;
const key = Buffer.from(process.env.WEBHOOK_SECRET.replace(/^whsec_/, ""), "base64");
const done = new Set(); // in a real program: a table, written in the transaction of the effect

// Whether one of the signatures is ours. While a secret is replaced there are two.
function verify(id, timestamp, signatures, body) {
  if (!id || !/^\d+$/.test(timestamp) || Math.abs(Date.now() / 1000 - Number(timestamp)) > tolerance) return false;
  const want = Buffer.from("v1," + createHmac("sha256", key).update(`${id}.${timestamp}.`).update(body).digest("base64"));
  return signatures.split(" ").some((one) => {
    const got = Buffer.from(one);
    return got.length === want.length && timingSafeEqual(got, want);
  });
}

const server = createServer(async (request, response) => {
  const chunks = [];
  let size = 0;
  try {
    for await (const chunk of request) {
      if ((size += chunk.length) > mostBody) throw new Error("too long");
      chunks.push(chunk);
    }
  } catch {
    return response.writeHead(400).end();
  }
  const body = Buffer.concat(chunks); // the bytes as they came
  const header = (name) => request.headers[name] ?? "";
  const id = header("webhook-id");
  if (!verify(id, header("webhook-timestamp"), header("webhook-signature"), body)) return response.writeHead(401).end();
  if (!done.has(id)) {
    console.log(id, body.toString()); // the effect; slow work is noted here and done later
    done.add(id);
  }
  response.writeHead(204).end(); // the first time, and each other time
});

const [host, port] = process.argv[2].split(":");
server.listen(Number(port), host, () => console.log(`listening on ${host}:${server.address().port}`));
