// Verifies requests with programs that we did not write. Reads {headers, body, whsec, whpk} from
// its input: v1 is judged by the library of Standard Webhooks, whose folder is the argument, v1a by
// node:crypto. Writes the names of those that agreed.
const crypto = require("node:crypto");
const path = require("node:path");

const { headers, body, whsec, whpk } = JSON.parse(require("node:fs").readFileSync(0, "utf8"));
const text = Buffer.from(body, "base64");
const agreed = [];

if (process.argv[2]) {
  const { Webhook } = require(path.join(process.argv[2], "node_modules", "standardwebhooks"));
  try {
    new Webhook(whsec).verify(text.toString("utf8"), headers);
    agreed.push("standardwebhooks");
  } catch (e) {
    console.error(String(e));
  }
}

const key = crypto.createPublicKey({
  key: { kty: "OKP", crv: "Ed25519", x: Buffer.from(whpk.slice(5), "base64").toString("base64url") },
  format: "jwk",
});
const content = Buffer.concat([Buffer.from(`${headers["webhook-id"]}.${headers["webhook-timestamp"]}.`), text]);
for (const one of headers["webhook-signature"].split(" ")) {
  const [version, signature] = one.split(",");
  if (version === "v1a" && crypto.verify(null, content, key, Buffer.from(signature, "base64"))) agreed.push("node:crypto");
}
console.log(agreed.join(" "));
