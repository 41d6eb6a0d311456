// Package sqlwrite delivers a message by one statement in a foreign database: SQLite, PostgreSQL,
// MySQL and MariaDB, or SQL Server. The message's endpoint names a statement of the configuration.
// Its named parameters are taken from the payload, a JSON object, and from the message itself. A
// payload may bring SQL of its own only if the destination allows it.
//
// It promises that values reach the database as values and never as SQL, that each message is a
// transaction of its own, that an outcome is classified only by type and code, and that no secret
// appears in an error. If the answer to a commit is lost, a message may be written twice. A unique
// key on the message id, :_id, makes that harmless.
//
// # Parameters
//
// :name is a member of the payload, :order.id a member of a member. Each has a type: PostgreSQL
// knows the types of its parameters, for others Config.Types gives them. A value arrives unchanged,
// or is refused before anything is written. null becomes NULL. A missing member is a permanent
// failure. Names that begin with an underscore are those of the message itself, and text:
//
//	:_id  :_source  :_destination  :_endpoint  :_kind  :_correlation_id  :_ordering_key  :_payload
//
// Those that a message does not have are NULL.
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
// A statement is prepared before its values are sent, so that it is known whose fault a failure is.
// An error inside a statement about login or server counts as theirs only if the same connection
// gives it without the message too. Such a connection is closed, and so are all idle ones.
//
// # How it was tested
//
// Against SQLite files and real servers of PostgreSQL and MariaDB. No SQL Server was available. For
// it the tests cover placeholders, the classes of error numbers (with the driver's own error type),
// and a peer that refuses, stays silent, or sends nonsense.
package sqlwrite
