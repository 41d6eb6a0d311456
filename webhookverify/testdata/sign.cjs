// Signs a request with programs that we did not write: v1 with the library of Standard Webhooks,
// whose folder is the argument, v1a with a new key pair of node:crypto. Reads {id, body, whsec} from
// its input, and writes {v1, v1a, whpk, at}.
const crypto = require("node:crypto");
const path = require("node:path");

const { id, body, whsec } = JSON.parse(require("node:fs").readFileSync(0, "utf8"));
const at = Math.floor(Date.now() / 1000);
const { publicKey, privateKey } = crypto.generateKeyPairSync("ed25519");
const out = {
  at: String(at),
  v1a: "v1a," + crypto.sign(null, Buffer.from(`${id}.${at}.${body}`), privateKey).toString("base64"),
  whpk: "whpk_" + Buffer.from(publicKey.export({ format: "jwk" }).x, "base64url").toString("base64"),
};
if (process.argv[2]) {
  const { Webhook } = require(path.join(process.argv[2], "node_modules", "standardwebhooks"));
  out.v1 = new Webhook(whsec).sign(id, new Date(at * 1000), body);
}
console.log(JSON.stringify(out));
