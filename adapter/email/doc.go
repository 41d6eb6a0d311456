// Package email brings notifications to people by mail, over a server that
// takes submissions (NO-08).
//
// What it promises: each recipient has an outcome of its own, and none sees
// another; an outcome is classified by phase and code, in which the code counts
// before what is said beside it; nothing goes in clear unless the settings say so, and credentials not even then, unless
// they say that as well; a mail is never cut off between its last dot and the
// answer while there is hope for one; no secret is in an error, a log line or a
// report, also when the server repeats it (NO-11). What it does not: a mail whose
// answer was lost may come twice, with the same Message-ID.
package email
