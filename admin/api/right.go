package api

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/holdfast-mq/holdfast"
)

// Right is one thing that a caller may do. Each route needs one.
type Right string

// The rights. None includes another.
const (
	AnyToken    Right = "any"          // ask who one is; every token has it, and no token names it
	Read        Right = "read"         // look at everything but the audit
	Send        Right = "send"         // hand in messages and notifications
	Operate     Right = "operate"      // retry, discard, reschedule, pause, resume, mark done
	AuditRead   Right = "audit-read"   // look at the audit
	AuditExport Right = "audit-export" // take the audit away; goes with AuditRead
	AuditKeep   Right = "audit-hold"   // say what stays in the audit and what is erased; goes with AuditRead
	Admin       Right = "admin"        // tokens, sites, backups, channels, lists
	Portal      Right = "portal"       // what a subscriber may do about its own subscriptions; goes with no right of an operator
	PortalPause Right = "portal-pause" // pause and resume them; goes with Portal
)

// rights lists the rights of operators, in the order in which a set is written.
func rights() []Right { return []Right{Read, Send, Operate, AuditRead, AuditExport, AuditKeep, Admin} }

// all lists what a token may name, in that order.
func all() []Right { return append(rights(), Portal, PortalPause) }

// Known reports whether a route can need the right.
func (r Right) Known() bool { return r == AnyToken || slices.Contains(all(), r) }

// Role is the name of a set of rights.
type Role string

// The roles.
const (
	RoleRead    Role = "read"    // look
	RoleOperate Role = "operate" // look, send, retry, discard, mark done
	RoleAuditor Role = "auditor" // the audit, and nothing else
	RoleAdmin   Role = "admin"   // every right
)

// Rights returns the set that the role names; nil: there is no such role.
func (r Role) Rights() []Right {
	switch r {
	case RoleRead:
		return []Right{Read}
	case RoleOperate:
		return []Right{Read, Send, Operate}
	case RoleAuditor:
		return []Right{AuditRead, AuditExport}
	case RoleAdmin:
		return rights()
	}
	return nil
}

// Scope narrows rights to some objects. An empty list narrows nothing. Names are exact.
type Scope struct {
	Sites        []string `json:"sites,omitempty" nullable:"false" doc:"Only at these sites, of which this node is one. Absent: at all."`
	Destinations []string `json:"destinations,omitempty" nullable:"false" doc:"Only what goes to these destinations. Absent: to all."`
	Topics       []string `json:"topics,omitempty" nullable:"false" doc:"Only what is about these topics. Absent: about all."`
}

// Object is what a scope is asked about. An empty field: it has none of that kind.
type Object struct{ Site, Destination, Topic string }

// Has reports whether an object is in the scope. What the scope narrows, the object must have: a
// number about all sites is in no scope that names sites.
func (s Scope) Has(o Object) bool {
	for _, d := range []struct {
		only []string
		name string
	}{{s.Sites, o.Site}, {s.Destinations, o.Destination}, {s.Topics, o.Topic}} {
		if len(d.only) > 0 && !slices.Contains(d.only, d.name) {
			return false
		}
	}
	return true
}

// AtSite reports whether something that goes from a site to a destination can be in the scope.
func (s Scope) AtSite(site string) bool {
	s.Destinations = nil
	return s.Has(Object{Site: site})
}

// Whole reports whether the scope narrows nothing.
func (s Scope) Whole() bool { return len(s.Sites)+len(s.Destinations)+len(s.Topics) == 0 }

// Grant is what a caller may do, and to what. The zero Grant allows nothing.
type Grant struct {
	Rights []Right `json:"rights" nullable:"false" doc:"What it may do: read, send, operate, audit-read, audit-export, audit-hold, admin; or portal and portal-pause, about its own subscriptions."`
	Scope
}

// Everything returns the grant of the role admin.
func Everything() Grant { return Grant{Rights: rights()} }

