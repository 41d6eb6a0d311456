package setting

import "github.com/holdfast-mq/holdfast/internal/addressguard"

// Addresses is the key that says which addresses something may reach: a list for addressguard.New.
func Addresses[S any](at func(s *S) *[]string, doc, usual string) Entry[S] {
	return List("addresses", at, addressguard.Public, func(r *Report, path, item string) {
		if _, err := addressguard.New([]string{item}); err != nil {
			r.Fault(path, item, Problem{What: "is neither public, nor a network, nor an address", Fix: "write public, a network such as 10.0.0.0/8, or an address"})
		}
	}, doc).Tells("list of `public`, networks and addresses", usual)
}
