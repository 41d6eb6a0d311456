// Package notificaties is the Notificaties API of the Dutch municipalities (VNG, version 1.0) as a second
// front door to package fanout. A kanaal is a topic, an abonnement a subscription, and a notificatie or
// CloudEvent an event.
//
// It promises what clients of Open Notificaties can see: paths, forms, codes and the order of checks. Where
// that is a fault, the right behaviour is the default; ADR 0052 lists each such difference. What is made
// here is stored as everything else that is fanned out, and operators see and manage it there.
//
// It does not promise an order of deliveries, nor that a subscriber gets a message only once.
//
// Whoever serves it mounts a [Server]. Callers prove themselves by a JWT that is signed with the secret
// of their client id (RFC 7519, HS256).
package notificaties
