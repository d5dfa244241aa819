// Which of some Sigstore bundles a key vouches for, by the library that npm itself verifies with.
//
// verify.mjs FILE: the library is that in node_modules beside FILE
// stdin: {"key": PEM, "image": HEX, "bundles": [JSON TEXT, ...]}
// stdout: for each bundle why it is refused, or null: [null, "REASON", ...]
//
// Keys only: no certificate, no timestamp and no transparency log is asked for. The key is tried
// whatever key the bundle names. The library says who signed; what about, its callers have to ask.

import { createPublicKey } from "node:crypto";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const require = createRequire(process.argv[2]);
const { bundleFromJSON } = require("@sigstore/bundle");
const { toSignedEntity, Verifier } = require("@sigstore/verify");

const asked = JSON.parse(readFileSync(0, "utf8"));
const publicKey = createPublicKey(asked.key);
const verifier = new Verifier(
  {
    certificateAuthorities: [],
    timestampAuthorities: [],
    tlogs: [],
    ctlogs: [],
    publicKey: () => ({ publicKey, validFor: () => true }),
  },
  { ctlogThreshold: 0, tlogThreshold: 0, tsaThreshold: 0, timestampThreshold: 0 },
);

function refusal(text) {
  try {
    const bundle = bundleFromJSON(JSON.parse(text));
    verifier.verify(toSignedEntity(bundle));
    const said = JSON.parse(bundle.content.dsseEnvelope.payload.toString("utf8"));
    const about = said.subject.map((each) => each.digest.sha256);
    return about.includes(asked.image) ? null : `signed, but about ${about}`;
  } catch (error) {
    return `${error.code ?? error.name}: ${error.message}`;
  }
}

process.stdout.write(JSON.stringify(asked.bundles.map(refusal)));