// Can reports whether the grant has the right.
func (g *Grant) Can(r Right) bool { return r == AnyToken || slices.Contains(g.Rights, r) }

// Role returns the role that names the grant's rights, or nothing.
func (g *Grant) Role() Role {
	for _, role := range []Role{RoleRead, RoleOperate, RoleAuditor, RoleAdmin} {
		if slices.Equal(g.Rights, role.Rights()) {
			return role
		}
	}
	return ""
}

// Limits of a scope.
const (
	mostNames = 100 // of a kind
	mostName  = 256 // bytes
)

// NewGrant orders rights and names, and reports everything that is wrong with them.
func NewGrant(set []Right, scope Scope) (g Grant, faults []Fault) {
	for i, r := range set {
		if !slices.Contains(all(), r) {
			faults = append(faults, Fault{Field: fmt.Sprintf("rights[%d]", i), Value: Clip(string(r)), Problem: "must be read, send, operate, audit-read, audit-export, audit-hold, admin, portal or portal-pause"})
		}
	}
	for _, r := range all() {
		if slices.Contains(set, r) {
			g.Rights = append(g.Rights, r)
		}
	}
	for _, d := range []struct {
		field string
		from  []string
		to    *[]string
	}{{"sites", scope.Sites, &g.Sites}, {"destinations", scope.Destinations, &g.Destinations}, {"topics", scope.Topics, &g.Topics}} {
		if len(d.from) > mostNames {
			faults = append(faults, Fault{Field: d.field, Value: fmt.Sprintf("%d names", len(d.from)), Problem: fmt.Sprintf("at most %d fit", mostNames)})
			continue
		}
		for i, name := range d.from {
			if name == "" || len(name) > mostName || !utf8.ValidString(name) || strings.ContainsFunc(name, unicode.IsControl) {
				faults = append(faults, Fault{Field: fmt.Sprintf("%s[%d]", d.field, i), Value: Clip(strings.ToValidUTF8(name, "�")), Problem: fmt.Sprintf("must be a name on one line, of 1 to %d bytes", mostName)})
			}
		}
		*d.to = slices.Compact(slices.Sorted(slices.Values(d.from)))
	}
	switch {
	case len(faults) > 0:
	case len(g.Rights) == 0:
		faults = append(faults, Fault{Field: "rights", Problem: "are missing: name a role or at least one right"})
	case (g.Can(AuditExport) || g.Can(AuditKeep)) && !g.Can(AuditRead):
		faults = append(faults, Fault{Field: "rights", Value: string(g.Rights[len(g.Rights)-1]), Problem: "needs audit-read too: what may be taken away, kept or erased may be looked at"})
	case g.Can(Admin) && (g.Role() != RoleAdmin || !g.Whole()):
		faults = append(faults, Fault{Field: "rights", Value: string(Admin), Problem: "cannot be narrowed, since who makes tokens can make one with every right: give the role admin, without a scope"})
	default:
		faults = g.checkPortal()
	}
	return g, faults
}

// String returns the grant as stores keep it: a role, or a JSON object.
func (g *Grant) String() string {
	if role := g.Role(); role != "" && g.Whole() {
		return string(role)
	}
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(g); err != nil {
		return "" // cannot be: there are only texts in it
	}
	return strings.TrimSuffix(text.String(), "\n")
}

// ParseGrant reads what String wrote. A text with anything unknown in it gives no rights: a newer
// program may have narrowed it by that.
func ParseGrant(text string) (Grant, error) {
	if set := Role(text).Rights(); set != nil {
		return Grant{Rights: set}, nil
	}
	var g Grant
	dec := json.NewDecoder(strings.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&g); err != nil {
		return Grant{}, fmt.Errorf("%w: rights %q", holdfast.ErrInvalid, Clip(text))
	}
	g, faults := NewGrant(g.Rights, g.Scope)
	if len(faults) > 0 || g.String() != text {
		return Grant{}, fmt.Errorf("%w: rights %q", holdfast.ErrInvalid, Clip(text))
	}
	return g, nil
}
