// Package filter says which subscriptions an event concerns.
//
// A [Filter] is a condition on one [Event]. An [Index] holds the filters of many subscriptions and
// finds those that an event meets, at a cost that follows what it finds and hardly how many it
// holds. [Explain] says why a filter does or does not meet an event. The index asks the same
// compiled filter before it names a subscription, so that the two cannot disagree.
//
// # Form
//
// A filter has one form in JSON and in YAML. All its members must hold; a filter without members
// meets every event.
//
//	types: [order.*]
//	attributes: {zaaktype: "*", "#actie": create}
//	data: {country: nl}
//	where:
//	  - {field: data.order.total, op: gte, value: 100.50}
//	  - {field: attributes.country, op: in, value: [nl, be]}
//	any:
//	  - where: [{field: subject, op: prefix, value: A-}]
//	  - where: [{field: data.coupon, op: exists}]
//	not: {types: [order.test]}
//
// # Values
//
// A value is a JSON scalar, and equals only a value of its own type. Numbers are compared as they
// are written, whatever their length: no digit is rounded away. Texts are compared byte by byte.
// An attribute is a text; compared with a number it is read as one, and one that is no number then
// counts as absent. The field time is compared with an instant as in RFC 3339.
//
// An absent field meets neq, nin and exists false, and nothing else. Data that is not JSON, or has
// a name twice in one object, has no fields.
package filter
