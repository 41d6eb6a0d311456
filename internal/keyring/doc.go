// Package keyring seals secrets that come by the API, so that the database, its backups, exports and
// copies hold nothing that a thief can use.
//
// A sealed value is text: "hf1.ID.DATA". ID names the key. DATA is AES-256-GCM with a random nonce.
// The place of the value (table, row, column) is authenticated with it: a value that is moved to
// another place does not open. One key may seal up to 2³² values (NIST SP 800-38D); rotate before.
//
// A feature that stores sealed values calls Ring.Seal when it gets a secret, Ring.Open when it uses
// it, shows at most Mark, and is a Holder, so that rotation and the doctor find its values.
package keyring
