package addressguard_test

import (
	"context"
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/holdfast-mq/holdfast/internal/addressguard"
)

// guard answers each lookup with the next of these answers, and the last one from then on.
func guard(allow []string, answers ...string) *addressguard.Guard {
	g, err := addressguard.New(append(allow, addressguard.Public))
	if err != nil {
		panic(err)
	}
	var asked atomic.Int64
	g.Lookup = func(_ context.Context, host string) (all []netip.Addr, err error) {
		n := min(int(asked.Add(1)), len(answers))
		if n == 0 {
			return nil, &net.DNSError{Name: host, IsNotFound: true}
		}
		for text := range strings.FieldsSeq(answers[n-1]) {
			all = append(all, netip.MustParseAddr(text))
		}
		return all, nil
	}
	return g
}

func forbidden(err error) bool {
	_, ok := errors.AsType[*addressguard.ForbiddenError](err)
	return ok
}

// The classes of addresses that are not public, at both ends of each, in each spelling.
func TestAddressesThatAreNotPublicAreForbidden(t *testing.T) {
	t.Parallel()
	for text := range strings.FieldsSeq(`
		0.0.0.0 0.255.255.255 10.0.0.0 10.255.255.255 100.64.0.0 100.127.255.255 127.0.0.1 127.255.255.254 169.254.169.254 169.254.0.0
		172.16.0.0 172.31.255.255 192.0.0.1 192.0.0.192 192.0.2.1 192.88.99.1 192.168.0.0 192.168.255.255 198.18.0.0 198.19.255.255
		198.51.100.7 203.0.113.9 224.0.0.1 239.255.255.255 240.0.0.1 255.255.255.255 168.63.129.16
		:: ::1 ::127.0.0.1 ::7f00:1 ::ffff:127.0.0.1 ::ffff:a9fe:a9fe ::ffff:0:127.0.0.1 64:ff9b::a9fe:a9fe 64:ff9b::10.0.0.1 64:ff9b:1::1
		100::1 2001::1 2001:0:4136:e378:8000:63bf:3fff:fdd2 2001:1ff:ffff::1 2001:db8::1 2002:a9fe:a9fe:: 2002::1 3fff::1 3fff:fff::1 4000::1 5f00::1
		fc00::1 fd00:ec2::254 fdff::1 fe80::1 fe80::1%eth0 febf::1 fec0::1 ff02::1 1fff::1`) {
		if err := guard(nil).Check(text); !forbidden(err) {
			t.Errorf("%s: got %v", text, err)
		}
		if _, err := guard(nil, text).Vet(t.Context(), "name.test"); !forbidden(err) || strings.Contains(err.Error(), text) {
			t.Errorf("a name for %s: got %v", text, err)
		}
	}
	for text := range strings.FieldsSeq(`
		1.0.0.0 9.255.255.255 11.0.0.0 100.63.255.255 100.128.0.0 126.255.255.255 128.0.0.0 169.253.255.255 169.255.0.0 172.15.255.255 172.32.0.0
		191.255.255.255 192.0.1.0 192.0.3.0 192.167.255.255 192.169.0.0 198.17.255.255 198.20.0.0 223.255.255.255 8.8.8.8 168.63.129.15
		2000::1 2001:200::1 2001:4860:4860::8888 2003::1 3ffe:ffff::1 ::ffff:8.8.8.8 64:ff9b::8.8.8.8`) {
		if err := guard(nil).Check(text); err != nil {
			t.Errorf("%s: got %v", text, err)
		}
	}
}

// What some systems take for an address is none of its usual forms, and no name either.
func TestOddNumeralsAreForbidden(t *testing.T) {
	t.Parallel()
	for host := range strings.FieldsSeq(`127.1 2130706433 0x7f000001 0x7f.0.0.1 0177.0.0.1 017700000001 127.0.0.1. 127.0.0x1 1.2.3.4.5 0X7F.1 0x 010.0.0.1 ::1.`) {
		if err := guard([]string{"8.0.0.0/8"}).Check(host); !forbidden(err) {
			t.Errorf("%s: got %v", host, err)
		}
	}
	for host := range strings.FieldsSeq(`example.com example.com. 1.example.com 0xface.example 1e100.net xn--e1afmkfd.xn--p1ai a1`) {
		if err := guard(nil).Check(host); err != nil {
			t.Errorf("%s: got %v", host, err)
		}
	}
}

// One forbidden address refuses a name, wherever it stands.
func TestANameWithMixedAnswersIsRefused(t *testing.T) {
	t.Parallel()
	for _, answer := range []string{"8.8.8.8 10.0.0.1", "10.0.0.1 8.8.8.8", "8.8.8.8 1.1.1.1 ::1", "::ffff:127.0.0.1 2001:4860::1"} {
		if _, err := guard(nil, answer).Vet(t.Context(), "name.test"); !forbidden(err) {
			t.Errorf("%s: got %v", answer, err)
		}
	}
	if all, err := guard(nil, "8.8.8.8 2001:4860::1").Vet(t.Context(), "name.test"); err != nil || len(all) != 2 {
		t.Errorf("got %v, %v", all, err)
	}
	if _, err := guard(nil, "").Vet(t.Context(), "name.test"); err == nil || forbidden(err) {
		t.Errorf("without an address: got %v", err)
	}
}

