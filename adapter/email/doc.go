// Package email sends notifications to people by mail, through a server that accepts submissions (NO-08).
//
// It promises an outcome of its own for each recipient; no recipient sees another. An outcome is classified by phase and
// code; the code counts before the text beside it. Nothing is sent in clear unless the settings allow it, and
// credentials only if the settings allow that as well. A mail is not cut off between its last dot and the answer while
// an answer may still come. No secret appears in an error, a log line or a report, even if the server repeats it
// (NO-11).
//
// It does not promise that a mail arrives only once: if its answer was lost it may come twice, with the same Message-ID.
package email
