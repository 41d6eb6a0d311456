package addressguard

import "net/netip"

// class says in words what an address that is not public is for; empty: it is public.
type class string

// block is a range of addresses of one class.
type block struct {
	prefix string
	class  class
}

// blocks lists what lies within the ranges of public addresses, or needs a word of its own. Of IPv6
// only 2000::/3 is public: so ::/8 with all its spellings of IPv4 addresses needs no list.
func blocks() []block {
	return []block{
		{"0.0.0.0/8", "an unspecified address"},
		{"10.0.0.0/8", "a private address"},
		{"100.64.0.0/10", "an address that providers share"},
		{"127.0.0.0/8", "a loopback address"},
		{"169.254.0.0/16", "a link-local address"}, // clouds tell machines their credentials here
		{"172.16.0.0/12", "a private address"},
		{"192.0.0.0/24", "a reserved address"},
		{"192.0.2.0/24", "an address for documentation"},
		{"192.88.99.0/24", "a 6to4 address"},
		{"192.168.0.0/16", "a private address"},
		{"198.18.0.0/15", "an address for benchmarks"},
		{"198.51.100.0/24", "an address for documentation"},
		{"203.0.113.0/24", "an address for documentation"},
		{"224.0.0.0/4", "a multicast address"},
		{"240.0.0.0/4", "a reserved address"},         // 255.255.255.255 is among them
		{"168.63.129.16/32", "an address of a cloud"}, // Azure's, for its machines

		{"::/128", "an unspecified address"},
		{"::1/128", "a loopback address"},
		{"2001::/23", "a reserved address"}, // Teredo, among others
		{"2001:db8::/32", "an address for documentation"},
		{"2002::/16", "a 6to4 address"},
		{"3fff::/20", "an address for documentation"},
		{"fc00::/7", "a private address"},
		{"fe80::/10", "a link-local address"},
		{"fec0::/10", "a private address"},
		{"ff00::/8", "a multicast address"},
	}
}

// classOf classifies a plain address.
func classOf(a netip.Addr) class {
	for _, b := range blocks() {
		if netip.MustParsePrefix(b.prefix).Contains(a) {
			return b.class
		}
	}
	if a.Is6() && !netip.MustParsePrefix("2000::/3").Contains(a) {
		return "a reserved address"
	}
	return ""
}

// plain returns the address that a connection to a leads to: without a zone, and the IPv4 address
// inside of a mapped one or one of NAT64 (RFC 6052). The NAT64 prefixes of single networks are not
// known.
func plain(a netip.Addr) netip.Addr {
	a = a.WithZone("").Unmap()
	if !netip.MustParsePrefix("64:ff9b::/96").Contains(a) {
		return a
	}
	b := a.As16()
	return netip.AddrFrom4([4]byte(b[12:]))
}