func TestNetworksAreAllowed(t *testing.T) {
	t.Parallel()
	g := guard([]string{"10.1.0.0/16", "192.168.7.7", "fd00::/8"})
	for host, allowed := range map[string]bool{
		"10.1.2.3": true, "::ffff:10.1.2.3": true, "64:ff9b::10.1.2.3": true, "192.168.7.7": true, "fd12::1": true, "fd12::1%eth0": true,
		"10.2.0.0": false, "192.168.7.8": false, "fc00::1": false, "::10.1.2.3": false, "2002:a01:203::": false,
	} {
		if err := g.Check(host); forbidden(err) == allowed {
			t.Errorf("%s: got %v", host, err)
		}
	}
	for _, text := range []string{"", "10.0.0.0/33", "localhost", "::ffff:10.0.0.0/104"} {
		if g, err := addressguard.New([]string{"public", text}); err == nil {
			t.Errorf("%q was read as %v", text, g.Allow)
		}
	}
	if g, err := addressguard.New(nil); g != nil || err != nil {
		t.Errorf("an empty list: got %v, %v", g, err)
	}
}

// Without the word "public" a list is all that may be reached.
func TestAListMayNameAllOfIt(t *testing.T) {
	t.Parallel()
	g, err := addressguard.New([]string{"10.0.0.0/8", "8.8.8.8"})
	if err != nil {
		t.Fatal(err)
	}
	for host, allowed := range map[string]bool{"10.9.9.9": true, "8.8.8.8": true, "8.8.4.4": false, "127.0.0.1": false, "2001:4860::1": false} {
		if err := g.Check(host); forbidden(err) == allowed {
			t.Errorf("%s: got %v", host, err)
		}
	}
}

// Whatever spells an IPv4 address has the verdict of that address, or is forbidden.
func TestNoSpellingOfAnAddressOpensIt(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var v4 [4]byte
		binary.BigEndian.PutUint32(v4[:], rapid.Uint32().Draw(t, "address"))
		g := guard(nil)
		refused := forbidden(g.Check(netip.AddrFrom4(v4).String()))
		for name, c := range map[string]struct {
			prefix string
			at     int
			same   bool
		}{
			"mapped": {"::ffff:0:0", 12, true}, "NAT64": {"64:ff9b::", 12, true}, "compatible": {"::", 12, false}, "translated": {"::ffff:0:0:0", 12, false},
			"6to4": {"2002::", 2, false}, "Teredo": {"2001::", 4, false}, "local NAT64": {"64:ff9b:1::", 12, false},
		} {
			b := netip.MustParseAddr(c.prefix).As16()
			copy(b[c.at:], v4[:])
			if got := forbidden(g.Check(netip.AddrFrom16(b).String())); got != (refused || !c.same) {
				t.Errorf("%s %s: forbidden is %t, of the address itself %t", name, netip.AddrFrom16(b), got, refused)
			}
		}
	})
}

// Nothing outside of 2000::/3 is public, and an allowed network opens nothing else.
func TestWhatIsNotKnownToBePublicIsForbidden(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		a := netip.AddrFrom16([16]byte(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "address")))
		if netip.MustParsePrefix("2000::/3").Contains(a) || a.Is4In6() || netip.MustParsePrefix("64:ff9b::/96").Contains(a) {
			return
		}
		if !forbidden(guard([]string{"10.0.0.0/8"}).Check(a.String())) {
			t.Errorf("%s is allowed", a)
		}
	})
}

// A name that has another answer at the next lookup leads to what was checked: there is no next
// lookup.
func TestOnlyCheckedAddressesAreDialed(t *testing.T) {
	t.Parallel()
	open, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { open.Close() })
	_, port, _ := net.SplitHostPort(open.Addr().String())
	g := guard([]string{"127.0.0.1"}, "127.0.0.1", "127.0.0.2")
	conn, err := g.Dial(t.Context(), &net.Dialer{}, "tcp", net.JoinHostPort("name.test", port))
	if err != nil {
		t.Fatal(err)
	}
	conn.Close()
	if _, err := g.Dial(t.Context(), &net.Dialer{}, "tcp", net.JoinHostPort("name.test", port)); !forbidden(err) {
		t.Errorf("the second answer: got %v", err)
	}
}

// The address that answers is used, also behind one that refuses or is silent.
func TestTheNextAddressIsTried(t *testing.T) {
	t.Parallel()
	open, err := net.Listen("tcp", "127.0.0.3:0")
	if err != nil {
		t.Skip("this system has no second loopback address")
	}
	t.Cleanup(func() { open.Close() })
	_, port, _ := net.SplitHostPort(open.Addr().String())
	began := time.Now()
	g := guard([]string{"127.0.0.0/8"}, "127.0.0.2 127.0.0.3")
	conn, err := g.Dial(t.Context(), &net.Dialer{Timeout: time.Minute}, "tcp", net.JoinHostPort("name.test", port))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if host, _, _ := net.SplitHostPort(conn.RemoteAddr().String()); host != "127.0.0.3" || time.Since(began) > 30*time.Second {
		t.Errorf("connected to %s after %s", host, time.Since(began))
	}
	if _, err := guard([]string{"127.0.0.2"}, "127.0.0.2 127.0.0.2").Dial(t.Context(), &net.Dialer{}, "tcp", net.JoinHostPort("name.test", port)); err == nil || forbidden(err) {
		t.Errorf("nothing listens, and got %v", err)
	}
}

// The dialer's time-out covers a resolver that is silent.
func TestALookupEndsInTime(t *testing.T) {
	t.Parallel()
	g := &addressguard.Guard{Lookup: func(ctx context.Context, _ string) ([]netip.Addr, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}}
	if _, err := g.Dial(t.Context(), &net.Dialer{Timeout: time.Millisecond}, "tcp", "name.test:80"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
}
