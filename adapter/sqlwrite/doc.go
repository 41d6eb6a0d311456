// Package sqlwrite delivers a message by one statement in a foreign database:
// SQLite, PostgreSQL, MySQL and MariaDB, or SQL Server. The message's endpoint
// names a statement of the configuration, whose named parameters are taken
// from the payload, a JSON object, and from the message itself. Only where the
// destination allows it does a payload bring SQL of its own.
//
// It promises that values reach the database as values and never as SQL, that
// each message is a transaction of its own, that an outcome is classified by
// type and code only, and that no secret is in an error. A message may be
// written twice, when the answer to a commit is lost: a unique key on the
// message id, :_id, makes that harmless.
//
// # Parameters
//
// :name is a member of the payload, :order.id a member of a member. Each has a
// type: PostgreSQL says itself what its places are, for others Config.Types
// does. A value arrives as it was given, or is refused before anything is
// written; null is NULL. A member that is missing is a permanent failure; names
// that begin with an underscore are the message's own, and text:
//
//	:_id  :_source  :_destination  :_endpoint  :_kind  :_correlation_id  :_ordering_key  :_payload
//
// Of these, those that a message does not have are NULL.
//
// # Outcomes
//
//	violated constraint, bad value, no right,        permanent
//	what a trigger or procedure raises, known or not,
//	SQL of a payload that is wrong
//	lock, deadlock, serialization, time-out,         transient
//	disk full
//	no connection, server starts or ends,            unreachable
//	too many connections, any trouble that passes
//	before the first statement
//	refused credentials, no such database, TLS,      lane fault
//	read-only server, right to connect, a statement of
//	the configuration that fails without any value:
//	no such table or column, wrong SQL
//	COMMIT whose answer was lost                     transient, maybe delivered
//
// A statement is prepared before its values are sent; so it is known whose
// fault a failure is. What is said inside a statement about login or server is
// theirs only if the same connection says it without the message, too; such a
// connection is closed, with all that are idle.
//
// # How it was tried
//
// Against SQLite files and real servers of PostgreSQL and MariaDB. Of SQL
// Server there was none to be had: what is tested there are placeholders, the
// classes of error numbers, with the driver's own type of error, and a peer
// that refuses, is silent, or talks nonsense.
package sqlwrite
