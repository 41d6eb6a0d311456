package config

// Access is what a store knows about who may use a node.
type Access struct {
	Admins  int  // tokens and people with the role admin for good
	Sites   int  // enrolled and not revoked
	Waiting bool // messages wait for delivery
}

// AsksForTokens reports whether requests need a token.
func (c *Config) AsksForTokens() bool {
	return c.Tokens == TokensAlways || c.Tokens != TokensNever && c.remote()
}

// NoAdmin reports what is wrong if a node asks for tokens and none has the role admin for good. starts says whether
// the node starts all the same: it does if it serves sites or peers, who prove their origin otherwise, or if
// messages wait for delivery. Empty: nothing is wrong.
func (c *Config) NoAdmin(a Access) (what string, starts bool) {
	if !c.AsksForTokens() || a.Admins > 0 {
		return "", true
	}
	if c.Role == CentralOfSites && a.Sites > 0 || len(c.Receive.Sources) > 0 || a.Waiting {
		return "requests need a token, but none has the role admin for good, and no person: sites and peers are served, but nobody can operate the node", true
	}
	return "requests need a token, but none has the role admin for good, and no person; nobody could be let in, so a node does not start", false
}

// FirstToken says how to make a token or a person with the role admin on this machine.
func (c *Config) FirstToken() string {
	const token, person = "holdfast tokens create NAME --role admin ", "holdfast users add NAME --role admin "
	if c.Store.IsZero() {
		return "while no node runs, make one with: " + token + "--data " + c.Data + ", or add a person with: " + person + "--data " + c.Data
	}
	return "make one with: " + token + "--config FILE, or add a person with: " + person + "--config FILE"
}
