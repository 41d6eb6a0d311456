// Package addressguard keeps connections away from addresses that foreign people must not reach
// through us: those of this machine, of private networks and of the cloud it runs in.
//
// It promises that a name is looked up once for each connection; that one forbidden address among
// the answers refuses the name; and that the connection leads to an address that was checked. So a
// name that changes its answer gains nothing.
//
// It does not check where a proxy leads: a proxy looks names up by itself.
package addressguard

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"strings"

	"github.com/holdfast-mq/holdfast/internal/shown"
)

// Guard decides which addresses may be reached. The zero value allows those that are public. It may be
// used concurrently, and must not be changed while in use.
type Guard struct {
	Allow  []netip.Prefix                                               // these too
	Only   bool                                                         // nothing but Allow
	Lookup func(ctx context.Context, host string) ([]netip.Addr, error) // nil: the system's resolver
}

// Public is the word for all public addresses in a list.
const Public = "public"

// New returns the guard for a list of what may be reached: networks such as 10.0.0.0/8, addresses, and
// the word "public". It returns nil for an empty list, which restricts nothing.
func New(list []string) (*Guard, error) {
	if len(list) == 0 {
		return nil, nil //nolint:nilnil // no guard is needed
	}
	g := &Guard{Only: true}
	for _, text := range list {
		if text == Public {
			g.Only = false
			continue
		}
		p, err := network(text)
		if err != nil {
			return nil, err
		}
		g.Allow = append(g.Allow, p)
	}
	return g, nil
}

// ForbiddenError is the error for a host that must not be reached. It does not tell the addresses of a
// name: who chose the name may not know the network.
type ForbiddenError struct{ Host, Problem string }

func (f *ForbiddenError) Error() string { return fmt.Sprintf("host %q %s", f.Host, f.Problem) }

// Check returns a *ForbiddenError if the host must not be reached as far as that is known without asking
// a resolver: if it is an address, or a number that some systems take for one.
func (g *Guard) Check(host string) error {
	_, _, err := g.literal(host)
	return err
}

// literal returns the address that a host is, unless it is a name.
func (g *Guard) literal(host string) (a netip.Addr, is bool, err error) {
	bare := strings.TrimSuffix(host, ".")
	if a, err = netip.ParseAddr(bare); err == nil {
		if c := g.forbids(a); c != "" {
			return a, true, &ForbiddenError{host, "is " + string(c) + ", which is not allowed"}
		}
		return a, true, nil
	}
	if endsInNumber(bare) {
		return a, false, &ForbiddenError{host, "is no name and no address in its usual form"}
	}
	return a, false, nil
}

// endsInNumber reports whether some systems take a host for an IPv4 address (WHATWG URL, "ends in a
// number"): 127.1, 2130706433 or 0x7f.1.
func endsInNumber(host string) bool {
	last := strings.ToLower(host[strings.LastIndexByte(host, '.')+1:])
	if digits, hex := strings.CutPrefix(last, "0x"); hex {
		return strings.Trim(digits, "0123456789abcdef") == ""
	}
	return last != "" && strings.Trim(last, "0123456789") == ""
}

// forbids returns the class of an address that must not be reached, or nothing.
func (g *Guard) forbids(a netip.Addr) class {
	a = plain(a)
	for _, p := range g.Allow {
		if p.Contains(a) {
			return ""
		}
	}
	if g.Only {
		return "an address outside of the list"
	}
	return classOf(a)
}

// Vet looks a host up and returns its addresses, or a *ForbiddenError if one of them is forbidden.
func (g *Guard) Vet(ctx context.Context, host string) ([]netip.Addr, error) {
	a, is, err := g.literal(host)
	if err != nil {
		return nil, err
	}
	if is {
		return []netip.Addr{a}, nil
	}
	lookup := g.Lookup
	if lookup == nil {
		lookup = func(ctx context.Context, host string) ([]netip.Addr, error) {
			return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
		}
	}
	all, err := lookup(ctx, host)
	if err != nil {
		return nil, fmt.Errorf("look up %s: %w", host, err)
	}
	for _, a := range all {
		if c := g.forbids(a); c != "" {
			return nil, &ForbiddenError{host, "leads to " + string(c) + ", which is not allowed"}
		}
	}
	if len(all) == 0 {
		return nil, &net.DNSError{Err: "no address", Name: host, IsNotFound: true}
	}
	return all, nil
}

// Dialer returns what connects with the dialer to what the guard allows. A nil guard allows
// everything.
func (g *Guard) Dialer(d *net.Dialer) func(ctx context.Context, network, address string) (net.Conn, error) {
	if g == nil {
		return d.DialContext
	}
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		return g.Dial(ctx, d, network, address)
	}
}

// Dial connects to a host and port with the dialer. The dialer's time-out limits the lookup too.
func (g *Guard) Dial(ctx context.Context, d *net.Dialer, network, address string) (net.Conn, error) {
	if d.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, d.Timeout)
		defer cancel()
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	all, err := g.Vet(ctx, host)
	if err != nil {
		return nil, err
	}
	to := make([]string, min(len(all), mostDialed))
	for i := range to {
		to[i] = net.JoinHostPort(all[i].String(), port)
	}
	return race(ctx, d, network, to)
}

// network reads a network, or an address as one.
func network(text string) (netip.Prefix, error) {
	if a, err := netip.ParseAddr(text); err == nil {
		a = a.WithZone("").Unmap()
		return netip.PrefixFrom(a, a.BitLen()), nil
	}
	p, err := netip.ParsePrefix(text)
	if err != nil || p.Addr().Is4In6() {
		return p, fmt.Errorf("%q is not %s, nor a network such as 10.0.0.0/8, nor an address", shown.Clip(text, 80), Public)
	}
	return p.Masked(), nil
}
