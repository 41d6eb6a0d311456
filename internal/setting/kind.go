package setting

import "go.yaml.in/yaml/v3"

// Case is a key that makes an I a *S, and whose mapping has the keys of S. It has a meaning if I is a *S.
func Case[I, S any](name string, keys Section[S]) Entry[I] {
	of := func(i *I) *S { return any(*i).(*S) }
	return Entry[I]{
		Name: name,
		Read: func(l *Loader, i *I) Decode {
			return func(path string, n *yaml.Node) {
				s := new(S)
				keys.Reset(s)
				*i = any(s).(I)
				l.Object(path, n, keys.Decoders(l, s))
			}
		},
		Show:  func(p Printer, i *I) *yaml.Node { return keys.Node(p, of(i)) },
		Check: func(r *Report, path string, i *I) { keys.Check(r, path, of(i)) },
		Meets: func(_ any, i *I) bool {
			_, ok := any(*i).(*S)
			return ok
		},
		Told:   keys.Rows(),
		Schema: keys.Schema(),
	}
}

// Within makes a key of an I a key of an S that contains the I.
func Within[S, I any](at func(s *S) *I, e Entry[I]) Entry[S] {
	return Entry[S]{
		Name:   e.Name,
		Read:   func(l *Loader, s *S) Decode { return e.Read(l, at(s)) },
		Show:   func(p Printer, s *S) *yaml.Node { return e.Show(p, at(s)) },
		Check:  func(r *Report, path string, s *S) { e.Check(r, path, at(s)) },
		Meets:  func(root any, s *S) bool { return e.Meets(root, at(s)) },
		Told:   e.Told,
		Schema: e.Schema,
	}
}
